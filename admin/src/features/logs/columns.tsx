/** The log's columns. */
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import { type Entry, outcomeOf, tokensIn, toneOf } from "@/parts/request/entry";
import { percent, useFormat } from "@/ui/format";
import { Badge, Tag } from "@/ui/status";
import type { Column } from "@/ui/table";
import { Count, Duration, Money, Time } from "@/ui/text";
import { errorShare } from "./values";

interface Totals {
  requests: number;
  errors: number;
  limitRefusals: number;
  costUsd: number;
  inputTokens: number;
  outputTokens: number;
}

/** `admin`: shows the column of users. */
export function columns(t: TFunction, admin: boolean, totals: Totals | undefined): Column<Entry>[] {
  const all: Column<Entry>[] = [
    {
      id: "time",
      header: t("logs.time"),
      cell: (entry) => <Time at={entry.createdAt} relative={false} />,
      footer: totals && t("logs.total", { count: totals.requests }),
    },
    {
      id: "status",
      header: t("logs.status"),
      cell: (entry) => <Outcome entry={entry} />,
      footer: totals && <Errors totals={totals} />,
    },
    ...(admin
      ? [
          {
            id: "user",
            header: t("logs.user"),
            className: "max-w-40 truncate",
            cell: (entry: Entry) => (
              <span title={entry.userName ?? undefined}>{entry.userName ?? t("logs.admin")}</span>
            ),
          },
        ]
      : []),
    {
      id: "key",
      header: t("logs.key"),
      hidden: !admin,
      className: "max-w-32 truncate",
      cell: (entry) => <span title={entry.keyName ?? undefined}>{entry.keyName ?? "—"}</span>,
    },
    {
      id: "model",
      header: t("logs.model"),
      className: "max-w-56 truncate",
      cell: (entry) => (
        <span title={entry.upstreamModel ? `${entry.model} → ${entry.upstreamModel}` : entry.model}>
          {entry.model || "—"}
          {entry.upstreamModel && <span className="text-faint"> → {entry.upstreamModel}</span>}
        </span>
      ),
    },
    {
      id: "provider",
      header: t("logs.provider"),
      className: "max-w-40 truncate",
      cell: (entry) => (
        <span title={entry.providerName ?? undefined}>{entry.providerName ?? "—"}</span>
      ),
    },
    {
      id: "format",
      header: t("logs.format"),
      hidden: true,
      cell: (entry) =>
        entry.providerFormat && entry.providerFormat !== entry.clientFormat
          ? `${entry.clientFormat} → ${entry.providerFormat}`
          : entry.clientFormat,
    },
    {
      id: "in",
      header: t("logs.tokensIn"),
      align: "right",
      cell: (entry) => <Count value={tokensIn(entry)} short />,
      footer: totals && <Count value={totals.inputTokens} short />,
    },
    {
      id: "cached",
      header: t("logs.cached"),
      align: "right",
      hidden: true,
      cell: (entry) => <Count value={entry.cacheReadTokens} short />,
    },
    {
      id: "out",
      header: t("logs.tokensOut"),
      align: "right",
      cell: (entry) => <Count value={entry.outputTokens} short />,
      footer: totals && <Count value={totals.outputTokens} short />,
    },
    {
      id: "cost",
      header: t("logs.cost"),
      align: "right",
      cell: (entry) =>
        entry.costUsd === null ? (
          <Badge tone="warn">{t("logs.unpriced")}</Badge>
        ) : (
          <span title={entry.estimated ? t("logs.estimated") : undefined}>
            {entry.estimated && "≈ "}
            <Money amount={entry.costUsd} />
          </span>
        ),
      footer: totals && <Money amount={totals.costUsd} />,
    },
    {
      id: "ttfb",
      header: t("logs.ttfb"),
      align: "right",
      cell: (entry) => <Duration ms={entry.ttfbMs} />,
    },
    {
      id: "duration",
      header: t("logs.duration"),
      align: "right",
      cell: (entry) => <Duration ms={entry.durationMs} />,
    },
    {
      id: "overhead",
      header: t("logs.overhead"),
      align: "right",
      hidden: true,
      cell: (entry) => <span className="tabular">{entry.overheadUs} µs</span>,
    },
    {
      id: "attempts",
      header: t("logs.attempts"),
      align: "right",
      cell: (entry) => (entry.attempts > 1 ? <b>{entry.attempts}</b> : entry.attempts),
    },
    {
      id: "streamed",
      header: t("logs.streamed"),
      hidden: true,
      cell: (entry) => (entry.streamed ? t("ui.yes") : t("ui.no")),
    },
    {
      id: "endpoint",
      header: t("logs.endpoint"),
      hidden: true,
      cell: (entry) => <Tag>{entry.endpoint}</Tag>,
    },
    {
      id: "session",
      header: t("logs.session"),
      hidden: true,
      className: "max-w-40 truncate font-mono",
      cell: (entry) => entry.sessionId ?? "—",
    },
    {
      id: "client",
      header: t("logs.client"),
      hidden: true,
      className: "max-w-48 truncate",
      cell: (entry) => entry.userAgent ?? "—",
    },
    {
      id: "address",
      header: t("logs.address"),
      hidden: true,
      cell: (entry) => entry.clientAddress ?? "—",
    },
    {
      id: "id",
      header: t("logs.id"),
      hidden: true,
      className: "font-mono",
      cell: (entry) => entry.requestId,
    },
  ];
  return all;
}

function Outcome({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  return (
    <Badge tone={toneOf(entry)} title={entry.errorMessage ?? undefined}>
      {entry.statusCode}{" "}
      {entry.outcome === "completed" ? "" : t(`logs.outcomes.${outcomeOf(entry)}`)}
    </Badge>
  );
}

/** The share of errors, and separately that of refusals by limits, which are not errors. */
function Errors({ totals }: { totals: Totals }) {
  const { t } = useTranslation();
  const format = useFormat();
  return (
    <span className="block py-1 leading-tight whitespace-nowrap" data-testid="error-share">
      {t("logs.errorRate", { rate: percent(errorShare(totals), format) })}
      {totals.limitRefusals > 0 && (
        <span className="block text-xs font-normal text-faint">
          {t("logs.refusals", { count: totals.limitRefusals })}
        </span>
      )}
    </span>
  );
}
