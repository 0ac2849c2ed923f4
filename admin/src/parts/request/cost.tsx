/** The cost as a sum: tokens × price for each kind, × the provider's multiplier. */
import { useTranslation } from "react-i18next";
import type { DataOf } from "@/api/client";
import { count, exactMoney, useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";
import { CacheMiss } from "./cache-miss";
import { Cell, Head } from "./cells";
import { type Entry, FEES, type Kind, kindOf } from "./entry";
import { PartsOfCost } from "./parts-of-cost";
import { Why } from "./why";

type Detail = DataOf<"actions/usage-logs/getUsageLogDetail">;

export function Cost({ entry, detail }: { entry: Entry; detail: Detail | undefined }) {
  const { t } = useTranslation();
  const format = useFormat();
  const now = detail?.costAtPresentPrices;
  const lines = detail?.costLines ?? [];
  const sum = lines.reduce((all, line) => all + line.amountUsd, 0);
  const changed =
    now !== null && now !== undefined && entry.costUsd !== null && now !== entry.costUsd;
  return (
    <div className="space-y-3">
      <Why entry={entry} detail={detail} />
      {lines.length > 0 && entry.costUsd !== 0 ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls needs the keyboard
        <section tabIndex={0} aria-label={t("logs.tokensAndCost")} className="overflow-x-auto">
          <table className="w-full text-sm" aria-label={t("logs.tokensAndCost")}>
            <thead className="text-xs text-faint">
              <tr>
                <Head>{t("logs.costs.kind")}</Head>
                <Head right>{t("logs.costs.quantity")}</Head>
                <Head right>{t("logs.costs.rate")}</Head>
                <Head right>{t("logs.costs.amount")}</Head>
              </tr>
            </thead>
            <tbody>
              {lines.map((line, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: two passes may have equal lines
                <tr key={index}>
                  <Cell>
                    {t(`logs.costs.kinds.${kindOf(line.kind)}`)}
                    {line.model && <span className="text-quiet"> · {line.model}</span>}
                  </Cell>
                  <Cell right>{count(line.quantity, format)}</Cell>
                  <Cell right>
                    {FEES.includes(line.kind)
                      ? exactMoney(line.rateUsd, format)
                      : t("logs.costs.perMillion", {
                          amount: exactMoney(round(line.rateUsd * 1e6), format),
                        })}
                  </Cell>
                  <Cell right>{exactMoney(line.amountUsd, format)}</Cell>
                </tr>
              ))}
              {entry.costMultiplier !== 1 && (
                <>
                  <tr className="border-t border-line">
                    <Cell span={3}>{t("logs.costs.sum")}</Cell>
                    <Cell right>{exactMoney(round(sum), format)}</Cell>
                  </tr>
                  <tr>
                    <Cell span={3}>{t("logs.costs.multiplier")}</Cell>
                    <Cell right>× {entry.costMultiplier}</Cell>
                  </tr>
                </>
              )}
            </tbody>
            <tfoot>
              <tr className="border-t border-strong-line font-medium">
                <Cell span={3}>{changed ? t("logs.costs.totalNow") : t("logs.costs.total")}</Cell>
                <Cell right>{now !== null && now !== undefined && exactMoney(now, format)}</Cell>
              </tr>
              {changed && (
                <tr className="font-medium">
                  <Cell span={3}>{t("logs.costs.charged")}</Cell>
                  <Cell right>{exactMoney(entry.costUsd ?? 0, format)}</Cell>
                </tr>
              )}
            </tfoot>
          </table>
        </section>
      ) : (
        <Tokens entry={entry} />
      )}
      <CacheMiss miss={entry.cacheMiss} />
      <PartsOfCost parts={entry.parts} model={entry.model} />
      {entry.costUsd === null && (
        <Notice tone="warn" title={t("logs.unpriced")}>
          {t("logs.unpricedHelp", { model: entry.model })}
        </Notice>
      )}
      {changed && <p className="text-xs text-faint">{t("logs.costs.changed")}</p>}
      {typeof entry.notionalCostUsd === "number" && (
        <p className="text-sm text-quiet">
          {t("logs.notionalCost", { amount: exactMoney(entry.notionalCostUsd, format) })}
        </p>
      )}
      {entry.estimated && <p className="text-xs text-faint">{t("logs.estimatedHelp")}</p>}
    </div>
  );
}

/** Shown if nothing was charged or there is no price: only the tokens. */
function Tokens({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  const format = useFormat();
  const kinds: [Kind, number][] = [
    ["input", entry.inputTokens],
    ["cache_read", entry.cacheReadTokens],
    ["cache_write_5m", entry.cacheCreation5mTokens],
    ["cache_write_1h", entry.cacheCreation1hTokens],
    ["output", entry.outputTokens],
  ];
  const used = kinds.filter(([, tokens]) => tokens > 0);
  if (used.length === 0) return <p className="text-sm text-quiet">{t("logs.noTokens")}</p>;
  return (
    <table className="w-full text-sm" aria-label={t("logs.tokensAndCost")}>
      <tbody>
        {used.map(([kind, tokens]) => (
          <tr key={kind}>
            <Cell>{t(`logs.costs.kinds.${kind}`)}</Cell>
            <Cell right>{count(tokens, format)}</Cell>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Removes the rounding error of binary fractions from a product. */
const round = (amount: number) => Number(amount.toPrecision(12));
