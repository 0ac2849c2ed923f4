/** The requests of the session's own key. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";
import { tokensIn, toneOf } from "@/parts/request/entry";
import { useRequestList } from "@/parts/request-list";
import { useSession } from "@/parts/session";
import { Button } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";
import { Badge } from "@/ui/status";
import { type Column, DataTable } from "@/ui/table";
import { Count, Duration, Money, Time } from "@/ui/text";
import { logs } from "./api";

type Entry = Schemas["LogEntry"];

export function MyLogs() {
  const { t } = useTranslation();
  const query = useInfiniteQuery(logs);
  const { keyId } = useSession();
  const { rows } = useRequestList(
    query.data?.pages,
    useCallback((entry: Entry) => entry.keyId === keyId, [keyId]),
  );
  const columns = useMemo<Column<Entry>[]>(
    () => [
      {
        id: "time",
        header: t("logs.time"),
        cell: (entry) => <Time at={entry.createdAt} relative={false} />,
      },
      {
        id: "status",
        header: t("logs.status"),
        cell: (entry) => (
          <Badge tone={toneOf(entry)} title={entry.errorMessage ?? undefined}>
            {entry.statusCode}
          </Badge>
        ),
      },
      { id: "model", header: t("logs.model"), cell: (entry) => entry.model || "—" },
      {
        id: "in",
        header: t("logs.tokensIn"),
        align: "right",
        cell: (entry) => <Count value={tokensIn(entry)} short />,
      },
      {
        id: "out",
        header: t("logs.tokensOut"),
        align: "right",
        cell: (entry) => <Count value={entry.outputTokens} short />,
      },
      {
        id: "cost",
        header: t("logs.cost"),
        align: "right",
        cell: (entry) => <Money amount={entry.costUsd} none={t("logs.unpriced")} />,
      },
      {
        id: "duration",
        header: t("logs.duration"),
        align: "right",
        cell: (entry) => <Duration ms={entry.durationMs} />,
      },
      {
        id: "error",
        header: t("myUsage.error"),
        className: "max-w-72 truncate",
        cell: (entry) => entry.errorMessage ?? "",
      },
    ],
    [t],
  );
  if (query.error && query.data === undefined)
    return <Failed error={query.error} retry={() => void query.refetch()} />;
  return (
    <>
      <DataTable
        id="my-logs"
        label={t("myUsage.requests")}
        loading={query.isPending}
        rows={rows}
        rowId={(entry) => entry.requestId}
        columns={columns}
        empty={<Empty title={t("logs.none")}>{t("myUsage.noneHelp")}</Empty>}
      />
      {query.hasNextPage && (
        <Button
          className="mt-3"
          busy={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {t("myUsage.more")}
        </Button>
      )}
    </>
  );
}
