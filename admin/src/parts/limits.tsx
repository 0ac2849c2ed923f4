/** Meters of every limit that a key or a user has: people and my-usage show the same. */
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";
import { clockTime, count, type Format, money, useFormat } from "@/ui/format";
import { Meter } from "@/ui/meter";

type Cost = Schemas["CostUsage"];
export type Usage = Schemas["LimitUsage"] & { rpm?: Schemas["RateUsage"] };
type MoneyLimit = "limit5hUsd" | "limitDailyUsd" | "limitWeeklyUsd" | "limitMonthlyUsd" | "limitTotalUsd";

/** "resets Mon 00:00": the weekday says enough within a week. */
function when(at: string, format: Format): string {
  const date = new Date(at);
  const far = date.getTime() - Date.now() > 6 * 86_400_000;
  const soon = date.getTime() - Date.now() < 20 * 3_600_000;
  if (soon) return clockTime(date, new Date(), format).replace(/:\d\d$/, "");
  const options: Intl.DateTimeFormatOptions = far
    ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" }
    : { weekday: "long", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return new Intl.DateTimeFormat(format.locale, { ...options, timeZone: format.timeZone }).format(date);
}

export function Meters({ usage }: { usage: Usage }) {
  const { t } = useTranslation();
  const format = useFormat();
  const costs: [MoneyLimit, Cost][] = [
    ["limit5hUsd", usage.cost5h],
    ["limitDailyUsd", usage.costDaily],
    ["limitWeeklyUsd", usage.costWeekly],
    ["limitMonthlyUsd", usage.costMonthly],
    ["limitTotalUsd", usage.costTotal],
  ];
  return (
    <div className="grid grid-cols-1 gap-x-6 gap-y-3 sm:grid-cols-2">
      {costs.map(([label, cost]) => (
        <Meter
          key={label}
          label={t(`people.${label}`)}
          current={cost.current}
          limit={cost.limit}
          show={(value) => money(value, format)}
          noLimit={t("people.noLimit")}
          note={cost.resetAt ? t("people.resets", { when: when(cost.resetAt, format) }) : undefined}
        />
      ))}
      <Meter
        label={t("people.limitConcurrentSessions")}
        current={usage.concurrentSessions.current}
        limit={usage.concurrentSessions.limit}
        zeroIsNone
        show={(value) => count(value, format)}
        noLimit={t("people.noLimit")}
      />
      {usage.rpm && (
        <Meter
          label={t("people.rpm")}
          current={usage.rpm.current}
          limit={usage.rpm.limit}
          zeroIsNone
          show={(value) => count(value, format)}
          noLimit={t("people.noLimit")}
        />
      )}
    </div>
  );
}
