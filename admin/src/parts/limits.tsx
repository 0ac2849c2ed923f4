/**
 * Meters of the limits of a key, a user or a provider: the amount spent, and the amount reserved
 * for in-flight requests.
 */
import type { UseQueryResult } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";
import { Answer } from "@/ui/empty";
import { clockTime, count, type Format, money, useFormat } from "@/ui/format";
import { Meter } from "@/ui/meter";

type Cost = Schemas["CostUsage"];
export type Usage = Schemas["LimitUsage"] & { rpm?: Schemas["RateUsage"] };
type MoneyLimit =
  | "limit5hUsd"
  | "limitDailyUsd"
  | "limitWeeklyUsd"
  | "limitMonthlyUsd"
  | "limitTotalUsd";

/** "resets Mon 00:00": within a week the weekday is enough. */
export function resetsAt(at: string, format: Format): string {
  const date = new Date(at);
  const far = date.getTime() - Date.now() > 6 * 86_400_000;
  const soon = date.getTime() - Date.now() < 20 * 3_600_000;
  if (soon) return clockTime(date, new Date(), format).replace(/:\d\d$/, "");
  const options: Intl.DateTimeFormatOptions = far
    ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" }
    : { weekday: "long", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return new Intl.DateTimeFormat(format.locale, { ...options, timeZone: format.timeZone }).format(
    date,
  );
}

/** The time of the reset, and the reserved amount. */
function Note({ cost: { resetAt, reserved } }: { cost: Cost }) {
  const { t } = useTranslation();
  const format = useFormat();
  const parts = [
    reserved > 0 && t("people.reserved", { amount: money(reserved, format) }),
    resetAt && t("people.resets", { when: resetsAt(resetAt, format) }),
  ];
  return (
    <span title={reserved > 0 ? t("people.reservedHelp") : undefined}>
      {parts.filter(Boolean).join(" · ")}
    </span>
  );
}

/** The meters of the loaded limits. */
export function LimitUse({ asked }: { asked: UseQueryResult<Usage> }) {
  return (
    <Answer of={asked} lines={4}>
      {(usage) => <Meters usage={usage} />}
    </Answer>
  );
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
          reserved={cost.reserved}
          limit={cost.limit}
          show={(value) => money(value, format)}
          noLimit={t("people.noLimit")}
          note={<Note cost={cost} />}
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
