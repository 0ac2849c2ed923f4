/**
 * The conditions that need attention, worst first: problems that the gateway reports, then limits
 * that are nearly used up, then requests without a price.
 */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { call, type Schemas } from "@/api/client";
import * as queries from "@/api/queries";
import { buttonLook } from "@/ui/button";
import { isMultiple, used, useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";
import { tell } from "./problems";

type Attention = NonNullable<Schemas["OverviewRecord"]["attention"]>;
type Near = Schemas["NearLimit"];

interface Anomaly {
  id: string;
  tone: "bad" | "warn";
  title: string;
  text: ReactNode;
  action: ReactNode;
}

/** The page that shows a limit. */
const placeOf = ({ kind, id, userId }: Near): [string, object] =>
  kind === "provider"
    ? ["/providers", { id }]
    : kind === "key"
      ? ["/people", { user: userId ?? undefined, key: id }]
      : ["/people", { user: id }];

/** The beginning of today in the gateway's time zone, as its filters take it. */
const dayIn = (timeZone: string | undefined) =>
  new Intl.DateTimeFormat("en-CA", {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    timeZone,
  }).format(new Date());

export function Anomalies({ attention }: { attention: Attention }) {
  const { t } = useTranslation();
  const format = useFormat();
  const today = dayIn(format.timeZone);
  const { data: unpriced = 0 } = useQuery({
    queryKey: ["logs", "unpriced", today],
    queryFn: () =>
      call("actions/usage-logs/getUsageLogs", { startDate: today, pageSize: 1 }).then(
        (page) => page.summary.unpriced,
      ),
    staleTime: 60_000,
  });
  const { data: users = [] } = useQuery(queries.users);

  const go = (to: string, search: object, label: string) => (
    <Link to={to as "/providers"} search={search} className={buttonLook("secondary", "sm")}>
      {label}
    </Link>
  );
  const anomalies: Anomaly[] = [
    ...attention.problems.map((problem) => {
      const { providerId, ...texts } = tell(problem, t, format);
      return {
        ...texts,
        action: providerId && go("/providers", { id: providerId }, t("overview.look")),
      };
    }),
    ...attention.nearLimits.map((near) => {
      const share = near.current / near.limit;
      const user = users.find((one) => one.id === near.userId);
      const own = user && near.kind === "key" ? `${user.name} / ${near.name}` : near.name;
      const name = t(`overview.holders.${near.kind as "key"}`, { name: own });
      return {
        id: `limit-${near.kind}-${near.id}`,
        tone: share >= 1 ? ("bad" as const) : ("warn" as const),
        title:
          share >= 1 ? t("overview.limitReached", { name }) : t("overview.limitNear", { name }),
        text: t(isMultiple(share) ? "overview.limitTimes" : "overview.limitText", {
          share: used(share, format),
          window: t(`overview.windows.${near.window as "5h"}`),
        }),
        action: go(...placeOf(near), t("overview.look")),
      };
    }),
    ...(attention.moreNearLimits > 0
      ? [
          {
            id: "more-limits",
            tone: "warn" as const,
            title: t("overview.moreLimits", { count: attention.moreNearLimits }),
            text: undefined,
            action: go("/people", {}, t("overview.look")),
          },
        ]
      : []),
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
