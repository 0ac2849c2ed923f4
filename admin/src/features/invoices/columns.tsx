/** The columns of compared lines. */
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { count, useFormat } from "@/ui/format";
import { Badge } from "@/ui/status";
import type { Column } from "@/ui/table";
import { Money } from "@/ui/text";
import { TOKENS } from "./api";
import type { Row } from "./rows";

const CAUSES = [
  "report_not_complete",
  "other_day",
  "other_kind",
  "failed_after_sent",
  "outside_gateway",
  "price_changed",
  "no_price",
  "unknown_fee",
  "counted_with_model",
  "not_in_report",
] as const;

/** Differences that explain themselves. */
const HARMLESS = ["report_not_complete", "other_day", "counted_with_model"];

function Cause({ row }: { row: Row }) {
  const { t } = useTranslation();
  if (row.cause === null) return <Badge tone="good">{t("invoices.equal")}</Badge>;
  const known = CAUSES.find((cause) => cause === row.cause);
  const tone = HARMLESS.includes(row.cause) ? "plain" : "warn";
  return (
    <Badge tone={tone} title={row.explanation ?? undefined}>
      {known ? t(`invoices.causes.${known}`) : row.cause}
    </Badge>
  );
}

function Tokens({ row }: { row: Row }) {
  const { t } = useTranslation();
  const format = useFormat();
  const signed = (value: number) => `${value > 0 ? "+" : "−"}${count(Math.abs(value), format)}`;
  const parts = TOKENS.filter((kind) => row.difference[kind] !== 0).map(
    (kind) => `${t(`invoices.kindsOfTokens.${kind}`)} ${signed(row.difference[kind])}`,
  );
  if (parts.length === 0) return <span className="text-faint">—</span>;
  return <span className="tabular">{parts.join(", ")}</span>;
}

export function useColumns(): Column<Row>[] {
  const { t } = useTranslation();
  return useMemo(() => {
    const money = (id: "vendor" | "ledger" | "difference"): Column<Row> => ({
      id,
      header: t(`invoices.${id}`),
      align: "right",
      value: (row) => row[id].costUsd,
      cell: (row) => <Money amount={row[id].costUsd} none={t("invoices.noAmount")} />,
    });
    return [
      { id: "day", header: t("invoices.day"), value: (row) => row.day, cell: (row) => row.day },
      {
        id: "model",
        header: t("invoices.model"),
        value: (row) => row.model,
        cell: (row) => (
          <span className="block max-w-80 truncate" title={row.model}>
            <span className="font-mono text-xs">{row.model}</span>
            {(row.part === "fee" || row.part === "no_key") && (
              <span className="ml-1 text-xs text-faint">({t(`invoices.parts.${row.part}`)})</span>
            )}
          </span>
        ),
      },
      money("difference"),
      {
        id: "cause",
        header: t("invoices.cause"),
        value: (row) => row.cause,
        cell: (row) => <Cause row={row} />,
      },
      {
        id: "requests",
        header: t("invoices.requests"),
        align: "right",
        value: (row) => row.requests,
        cell: (row) => <Requests row={row} />,
      },
      money("vendor"),
      money("ledger"),
      { id: "tokens", header: t("invoices.tokens"), cell: (row) => <Tokens row={row} /> },
      {
        id: "provider",
        header: t("invoices.provider"),
        value: (row) => row.providerName,
        cell: (row) => row.providerName,
      },
    ];
  }, [t]);
}

function Requests({ row }: { row: Row }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (row.requests === 0) return <span className="text-faint">—</span>;
  const { providerId, model, startDate, endDate } = row.requestsFilter;
  return (
    <Link
      to="/logs"
      search={{ provider: providerId, model: model ?? undefined, from: startDate, to: endDate }}
      title={t("invoices.showRequests")}
      className="text-accent underline"
    >
      {count(row.requests, format)}
      {row.failedRequests > 0 && ` (${t("invoices.failed", { count: row.failedRequests })})`}
    </Link>
  );
}
