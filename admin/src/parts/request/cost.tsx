/** The cost as a sum: tokens × price for each kind, × the provider's multiplier. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { DataOf } from "@/api/client";
import { cx } from "@/ui/cx";
import { count, exactMoney, useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";
import { type Entry, type Kind, kindOf } from "./entry";
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
              {lines.map((line) => (
                <tr key={line.kind}>
                  <Cell>{t(`logs.costs.kinds.${kindOf(line.kind)}`)}</Cell>
                  <Cell right>{count(line.quantity, format)}</Cell>
                  <Cell right>
                    {line.kind === "request" || line.kind === "web_search"
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
      {entry.costUsd === null && (
        <Notice tone="warn" title={t("logs.unpriced")}>
          {t("logs.unpricedHelp", { model: entry.model })}
        </Notice>
      )}
      {changed && <p className="text-xs text-faint">{t("logs.costs.changed")}</p>}
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

const Head = ({ children, right }: { children: ReactNode; right?: boolean }) => (
  <th scope="col" className={cx("pb-1 font-medium", right ? "pl-4 text-right" : "text-left")}>
    {children}
  </th>
);
/** `span`: the number of columns. */
const Cell = ({
  children,
  right,
  span,
}: {
  children?: ReactNode;
  right?: boolean;
  span?: number;
}) => (
  <td colSpan={span} className={cx("py-1 whitespace-nowrap", right && "tabular pl-4 text-right")}>
    {children}
  </td>
);
