/** The part of today's cost that cold prompt caches caused, by cause. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { causeOf, isLoss } from "@/parts/request/entry";
import { count, money, percent, useFormat } from "@/ui/format";
import { Bar } from "@/ui/meter";
import { Card } from "@/ui/page";
import { Count, Money } from "@/ui/text";

export function CacheMisses() {
  const { t } = useTranslation();
  const format = useFormat();
  const { data } = useQuery(queries.cacheMisses);
  const lost = data?.causes.filter(({ cause }) => isLoss(cause)) ?? [];
  const worst = lost[0];
  return (
    <Card title={t("overview.cacheMisses")}>
      {data === undefined || worst === undefined ? (
        <p className="py-4 text-center text-sm text-faint">{t("overview.noCacheMisses")}</p>
      ) : (
        <>
          <p className="mb-3 text-sm text-quiet">
            {t("overview.missesOf", {
              cost: money(data.costUsd, format),
              total: money(data.totalCostUsd, format),
              tokens: count(data.tokens, format),
            })}
          </p>
          <ul className="space-y-2.5">
            {lost.map((row) => (
              <li key={row.cause}>
                <div className="flex items-baseline gap-3 text-sm">
                  <span className="min-w-0 flex-1 truncate">
                    {t(`missCauses.${causeOf(row.cause)}`)}
                    {data.costUsd > 0 && (
                      <span className="text-faint">
                        {" "}
                        · {percent(row.costUsd / data.costUsd, format)}
                      </span>
                    )}
                  </span>
                  <span className="text-xs text-faint">
                    <Count value={row.requests} short />
                  </span>
                  <span className="w-20 text-right">
                    <Money amount={row.costUsd} />
                  </span>
                </div>
                <Bar share={row.costUsd / Math.max(worst.costUsd, Number.MIN_VALUE)} />
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}
