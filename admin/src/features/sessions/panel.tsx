/** One session: its usage, its requests in order, and its messages if they are stored. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { call, type DataOf } from "@/api/client";
import { toneOf } from "@/parts/request/entry";
import { Id } from "@/ui/code";
import { cx } from "@/ui/cx";
import { Panel } from "@/ui/dialog";
import { Answer, Empty } from "@/ui/empty";
import { Facts } from "@/ui/page";
import { Badge } from "@/ui/status";
import { Tabs } from "@/ui/tabs";
import { Count, Duration, Money, Time } from "@/ui/text";
import { Messages } from "./messages";

type Live = DataOf<"actions/active-sessions/getActiveSessions">[number];
type Details = DataOf<"actions/active-sessions/getSessionDetails">;

const details = (sessionId: string, keyId: number | undefined, mark: number) => ({
  // A request that has just ended needs a moment to reach the database. So the page reads again
  // until the number of requests matches, for a limited time.
  refetchInterval: ({ state }: { state: { data?: Details; dataUpdateCount: number } }) =>
    state.data && state.data.total < mark && state.dataUpdateCount < 10 ? 1_000 : false,
  // A request that ends changes this value, which starts a new read.
  queryKey: ["sessions", "details", sessionId, keyId, mark],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    call("actions/active-sessions/getSessionDetails", { sessionId, keyId }, signal),
  placeholderData: (before: Details | undefined) => before,
});

interface Props {
  sessionId: string;
  /** `undefined`: the key of the session's latest request. */
  keyId: number | undefined;
  live: Live | undefined;
  onClose: () => void;
}

export function SessionPanel({ sessionId, keyId, live, onClose }: Props) {
  const { t } = useTranslation();
  const ended = (live?.requestCount ?? 0) - (live?.concurrentCount ?? 0);
  const asked = useQuery(details(sessionId, keyId, ended));
  return (
    <Panel
      open
      onClose={onClose}
      title={asked.data?.userName ?? live?.userName ?? t("sessions.session")}
      description={<Id value={sessionId} />}
      width="sm:max-w-2xl"
    >
      <Answer of={asked}>
        {(details) => (
          <div className="space-y-6">
            <Overview details={details} />
            <Tabs
              label={t("sessions.session")}
              tabs={[
                {
                  id: "requests",
                  label: t("sessions.requests"),
                  content: <InOrder sessionId={sessionId} details={details} />,
                },
                {
                  id: "messages",
                  label: t("sessions.messages"),
                  content: <Messages sessionId={sessionId} keyId={details.keyId} />,
                },
              ]}
            />
          </div>
        )}
      </Answer>
    </Panel>
  );
}

function InOrder({ sessionId, details }: { sessionId: string; details: Details }) {
  const { t } = useTranslation();
  return (
    <section>
      <div className="mb-2 flex items-baseline justify-between gap-2">
        <h3>{t("sessions.inOrder")}</h3>
        <Link
          to="/logs"
          search={{ session: sessionId, key: details.keyId ?? undefined }}
          className="text-xs text-accent underline underline-offset-2"
        >
          {t("sessions.inLogs")}
        </Link>
      </div>
      <Requests details={details} />
    </section>
  );
}

function Overview({ details }: { details: Details }) {
  const { t } = useTranslation();
  const { summary } = details;
  const input =
    summary.inputTokens +
    summary.cacheReadTokens +
    summary.cacheCreation5mTokens +
    summary.cacheCreation1hTokens;
  return (
    <Facts
      facts={[
        [
          t("sessions.status"),
          <Badge
            key="s"
            tone={
              details.status === "active" ? "good" : details.status === "idle" ? "plain" : "off"
            }
          >
            {details.status === "active"
              ? t("sessions.running", { count: details.concurrentCount })
              : t(details.status === "idle" ? "sessions.idle" : "sessions.ended")}
          </Badge>,
        ],
        [t("sessions.user"), details.userName ?? "—"],
        [t("sessions.key"), details.keyName ?? "—"],
        [t("sessions.requests"), <Count key="r" value={details.total} />],
        [t("sessions.tokensIn"), <Count key="i" value={input} />],
        [t("sessions.tokensOut"), <Count key="o" value={summary.outputTokens} />],
        [t("sessions.cost"), <Money key="c" amount={summary.costUsd} />],
        [t("sessions.duration"), <Duration key="d" ms={summary.durationMs} />],
      ]}
    />
  );
}

function Requests({ details }: { details: Details }) {
  const { t } = useTranslation();
  if (details.requests.length === 0) return <Empty title={t("sessions.noRequests")} />;
  return (
    <>
      {details.nextCursor && <p className="mb-2 text-xs text-faint">{t("sessions.latestOnly")}</p>}
      <ol className="divide-y divide-line rounded-lg border border-line">
        {details.requests.map((entry) => (
          <li key={entry.requestId}>
            <Link
              to="/logs"
              search={{
                session: entry.sessionId ?? undefined,
                key: entry.keyId ?? undefined,
                request: entry.requestId,
              }}
              className={cx(
                "flex flex-wrap items-center gap-x-3",
                "gap-y-1 px-3 py-2 text-sm hover:bg-hover",
              )}
            >
              <Time at={entry.createdAt} relative={false} />
              <Badge tone={toneOf(entry)}>{entry.statusCode}</Badge>
              <span className="min-w-0 flex-1 truncate">
                {entry.model} <span className="text-faint">{entry.providerName}</span>
              </span>
              <Duration ms={entry.durationMs} />
              <Money amount={entry.costUsd} />
            </Link>
          </li>
        ))}
      </ol>
    </>
  );
}
