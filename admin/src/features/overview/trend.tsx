/** Cost and requests over time, by user, key, model or provider. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { useIsAdmin } from "@/parts/session";
import { Chart } from "@/ui/chart";
import { Failed, Loading } from "@/ui/empty";
import { Select } from "@/ui/field";
import { money, shortCount, useFormat } from "@/ui/format";
import { Card } from "@/ui/page";
import type { OverviewSearch } from "./search";

const RANGES = ["hour", "day", "today", "7days", "30days", "thisMonth"] as const;
const LINES = 8;

export function Trend() {
  const { t } = useTranslation();
  const admin = useIsAdmin();
  const format = useFormat();
  const search = useSearch({ from: "/shell/dashboard" });
  const navigate = useNavigate({ from: "/dashboard" });
  const set = (next: Partial<OverviewSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const range = search.range ?? "day";
  const by = search.by ?? "user";
  const what = search.show ?? "cost";
  const { data, error, refetch } = useQuery(queries.statistics({ timeRange: range, groupBy: by }));
  const times = useMemo(
    () => (data?.chartData ?? []).map((point) => Date.parse(point.date)),
    [data],
  );
  const series = useMemo(
    () =>
      (data?.users ?? []).slice(0, LINES).map((line) => ({
        label: line.name,
        values: (data?.chartData ?? []).map((point) =>
          Number((point as Record<string, unknown>)[`${line.dataKey}_${what}`] ?? 0),
        ),
      })),
    [data, what],
  );
  const show = useCallback(
    (value: number) => (what === "cost" ? money(value, format) : shortCount(value, format)),
    [what, format],
  );
  const groups = admin
    ? (["user", "key", "model", "provider"] as const)
    : (["user", "key", "model"] as const);
  return (
    <Card
      title={t("overview.overTime")}
      actions={
        <div className="flex flex-wrap justify-end gap-2">
          <Select
            aria-label={t("overview.show")}
            className="!h-7 !w-auto !text-xs"
            value={what}
            choices={[
              { value: "cost", label: t("overview.costs") },
              { value: "calls", label: t("overview.calls") },
            ]}
            onChange={(event) =>
              set({ show: event.target.value === "calls" ? "calls" : undefined })
            }
          />
          <Select
            aria-label={t("overview.by")}
            className="!h-7 !w-auto !text-xs"
            value={by}
            choices={groups.map((value) => ({ value, label: t(`overview.bys.${value}`) }))}
            onChange={(event) =>
              set({
                by:
                  event.target.value === "user"
                    ? undefined
                    : (event.target.value as OverviewSearch["by"]),
              })
            }
          />
          <Select
            aria-label={t("overview.range")}
            className="!h-7 !w-auto !text-xs"
            value={range}
            choices={RANGES.map((value) => ({ value, label: t(`overview.ranges.${value}`) }))}
            onChange={(event) =>
              set({
                range:
                  event.target.value === "day"
                    ? undefined
                    : (event.target.value as OverviewSearch["range"]),
              })
            }
          />
        </div>
      }
    >
      {error && data === undefined ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading lines={5} />
      ) : series.length === 0 ? (
        <p className="py-12 text-center text-sm text-faint">{t("overview.noTraffic")}</p>
      ) : (
        <Chart
          times={times}
          series={series}
          show={show}
          label={t("overview.overTime")}
          whole={t("overview.whole", { range: t(`overview.ranges.${range}`) })}
        />
      )}
    </Card>
  );
}
