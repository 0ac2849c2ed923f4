/** Today's figures, each beside the same time yesterday. */
import { ArrowDownRight, ArrowRight, ArrowUpRight } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";
import { cx } from "@/ui/cx";
import { count, difference, duration, money, percent, useFormat } from "@/ui/format";

export function Figures({ data }: { data: Schemas["OverviewRecord"] }) {
  const { t } = useTranslation();
  const format = useFormat();
  const rate = (value: number) => percent(value / 100, format);
  return (
    <dl className="grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-5">
      <Figure
        label={t("overview.cost")}
        value={money(data.todayCost, format)}
        now={data.todayCost}
        before={data.yesterdaySamePeriodCost}
        show={(v) => money(v, format)}
      />
      <Figure
        label={t("overview.requests")}
        value={count(data.todayRequests, format)}
        now={data.todayRequests}
        before={data.yesterdaySamePeriodRequests}
        show={(v) => count(v, format)}
        note={t("overview.lastMinute", { count: data.recentMinuteRequests })}
      />
      <Figure
        label={t("overview.errorRate")}
        value={rate(data.todayErrorRate)}
        now={data.todayErrorRate}
        before={data.yesterdaySamePeriodErrorRate}
        show={rate}
        note={
          data.todayLimitRefusals > 0
            ? t("overview.refusals", { count: data.todayLimitRefusals })
            : undefined
        }
        worse
      />
      <Figure
        label={t("overview.latency")}
        value={duration(data.avgResponseTime, format)}
        now={data.avgResponseTime}
        before={data.yesterdaySamePeriodAvgResponseTime}
        show={(v) => duration(v, format)}
        worse
      />
      <Figure
        label={t("overview.sessions")}
        value={count(data.concurrentSessions, format)}
        note={t("overview.sessionsNow")}
      />
    </dl>
  );
}

interface Props {
  label: string;
  value: string;
  now?: number;
  before?: number;
  show?: (value: number) => string;
  note?: ReactNode;
  /** An increase is bad: it is amber. */
  worse?: boolean;
}

function Figure({ label, value, now, before, show, note, worse }: Props) {
  const { t } = useTranslation();
  const format = useFormat();
  const change = now !== undefined && before ? (now - before) / before : undefined;
  const Arrow =
    change === undefined || Math.abs(change) < 0.01
      ? ArrowRight
      : change > 0
        ? ArrowUpRight
        : ArrowDownRight;
  return (
    <div className="card min-w-0 p-4 last:col-span-2 md:last:col-span-1">
      <dt className="truncate text-xs text-faint">{label}</dt>
      <dd>
        <div className="tabular truncate text-2xl leading-9 font-semibold tracking-tight">
          {value}
        </div>
        <div className="min-h-4 text-xs text-faint">
          {before !== undefined && show && (
            <span
              className={cx(
                "mr-2 inline-flex items-center gap-0.5",
                worse && change !== undefined && change > 0.2 && "text-warn",
              )}
            >
              {change !== undefined && <Arrow className="size-3.5" aria-hidden />}
              {change === undefined
                ? t("overview.yesterday", { value: show(before) })
                : `${difference(change, format)} · ${t("overview.yesterday", { value: show(before) })}`}
            </span>
          )}
          {note !== undefined && <span className="block">{note}</span>}
        </div>
      </dd>
    </div>
  );
}
