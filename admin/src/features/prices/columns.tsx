/** The columns of the price table: rates per million tokens, each exact. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Column } from "@/ui/table";
import { Count, Time } from "@/ui/text";
import type { Price } from "./api";
import { PerUnit, Source } from "./cells";
import { byName, rateOf } from "./rates";

const SHOWN = ["input", "output", "cacheRead", "cacheWrite5m"] as const;
const HIDDEN = ["cacheWrite1h", "request", "longInput", "longOutput"] as const;

const text = (value: unknown) => (typeof value === "string" ? value : "");
const whole = (value: unknown) => {
  const read = typeof value === "string" ? Number(value) : value;
  return typeof read === "number" && Number.isFinite(read) ? read : undefined;
};

export function useColumns(): Column<Price>[] {
  const { t } = useTranslation();
  return useMemo(() => {
    const rate = (
      name: (typeof SHOWN | typeof HIDDEN)[number],
      hidden: boolean,
    ): Column<Price> => ({
      id: name,
      header: t(`prices.columns.${name}`),
      align: "right",
      hidden,
      value: ({ priceData }) => {
        const value = rateOf(priceData, byName(name));
        return value === null ? undefined : Number(value);
      },
      cell: ({ priceData }) => <PerUnit value={rateOf(priceData, byName(name))} />,
    });
    return [
      {
        id: "model",
        header: t("prices.model"),
        value: (price) => price.modelName,
        className: "max-w-56 sm:max-w-96",
        cell: ({ modelName }) => (
          <span className="block truncate font-mono text-xs" title={modelName}>
            {modelName}
          </span>
        ),
      },
      ...SHOWN.map((name) => rate(name, false)),
      ...HIDDEN.map((name) => rate(name, true)),
      {
        id: "context",
        header: t("prices.context"),
        align: "right",
        value: ({ priceData }) => whole(priceData.max_input_tokens ?? priceData.max_tokens),
        cell: ({ priceData }) => (
          <Count value={whole(priceData.max_input_tokens ?? priceData.max_tokens)} short />
        ),
      },
      {
        id: "vendor",
        header: t("prices.vendor"),
        value: ({ priceData }) => text(priceData.litellm_provider),
        cell: ({ priceData }) => text(priceData.litellm_provider),
      },
      {
        id: "mode",
        header: t("prices.mode"),
        hidden: true,
        value: (p) => text(p.priceData.mode),
        cell: (p) => text(p.priceData.mode),
      },
      {
        id: "source",
        header: t("prices.source"),
        value: (price) => price.source,
        cell: ({ source }) => <Source source={source} />,
      },
      {
        id: "updated",
        header: t("prices.updated"),
        value: (price) => price.updatedAt,
        cell: ({ updatedAt }) => <Time at={updatedAt} />,
      },
    ];
  }, [t]);
}
