/** Why a request cost what it did, in one sentence: the gateway's English one, translated. */
import { useTranslation } from "react-i18next";
import type { DataOf } from "@/api/client";
import { count, useFormat } from "@/ui/format";
import { type Entry, tierOf, tokensIn } from "./entry";

type Detail = DataOf<"actions/usage-logs/getUsageLogDetail">;

export function Why({ entry, detail }: { entry: Entry; detail: Detail | undefined }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (entry.costUsd === null) return null;
  if (entry.priceModel === null)
    return <p className="text-sm text-quiet">{t("logs.why.nothing")}</p>;
  const above = detail?.inputAbove ?? null;
  return (
    <p className="text-sm">
      {t("logs.why.priced", {
        entry: entry.priceModel,
        asked: entry.priceModel === entry.model ? "" : t("logs.why.asked", { model: entry.model }),
        tier: t(`logs.why.tiers.${tierOf(entry.serviceTier)}`),
        long: above === null ? "" : t("logs.why.long", { tokens: count(above, format) }),
        input: count(tokensIn(entry), format),
        output: count(entry.outputTokens, format),
        searches:
          entry.webSearches === 0
            ? ""
            : t("logs.why.searches", { number: count(entry.webSearches, format) }),
        multiplier:
          entry.costMultiplier === 1
            ? ""
            : t("logs.why.multiplier", { multiplier: entry.costMultiplier }),
        basis: t(entry.estimated ? "logs.why.estimated" : "logs.why.reported"),
      })}
    </p>
  );
}
