/** Hints above the table: models without a price, with a button that adds it, and unused prices. */
import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { count, useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";
import { type Price, unpriced } from "./api";
import { modelsByField } from "./unapplied";

const SHOWN = 6;

export function UnpricedHint({ onAdd }: { onAdd: (model: string) => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { models, passLimits } = useQuery(unpriced).data ?? { models: [] };
  if (models.length === 0) return null;
  const more = models.length - SHOWN;
  return (
    <div className="mb-3">
      <Notice tone="warn" title={t("prices.unpriced.title", { count: models.length })}>
        <p className="max-sm:hidden">{t("prices.unpriced.help")}</p>
        {passLimits && <p className="mt-1">{t("prices.unpriced.refuse")}</p>}
        <ul className="mt-2 flex flex-wrap gap-1.5">
          {models.slice(0, SHOWN).map(({ modelName: model, requests }) => (
            <li key={model} className="max-w-full min-w-0">
              <Button
                size="sm"
                icon={<Plus className="size-3.5 shrink-0" aria-hidden />}
                aria-label={t("prices.unpriced.add", { model })}
                onClick={() => onAdd(model)}
                className="max-w-full"
              >
                <span className="truncate font-mono">{model}</span>
                {requests > 0 && (
                  <span className="text-faint">
                    {t("prices.unpriced.requests", {
                      count: requests,
                      number: count(requests, format),
                    })}
                  </span>
                )}
              </Button>
            </li>
          ))}
          {more > 0 && (
            <li className="self-center text-xs">{t("prices.unpriced.more", { count: more })}</li>
          )}
        </ul>
      </Notice>
    </div>
  );
}

/** Fields that look like prices but that no request is charged by, with their number of models. */
export function UnappliedHint({ prices }: { prices: Price[] }) {
  const { t } = useTranslation();
  const fields = modelsByField(prices);
  if (fields.length === 0) return null;
  const models = prices.filter(({ unapplied }) => unapplied.length > 0).length;
  const more = fields.length - SHOWN;
  return (
    <div className="mb-3">
      <Notice tone="plain" title={t("prices.unapplied.title", { count: models })}>
        <p className="max-sm:hidden">{t("prices.unapplied.help")}</p>
        <ul className="mt-2 flex flex-wrap gap-x-3 gap-y-1 text-xs max-sm:hidden">
          {fields.slice(0, SHOWN).map(({ field, models }) => (
            <li key={field} className="max-w-full min-w-0 break-words">
              <span className="font-mono">{field}</span>{" "}
              <span className="text-faint">{t("prices.unapplied.models", { count: models })}</span>
            </li>
          ))}
          {more > 0 && (
            <li className="text-faint">{t("prices.unapplied.more", { count: more })}</li>
          )}
        </ul>
      </Notice>
    </div>
  );
}
