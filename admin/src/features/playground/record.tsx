/** The request's entry in the usage log: its provider, use, cost and decisions. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import { useEnded } from "@/parts/live";
import { Cost } from "@/parts/request/cost";
import { DecisionChain } from "@/parts/request/decisions";
import { type Entry, outcomeOf, tokensIn, toneOf } from "@/parts/request/entry";
import { Part } from "@/parts/request/part";
import { untilInLog } from "@/parts/request/until-in-log";
import { buttonLook } from "@/ui/button";
import { Failed, Loading } from "@/ui/empty";
import { Card, Facts } from "@/ui/page";
import { Badge, Notice } from "@/ui/status";
import { Count, Duration, Money } from "@/ui/text";

const detail = (requestId: string, enabled: boolean) =>
  queryOptions({
    queryKey: ["logs", "detail", requestId],
    queryFn: ({ signal }) => call("actions/usage-logs/getUsageLogDetail", { requestId }, signal),
    enabled,
    ...untilInLog,
    staleTime: 60_000,
  });

interface Props {
  requestId: string;
  status: number | undefined;
  admin: boolean;
}

export function Record({ requestId, status, admin }: Props) {
  const { t } = useTranslation();
  // Requests that fail authentication have no record.
  const unknown = status === 401;
  const { data, error, refetch } = useQuery(detail(requestId, !unknown));
  const live = useEnded(requestId);
  const entry = data?.entry ?? live;
  return (
    <Card
      title={t("playground.record")}
      actions={
        entry && (
          <Link
            to="/logs"
            search={{ id: requestId, request: requestId }}
            className={buttonLook("secondary", "sm")}
          >
            {t("playground.toLogs")}
          </Link>
        )
      }
    >
      {unknown ? (
        <Notice
          tone="warn"
          action={
            admin && (
              <Link to="/rejected" className={buttonLook("secondary", "sm")}>
                {t("nav.rejected")}
              </Link>
            )
          }
        >
          {t("playground.noRecord")}
        </Notice>
      ) : entry ? (
        <div className="space-y-5">
          <Figures entry={entry} />
          <Part title={t("logs.tokensAndCost")}>
            <Cost entry={entry} detail={data} />
          </Part>
          <Part title={t("logs.decisions")}>
            <DecisionChain entry={entry} />
          </Part>
        </div>
      ) : error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : (
        <Loading lines={3} />
      )}
    </Card>
  );
}

function Figures({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  const facts: [ReactNode, ReactNode][] = [
    [
      t("logs.status"),
      <Badge key="s" tone={toneOf(entry)}>
        {entry.statusCode} {t(`logs.outcomes.${outcomeOf(entry)}`)}
      </Badge>,
    ],
    [t("logs.provider"), entry.providerName ?? "—"],
    [t("logs.tokensIn"), <Count key="i" value={tokensIn(entry)} />],
    [t("logs.tokensOut"), <Count key="o" value={entry.outputTokens} />],
    [t("logs.cost"), <Money key="c" amount={entry.costUsd} none={t("logs.unpriced")} />],
    [t("logs.duration"), <Duration key="d" ms={entry.durationMs} />],
  ];
  return <Facts facts={facts} />;
}
