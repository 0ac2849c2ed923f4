/** The usage log: every request, filtered, live, with its decisions. */
import { getRouteApi, Link } from "@tanstack/react-router";
import { Download, Pause, Play, ScrollText } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { download } from "@/parts/csv";
import { usePanelHistory } from "@/parts/panel-history";
import { useIsAdmin } from "@/parts/session";
import { Button } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";
import { Page } from "@/ui/page";
import { DataTable } from "@/ui/table";
import { useToast } from "@/ui/toast";
import { columns } from "./columns";
import { exportCsv, MOST } from "./csv";
import { useLogs } from "./data";
import { LogFilterBar } from "./filters";
import { RequestPanel } from "./panel";
import type { LogsSearch } from "./search";
import { filtersOf } from "./values";

const route = getRouteApi("/shell/logs");

export function LogsPage() {
  const { t } = useTranslation();
  const admin = useIsAdmin();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [paused, setPaused] = useState(false);
  const logs = useLogs(search, paused);
  const shown = useMemo(() => columns(t, admin, logs.summary), [t, admin, logs.summary]);
  const panel = usePanelHistory(search.request !== undefined);
  const set = (change: Partial<LogsSearch>, how: object = { replace: true }) =>
    void navigate({ search: (old) => ({ ...old, ...change }), ...how });
  const close = () => panel.close(() => set({ request: undefined }));
  const filtered = Object.keys(filtersOf(search)).length > 0;
  return (
    <Page
      title={t("nav.logs")}
      full
      actions={
        <>
          {logs.waiting > 0 && (
            <Button size="sm" variant="primary" onClick={logs.show}>
              {t("logs.new", { count: logs.waiting })}
            </Button>
          )}
          <Button
            size="sm"
            aria-pressed={paused}
            icon={
              paused ? (
                <Play className="size-3.5" aria-hidden />
              ) : (
                <Pause className="size-3.5" aria-hidden />
              )
            }
            onClick={() => setPaused(!paused)}
          >
            {paused ? t("logs.resume") : t("logs.pause")}
          </Button>
          <Export search={search} />
        </>
      }
    >
      {logs.error && logs.data === undefined ? (
        <Failed error={logs.error} retry={() => void logs.refetch()} />
      ) : (
        <DataTable
          id="logs"
          label={t("nav.logs")}
          full
          loading={logs.isPending}
          rows={logs.rows}
          rowId={(entry) => entry.requestId}
          columns={shown}
          openId={search.request ?? null}
          onOpen={({ requestId }) =>
            requestId === search.request ? close() : set({ request: requestId }, panel.opening())
          }
          onEnd={() => {
            if (!logs.isFetching) void logs.fetchNextPage();
          }}
          more={logs.hasNextPage}
          waits={logs.isFetching || logs.isFetchNextPageError}
          toolbar={<LogFilterBar search={search} set={set} />}
          empty={
            <None filtered={filtered} clear={() => void navigate({ search: {}, replace: true })} />
          }
        />
      )}
      {search.request !== undefined && (
        <RequestPanel
          key={search.request}
          requestId={search.request}
          known={logs.rows.find((entry) => entry.requestId === search.request)}
          onClose={close}
        />
      )}
    </Page>
  );
}

function None({ filtered, clear }: { filtered: boolean; clear: () => void }) {
  const { t } = useTranslation();
  return filtered ? (
    <Empty
      title={t("logs.noMatch")}
      action={<Button onClick={clear}>{t("logs.clearFilters")}</Button>}
    />
  ) : (
    <Empty
      icon={<ScrollText className="size-6" aria-hidden />}
      title={t("logs.none")}
      action={
        <Link to="/connect" className="text-sm text-accent underline underline-offset-2">
          {t("logs.toConnect")}
        </Link>
      }
    >
      {t("logs.noneHelp")}
    </Empty>
  );
}

/** Exports all entries of the filter as a file. Shows the progress and can be stopped. */
function Export({ search }: { search: LogsSearch }) {
  const { t } = useTranslation();
  const toast = useToast();
  const [progress, setProgress] = useState<string | null>(null);
  const stop = useRef<AbortController>(undefined);
  const run = async () => {
    const aborting = new AbortController();
    stop.current = aborting;
    setProgress("0 %");
    try {
      const share = (done: number, total: number) =>
        setProgress(`${total === 0 ? 100 : Math.floor((done / total) * 100)} %`);
      const { text, rows, cut } = await exportCsv(filtersOf(search), share, aborting.signal);
      download(
        text,
        `tollgate-logs-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.csv`,
      );
      if (cut) toast.bad(t("logs.exportCut", { count: MOST }));
      else toast.good(t("logs.exported", { count: rows }));
    } catch (error) {
      if (!aborting.signal.aborted) toast.failed(error);
    } finally {
      setProgress(null);
    }
  };
  return progress === null ? (
    <Button
      size="sm"
      icon={<Download className="size-3.5" aria-hidden />}
      onClick={() => void run()}
    >
      {t("logs.export")}
    </Button>
  ) : (
    <Button size="sm" busy={false} onClick={() => stop.current?.abort()}>
      {t("logs.stopExport", { progress })}
    </Button>
  );
}
