/** Requests that failed authentication. The node keeps them in memory, without the key's text. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ShieldCheck } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { call, type DataOf } from "@/api/client";
import { useUsers } from "@/parts/session";
import { Empty } from "@/ui/empty";
import { count, exactTime, useFormat } from "@/ui/format";
import { List } from "@/ui/list";
import { Page } from "@/ui/page";
import { Badge } from "@/ui/status";
import type { Column } from "@/ui/table";
import { Count, Time } from "@/ui/text";

type Rejected = DataOf<"actions/usage-logs/getRejectedRequests">["entries"][number];

/** The event stream does not report these. */
const AGAIN = 15_000;

const rejected = queryOptions({
  queryKey: ["rejected"],
  queryFn: ({ signal }) => call("actions/usage-logs/getRejectedRequests", {}, signal),
  refetchInterval: AGAIN,
});

const REASONS = [
  "unknown_key",
  "missing_credential",
  "conflicting_credentials",
  "key_disabled",
  "key_expired",
  "user_disabled",
] as const;

const textOf = (one: Rejected) =>
  [
    one.reason,
    one.clientAddress,
    one.endpoint,
    one.clientFormat,
    one.userAgent,
    one.keyName,
    one.keyFingerprint,
  ]
    .join(" ")
    .toLowerCase();

export function RejectedPage() {
  const { t } = useTranslation();
  const format = useFormat();
  const { q } = useSearch({ from: "/shell/rejected" });
  const navigate = useNavigate({ from: "/rejected" });
  const set = (text: string | undefined) => void navigate({ search: { q: text }, replace: true });
  const asked = useQuery(rejected);
  const { data } = asked;
  const columns = useColumns();
  const rows = useMemo(() => {
    const words = (q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    return (data?.entries ?? []).filter((one) => words.every((word) => textOf(one).includes(word)));
  }, [data, q]);
  return (
    <Page
      title={t("nav.rejected")}
      help={
        data
          ? t("rejected.help", {
              total: count(data.total, format),
              since: exactTime(new Date(data.since), format),
            })
          : undefined
      }
      full
    >
      <List
        id="rejected"
        label={t("nav.rejected")}
        asked={asked}
        rows={rows}
        rowId={rowId}
        columns={columns}
        sort={[{ id: "last", desc: true }]}
        search={{ label: t("rejected.search"), value: q, onChange: set }}
        none={
          q && (data?.entries.length ?? 0) > 0
            ? {
                title: t("rejected.noMatch"),
                action: t("rejected.showAll"),
                clear: () => set(undefined),
              }
            : undefined
        }
        first={
          <Empty icon={<ShieldCheck className="size-6" aria-hidden />} title={t("rejected.none")}>
            {t("rejected.noneHelp")}
          </Empty>
        }
      />
    </Page>
  );
}

const rowId = (one: Rejected) =>
  [
    one.reason,
    one.clientAddress,
    one.endpoint,
    one.keyFingerprint,
    one.keyId,
    one.userAgent,
    one.firstAt,
  ].join(" ");

function useColumns(): Column<Rejected>[] {
  const { t } = useTranslation();
  const { data: users = [] } = useUsers();
  return useMemo(
    () => [
      {
        id: "last",
        header: t("rejected.last"),
        value: (one) => one.lastAt,
        cell: (one) => <Time at={one.lastAt} relative={false} />,
      },
      {
        id: "reason",
        header: t("rejected.reason"),
        value: (one) => one.reason,
        cell: (one) => {
          const known = REASONS.find((reason) => reason === one.reason);
          return <Badge tone="warn">{known ? t(`rejected.reasons.${known}`) : one.reason}</Badge>;
        },
      },
      {
        id: "count",
        header: t("rejected.count"),
        align: "right",
        value: (one) => one.count,
        cell: (one) => <Count value={one.count} />,
      },
      {
        id: "address",
        header: t("rejected.address"),
        value: (one) => one.clientAddress,
        cell: (one) => <span className="font-mono text-xs">{one.clientAddress ?? "—"}</span>,
      },
      {
        id: "key",
        header: t("rejected.key"),
        cell: (one) => {
          const user = users.find(({ keys }) => keys.some(({ id }) => id === one.keyId));
          if (one.keyId != null)
            return (
              <Link
                to="/people"
                search={{ user: user?.id, key: one.keyId }}
                className="text-accent underline"
              >
                {[user?.name, one.keyName ?? one.keyId].filter(Boolean).join(" / ")}
              </Link>
            );
          return one.keyFingerprint ? (
            <span className="font-mono text-xs" title={t("rejected.fingerprintHelp")}>
              #{one.keyFingerprint}
            </span>
          ) : (
            <span className="text-faint">—</span>
          );
        },
      },
      {
        id: "endpoint",
        header: t("rejected.endpoint"),
        cell: (one) => <span className="font-mono text-xs">{one.endpoint}</span>,
      },
      { id: "format", header: t("rejected.format"), hidden: true, cell: (one) => one.clientFormat },
      {
        id: "client",
        header: t("rejected.client"),
        cell: (one) => (
          <span className="block max-w-80 truncate text-quiet" title={one.userAgent ?? undefined}>
            {one.userAgent ?? "—"}
          </span>
        ),
      },
      {
        id: "first",
        header: t("rejected.first"),
        value: (one) => one.firstAt,
        cell: (one) => <Time at={one.firstAt} relative={false} />,
      },
    ],
    [t, users],
  );
}
