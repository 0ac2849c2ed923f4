/** Cells of prices in the table and in the panel. */
import { useTranslation } from "react-i18next";
import { exactMoney, useFormat } from "@/ui/format";
import { Tag } from "@/ui/status";
import type { Price } from "./api";

/** An amount with every digit: rates are compared, so nothing is rounded. */
export function PerUnit({ value }: { value: string | number | null }) {
  const format = useFormat();
  if (value === null) return <span className="text-faint">—</span>;
  return <span className="tabular">{exactMoney(Number(value), format)}</span>;
}

export function Source({ source }: { source: Price["source"] }) {
  const { t } = useTranslation();
  return <Tag title={t(`prices.sourceHelp.${source}`)}>{t(`prices.sources.${source}`)}</Tag>;
}
