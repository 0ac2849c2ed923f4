/** One request: its decisions, its usage and its cost. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Cost } from "@/parts/request/cost";
import { DecisionChain } from "@/parts/request/decisions";
import { type Entry, outcomeOf, toneOf } from "@/parts/request/entry";
import { Part } from "@/parts/request/part";
import { useIsAdmin } from "@/parts/session";
import { Id } from "@/ui/code";
import { Panel } from "@/ui/dialog";
import { Failed, Loading } from "@/ui/empty";
import { Facts } from "@/ui/page";
import { Badge, Notice, Tag } from "@/ui/status";
import { Duration, Time } from "@/ui/text";
import { AsCurl } from "./as-curl";
import { detail } from "./data";
import { Today } from "./today";

interface Props {
  requestId: string;
  /** The entry as the list has it. */
  known: Entry | undefined;
  onClose: () => void;
}

export function RequestPanel({ requestId, known, onClose }: Props) {
  const { t } = useTranslation();
  const admin = useIsAdmin();
  const { data, error, refetch } = useQuery(detail(requestId));
  const entry = data?.entry ?? known;
  return (
    <Panel
      open
      onClose={onClose}
      title={entry?.model || t("logs.request")}
      description={<Id value={requestId} />}
      width="sm:max-w-2xl"
    >
      {entry === undefined ? (
        error && data === undefined ? (
          <Failed error={error} retry={() => void refetch()} />
        ) : (
          <Loading />
        )
      ) : (
        <div className="space-y-6">
          <Summary entry={entry} />
          <Part title={t("logs.decisions")}>
            <DecisionChain entry={entry} />
            {admin && entry.keyId !== null && <Today requestId={requestId} />}
          </Part>
          <Part title={t("logs.tokensAndCost")}>
            <Cost entry={entry} detail={data} />
          </Part>
          <Part title={t("logs.facts")}>
            <AllFacts entry={entry} />
          </Part>
          <AsCurl entry={entry} />
        </div>
      )}
    </Panel>
  );
}

function Summary({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center gap-2 text-sm">
        <Badge tone={toneOf(entry)}>
          {entry.statusCode} {t(`logs.outcomes.${outcomeOf(entry)}`)}
        </Badge>
        <Time at={entry.createdAt} relative={false} />
        <span className="text-faint">·</span>
        <Duration ms={entry.durationMs} />
        {entry.streamed && <Tag>{t("logs.streamed")}</Tag>}
        {entry.providerFormat && entry.providerFormat !== entry.clientFormat && (
          <Tag title={t("logs.converted")}>
            {entry.clientFormat} → {entry.providerFormat}
          </Tag>
        )}
      </div>
      {entry.errorMessage && (
        <Notice tone={toneOf(entry) === "bad" ? "bad" : "warn"}>{entry.errorMessage}</Notice>
      )}
    </div>
  );
}

function AllFacts({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  const facts: [ReactNode, ReactNode][] = [
    [t("logs.user"), entry.userName ?? t("logs.admin")],
    [t("logs.key"), entry.keyName ?? "—"],
    [
      t("logs.session"),
      entry.sessionId ? (
        <span key="s" className="flex min-w-0 flex-wrap items-center gap-2">
          <Id value={entry.sessionId} />
          <Link
            to="/logs"
            search={{ session: entry.sessionId }}
            className="text-xs text-accent underline underline-offset-2"
          >
            {t("logs.sameSession")}
          </Link>
        </span>
      ) : (
        "—"
      ),
    ],
    [
      t("logs.endpoint"),
      <span key="e" className="font-mono text-xs">
        {entry.endpoint}
      </span>,
    ],
    [t("logs.ttfb"), <Duration key="t" ms={entry.ttfbMs} />],
    [
      t("logs.overhead"),
      <span key="o" className="tabular">
        {entry.overheadUs} µs
      </span>,
    ],
    [t("logs.client"), entry.userAgent ?? "—"],
    [t("logs.address"), entry.clientAddress ?? "—"],
  ];
  return <Facts facts={facts} />;
}
