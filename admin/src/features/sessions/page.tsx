/** The live sessions: user, provider, model and cost so far. The event stream updates them. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { MessagesSquare } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { DataOf } from "@/api/client";
import * as queries from "@/api/queries";
import { usePanelHistory } from "@/parts/panel-history";
import { Empty, Failed } from "@/ui/empty";
import { Page } from "@/ui/page";
import { SearchBox } from "@/ui/search";
import { Badge, Tag } from "@/ui/status";
import { type Column, DataTable } from "@/ui/table";
import { Count, Duration, Money, Time } from "@/ui/text";
import { SessionPanel } from "./panel";

const route = getRouteApi("/shell/sessions");

type Session = DataOf<"actions/active-sessions/getActiveSessions">[number];

const idOf = ({ keyId, sessionId }: Pick<Session, "keyId" | "sessionId">) =>
  `${keyId} ${sessionId}`;

/** Whether a session matches the search text. */
function matches(session: Session, typed: string): boolean {
  const words = [
    session.sessionId,
    session.userName,
    session.keyName,
    session.providerName,
    session.model,
  ];
  return words.some((word) => word?.toLowerCase().includes(typed.toLowerCase()));
}

export function SessionsPage() {
  const { t } = useTranslation();
  const { q, session: openSession, key: openKey } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, isPending, refetch } = useQuery(queries.sessions);
  const columns = useColumns();
  const rows = useMemo(
    () => (data ?? []).filter((one) => q === undefined || matches(one, q)),
    [data, q],
  );
  const live = (data ?? []).find(
    (one) => one.sessionId === openSession && (openKey === undefined || one.keyId === openKey),
  );
  const openId = live ? idOf(live) : null;
  const panel = usePanelHistory(openSession !== undefined);
  const search = (
    change: { q?: string; session?: string; key?: number },
    how: object = { replace: true },
  ) => void navigate({ search: (old) => ({ ...old, ...change }), ...how });
  const close = () => panel.close(() => search({ session: undefined, key: undefined }));
  return (
    <Page title={t("nav.sessions")} help={t("sessions.help")} full>
      {error && data === undefined ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : (
        <DataTable
          id="sessions"
          label={t("nav.sessions")}
          full
          loading={isPending}
          rows={rows}
          rowId={idOf}
          columns={columns}
          sort={[{ id: "cost", desc: true }]}
          openId={openId}
          onOpen={(one) =>
            idOf(one) === openId
              ? close()
              : search({ session: one.sessionId, key: one.keyId ?? undefined }, panel.opening())
          }
          toolbar={
            <SearchBox
              label={t("sessions.search")}
              value={q ?? ""}
              onChange={(value) => search({ q: value || undefined })}
            />
          }
          empty={
            <Empty
              icon={<MessagesSquare className="size-6" aria-hidden />}
              title={q === undefined ? t("sessions.none") : t("sessions.noMatch")}
            >
              {q === undefined && (
                <>
                  {t("sessions.noneHelp")}{" "}
                  <Link to="/logs" className="text-accent underline underline-offset-2">
                    {t("sessions.toLogs")}
                  </Link>
                </>
              )}
            </Empty>
          }
        />
      )}
      {openSession !== undefined && (
        <SessionPanel
          key={`${openKey} ${openSession}`}
          sessionId={openSession}
          keyId={openKey}
          live={live}
          onClose={close}
        />
      )}
    </Page>
  );
}

function useColumns(): Column<Session>[] {
  const { t } = useTranslation();
  return useMemo(
    () => [
      {
        id: "session",
        header: t("sessions.session"),
        className: "max-w-48 truncate",
        cell: (one) => <span className="font-mono">{one.sessionId}</span>,
        value: (one) => one.sessionId,
      },
      {
        id: "status",
        header: t("sessions.status"),
        cell: (one) =>
          one.status === "active" ? (
            <Badge tone="good">{t("sessions.running", { count: one.concurrentCount })}</Badge>
          ) : (
            <Badge tone="plain">{t("sessions.idle")}</Badge>
          ),
        value: (one) => one.concurrentCount,
      },
      {
        id: "user",
        header: t("sessions.user"),
        className: "max-w-48 truncate",
        cell: (one) => <span title={one.userName ?? undefined}>{one.userName ?? "—"}</span>,
        value: (one) => one.userName,
      },
      {
        id: "key",
        header: t("sessions.key"),
        className: "max-w-32 truncate",
        cell: (one) => <span title={one.keyName ?? undefined}>{one.keyName ?? "—"}</span>,
        value: (one) => one.keyName,
      },
      {
        id: "provider",
        header: t("sessions.provider"),
        className: "max-w-40 truncate",
        cell: (one) => <span title={one.providerName ?? undefined}>{one.providerName ?? "—"}</span>,
        value: (one) => one.providerName,
      },
      {
        id: "model",
        header: t("sessions.model"),
        className: "max-w-56 truncate",
        cell: (one) => <span title={one.model ?? undefined}>{one.model ?? "—"}</span>,
        value: (one) => one.model,
      },
      {
        id: "format",
        header: t("sessions.format"),
        hidden: true,
        cell: (one) => (one.apiType ? <Tag>{one.apiType}</Tag> : "—"),
        value: (one) => one.apiType,
      },
      {
        id: "requests",
        header: t("sessions.requests"),
        align: "right",
        cell: (one) => <Count value={one.requestCount} />,
        value: (one) => one.requestCount,
      },
      {
        id: "tokens",
        header: t("sessions.tokens"),
        align: "right",
        cell: (one) => <Count value={one.totalTokens} short />,
        value: (one) => one.totalTokens,
      },
      {
        id: "cost",
        header: t("sessions.cost"),
        align: "right",
        cell: (one) => <Money amount={one.costUsd} />,
        value: (one) => one.costUsd,
      },
      {
        id: "duration",
        header: t("sessions.duration"),
        align: "right",
        hidden: true,
        cell: (one) => <Duration ms={one.durationMs} />,
        value: (one) => one.durationMs,
      },
      {
        id: "start",
        header: t("sessions.start"),
        align: "right",
        cell: (one) => <Time at={one.startTime} />,
        value: (one) => one.startTime,
      },
    ],
    [t],
  );
}
