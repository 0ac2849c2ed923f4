/** What needs somebody: circuits that are open, providers that rest, limits nearly used up, requests without a price. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { call, type Schemas } from "@/api/client";
import * as queries from "@/api/queries";
import { Button } from "@/ui/button";
import { percent, useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";
import { Countdown, Time, useNow } from "@/ui/text";

const NEAR = 0.8;
/** Users that are looked at for limits: those who spent most today. */
const LOOKED_AT = 10;

type Cost = Schemas["CostUsage"];

interface Anomaly {
  id: string;
  tone: "bad" | "warn";
  title: string;
  text: ReactNode;
  action: ReactNode;
}

/** The window that is used up most, if any is near its limit. */
export function nearest(
  usage: Schemas["LimitUsage"],
): { window: "5h" | "daily" | "weekly" | "monthly" | "total"; share: number } | undefined {
  const windows: ["5h" | "daily" | "weekly" | "monthly" | "total", Cost][] = [
    ["5h", usage.cost5h],
    ["daily", usage.costDaily],
    ["weekly", usage.costWeekly],
    ["monthly", usage.costMonthly],
    ["total", usage.costTotal],
  ];
  const shares = windows.flatMap(([window, { current, limit }]) =>
    limit === null ? [] : [{ window, share: limit === 0 ? 1 : current / limit }],
  );
  return shares.filter(({ share }) => share >= NEAR).sort((a, b) => b.share - a.share)[0];
}

/** The beginning of today in the gateway's time zone, as its filters take it. */
const dayIn = (timeZone: string | undefined) =>
  new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit", timeZone }).format(new Date());

export function Anomalies({ topUsers }: { topUsers: { id: number; name: string }[] }) {
  const { t } = useTranslation();
  const format = useFormat();
  const now = useNow().getTime();
  const { data: health = [] } = useQuery(queries.health);
  const { data: providers = [] } = useQuery(queries.providers);
  const today = dayIn(format.timeZone);
  const { data: unpriced = 0 } = useQuery({
    queryKey: ["logs", "unpriced", today],
    queryFn: () =>
      call("actions/usage-logs/getUsageLogs", { startDate: today, pageSize: 1 }).then((page) => page.summary.unpriced),
    staleTime: 60_000,
  });
  const usages = useQueries({
    queries: topUsers.slice(0, LOOKED_AT).map(({ id }) => ({ ...queries.userLimits(id), staleTime: 30_000 })),
  });

  const go = (to: string, search: object, label: string) => (
    <Link to={to as "/providers"} search={search}>
      <Button size="sm" tabIndex={-1}>
        {label}
      </Button>
    </Link>
  );
  const enabled = new Set(providers.filter((provider) => provider.isEnabled).map((provider) => provider.id));
  const troubled = health.filter((one) => enabled.has(one.providerId));
  const anomalies: Anomaly[] = [
    ...troubled
      .filter((one) => one.state === "OPEN")
      .map((one) => ({
        id: `open-${one.providerId}`,
        tone: "bad" as const,
        title: t("overview.circuitOpen", { name: one.providerName }),
        text: one.halfOpen ? (
          t("overview.halfOpen")
        ) : (
          <>
            {t("overview.triedAgain")} {one.openUntil && <Countdown until={one.openUntil} />} ·{" "}
            {t("overview.lastFailure")} <Time at={one.lastFailureTime} />
          </>
        ),
        action: go("/providers", { id: one.providerId }, t("overview.look")),
      })),
    ...troubled
      .filter((one) => one.state !== "OPEN" && one.restUntil && new Date(one.restUntil).getTime() > now)
      .map((one) => ({
        id: `rest-${one.providerId}`,
        tone: "warn" as const,
        title: t("overview.resting", { name: one.providerName }),
        text: (
          <>
            {t("overview.restingUntil")} <Time at={one.restUntil} />
          </>
        ),
        action: go("/providers", { id: one.providerId }, t("overview.look")),
      })),
    ...usages.flatMap((usage, index) => {
      const user = topUsers[index];
      const near = usage.data && nearest(usage.data);
      if (!user || !near) return [];
      const window = t(`overview.windows.${near.window}`);
      return [
        {
          id: `limit-${user.id}`,
          tone: near.share >= 1 ? ("bad" as const) : ("warn" as const),
          title:
            near.share >= 1
              ? t("overview.limitReached", { name: user.name })
              : t("overview.limitNear", { name: user.name }),
          text: t("overview.limitText", { share: percent(near.share, format), window }),
          action: go("/people", { user: user.id }, t("overview.look")),
        },
      ];
    }),
    ...(unpriced > 0
      ? [
          {
            id: "unpriced",
            tone: "warn" as const,
            title: t("overview.unpriced", { count: unpriced }),
            text: t("overview.unpricedText"),
            action: go("/prices", {}, t("overview.toPrices")),
          },
        ]
      : []),
  ];
  if (anomalies.length === 0) {
    return (
      <p className="flex items-center gap-2 text-sm text-quiet">
        <CircleCheck className="size-4 text-good" aria-hidden />
        {t("overview.allWell")}
      </p>
    );
  }
  return (
    <ul className="space-y-2">
      {anomalies.map(({ id, tone, title, text, action }) => (
        <li key={id}>
          <Notice tone={tone} title={title} action={action}>
            {text}
          </Notice>
        </li>
      ))}
    </ul>
  );
}
