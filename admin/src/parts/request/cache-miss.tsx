/** What a provider could not read from its prompt cache, what that cost, and why. */
import { useTranslation } from "react-i18next";
import { count, money, useFormat } from "@/ui/format";
import { causeOf, type Entry } from "./entry";

export function CacheMiss({ miss }: { miss: Entry["cacheMiss"] }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (!miss) return null;
  return (
    <p className="text-sm break-words text-quiet">
      {t("logs.cacheMiss", {
        tokens: count(miss.tokens, format),
        cost: money(miss.costUsd, format),
        cause:
          miss.message === null
            ? t(`missCauses.${causeOf(miss.cause)}`)
            : t("logs.messageChanged", { number: miss.message }),
      })}
    </p>
  );
}
