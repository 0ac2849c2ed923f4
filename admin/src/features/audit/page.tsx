/** The audit log: every administrative write, newest first. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ScrollText } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { usePanelHistory } from "@/parts/panel-history";
import { Button } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";
import { Filters } from "@/ui/filters";
import { Page } from "@/ui/page";
import { type Column, DataTable } from "@/ui/table";
import { Time } from "@/ui/text";
import { auditEntry, auditLog, type Entry } from "./api";
import { diff, kindOf } from "./diff";
import { useAuditFilters } from "./filters";
import { EntryPanel } from "./panel";

export function AuditPage() {
  const { t } = useTranslation();
  const search = useSearch({ from: "/shell/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const panel = usePanelHistory(search.id !== undefined);
  const set = (change: Partial<typeof search>, how: object = { replace: true }) =>
    void navigate({ search: (old) => ({ ...old, ...change }), ...how });
  const { actor, action, target, start, end } = search;
  const log = useInfiniteQuery(auditLog({ actor, action, target, startDate: start, endDate: end }));
  const rows = useMemo(() => log.data?.pages.flatMap((page) => page.entries) ?? [], [log.data]);
  const filters = useAuditFilters(search, set);
  const columns = useColumns();
  const listed = rows.find((entry) => entry.id === search.id);
  // A link may be to an entry of a page that was not read.
  const linked = useQuery({
    ...auditEntry(search.id ?? 0),
    enabled: search.id !== undefined && listed === undefined && !log.isPending,
  });
  const open = listed ?? (search.id === undefined ? null : linked.data);
  const filtered = filters.some((filter) => filter.shown !== undefined);
  return (
    <Page title={t("nav.audit")} help={t("audit.help")} full>
      {log.error && rows.length === 0 && (
        <div className="mb-3">
          <Failed error={log.error} retry={() => void log.refetch()} />
        </div>
      )}
      <DataTable
        id="audit"
        label={t("nav.audit")}
        full
        loading={log.isPending}
        rows={rows}
        rowId={(entry) => String(entry.id)}
        columns={columns}
        onOpen={(entry) => set({ id: entry.id }, panel.opening())}
        openId={search.id === undefined ? null : String(search.id)}
        onEnd={() => {
          if (!log.isFetching) void log.fetchNextPage();
        }}
        more={log.hasNextPage}
        waits={log.isFetching || log.isFetchNextPageError}
        toolbar={<Filters filters={filters} />}
        empty={
          filtered ? (
            <Empty
              title={t("audit.noneFiltered")}
              action={
                <Button onClick={() => void navigate({ search: {}, replace: true })}>
                  {t("audit.clear")}
                </Button>
              }
            />
          ) : log.error ? undefined : (
            <Empty icon={<ScrollText className="size-6" aria-hidden />} title={t("audit.none")}>
              {t("audit.noneHelp")}
            </Empty>
          )
        }
      />
      {open && (
        <EntryPanel
          key={open.id}
          entry={open}
          onClose={() => panel.close(() => set({ id: undefined }))}
        />
      )}
    </Page>
  );
}

function useColumns(): Column<Entry>[] {
  const { t } = useTranslation();
  return useMemo(
    () => [
      {
        id: "when",
        header: t("audit.when"),
        cell: (entry) => <Time at={entry.happenedAt} relative={false} />,
      },
      {
        id: "actor",
        header: t("audit.actor"),
        className: "max-w-56",
        cell: (entry) => (
          <span className="block truncate" title={entry.actor}>
            {entry.actor}
          </span>
        ),
      },
      {
        id: "action",
        header: t("audit.action"),
        cell: (entry) => (
          <span className="font-mono text-xs whitespace-nowrap">{entry.action}</span>
        ),
      },
      {
        id: "target",
        header: t("audit.target"),
        className: "max-w-56",
        cell: (entry) => (
          <span className="block truncate" title={entry.target}>
            {entry.target}
          </span>
        ),
      },
      {
        id: "changes",
        header: t("audit.changes"),
        className: "max-w-72",
        cell: (entry) => <Summary entry={entry} />,
      },
      {
        id: "address",
        header: t("audit.address"),
        cell: (entry) => <span className="font-mono text-xs">{entry.clientAddress ?? "—"}</span>,
      },
    ],
    [t],
  );
}

/** The fields that were changed, in one line. */
function Summary({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  const kind = kindOf(entry);
  if (kind === "none") return <span className="text-faint">—</span>;
  if (kind !== "changed") return t(`audit.${kind}`);
  const names = diff(entry.before, entry.after)
    .filter((line) => line.kind !== "same")
    .map((line) => line.path);
  if (names.length === 0) return <span className="text-faint">{t("audit.nothingChanged")}</span>;
  return (
    <span className="block truncate" title={names.join(", ")}>
      {names.join(", ")}
    </span>
  );
}
