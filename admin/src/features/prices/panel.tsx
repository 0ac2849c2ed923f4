/** One complete price: every rate, its source, and the entry's other fields. */
import { Pencil } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { DeleteButton } from "@/parts/delete";
import { Button } from "@/ui/button";
import { Code, Id } from "@/ui/code";
import { Panel } from "@/ui/dialog";
import { Facts } from "@/ui/page";
import { Notice } from "@/ui/status";
import { Time } from "@/ui/text";
import { type Price, useDelete } from "./api";
import { PerUnit, Source } from "./cells";
import { RATES, rateOf, SPECIAL, tierRates } from "./rates";

export function PricePanel({
  price,
  onClose,
  onEdit,
}: {
  price: Price;
  onClose: () => void;
  onEdit: () => void;
}) {
  const { t } = useTranslation();
  const remove = useDelete();
  const tiers = tierRates(price.priceData, price.unapplied);
  const known = new Set<string>([
    ...RATES.map((rate) => rate.field),
    ...SPECIAL,
    ...tiers.map(({ field }) => field),
  ]);
  const others = Object.fromEntries(
    Object.entries(price.priceData).filter(([field]) => !known.has(field)),
  );
  return (
    <Panel
      open
      onClose={onClose}
      title={<Id value={price.modelName} />}
      width="sm:max-w-lg"
      footer={
        <>
          <DeleteButton
            question={{
              title: t("prices.delete.title", { model: price.modelName }),
              body: t("prices.delete.body"),
              action: t("prices.delete.action"),
            }}
            remove={() => remove.mutateAsync({ modelName: price.modelName })}
            done={t("prices.delete.done", { model: price.modelName })}
            onDone={onClose}
          />
          <Button
            variant="primary"
            icon={<Pencil className="size-4" aria-hidden />}
            onClick={onEdit}
          >
            {t("ui.edit")}
          </Button>
        </>
      }
    >
      <div className="space-y-5">
        <Facts
          facts={[
            [t("prices.source"), <Source key="source" source={price.source} />],
            [t("prices.updated"), <Time key="updated" at={price.updatedAt} />],
          ]}
        />
        <Rates price={price} />
        {tiers.length > 0 && (
          <div>
            <h3 className="mb-2">{t("prices.panel.tiers")}</h3>
            <dl className="divide-y divide-line rounded-lg border border-line text-xs">
              {tiers.map(({ field, value, perMillion }) => (
                <div key={field} className="flex items-baseline justify-between gap-4 px-3 py-1.5">
                  <dt className="min-w-0 font-mono break-words text-quiet">{field}</dt>
                  <dd className="shrink-0 text-right">
                    <PerUnit value={value} />
                    {perMillion && <span className="text-faint"> {t("prices.each.million")}</span>}
                  </dd>
                </div>
              ))}
            </dl>
          </div>
        )}
        {price.unapplied.length > 0 && (
          <Notice tone="warn" title={t("prices.unapplied.one")}>
            <p>{t("prices.unapplied.oneHelp")}</p>
            <ul className="mt-1 font-mono text-xs break-words">
              {price.unapplied.map((field) => (
                <li key={field}>{field}</li>
              ))}
            </ul>
          </Notice>
        )}
        {Object.keys(others).length > 0 && (
          <div>
            <h3 className="mb-2">{t("prices.panel.others")}</h3>
            <Code text={JSON.stringify(others, null, 2)} label={t("prices.panel.othersHelp")} />
          </div>
        )}
      </div>
    </Panel>
  );
}

/** The rates that have a name, the fee of a web search, and the factors. */
function Rates({ price }: { price: Price }) {
  const { t } = useTranslation();
  const factors = { fast: price.fastFactor, us: price.usFactor };
  return (
    <div>
      <h3 className="mb-2">{t("prices.panel.rates")}</h3>
      <dl className="divide-y divide-line rounded-lg border border-line text-sm">
        {RATES.map((rate) => ({ rate, value: rateOf(price.priceData, rate) }))
          .filter(({ value }) => value !== null)
          .map(({ rate, value }) => (
            <Line key={rate.name} name={t(`prices.rates.${rate.name}`)}>
              <PerUnit value={value} />{" "}
              <span className="text-xs text-faint">{t(`prices.each.${rate.per}`)}</span>
            </Line>
          ))}
        {price.webSearchUsd !== null && (
          <Line name={t("logs.costs.kinds.web_search")}>
            <PerUnit value={price.webSearchUsd} />{" "}
            <span className="text-xs text-faint">{t("prices.each.search")}</span>
          </Line>
        )}
        {(["fast", "us"] as const).map(
          (name) =>
            factors[name] !== null && (
              <Line key={name} name={t(`prices.factors.${name}`)}>
                <span className="tabular">× {factors[name]}</span>
              </Line>
            ),
        )}
      </dl>
      <p className="mt-1.5 text-xs text-faint">{t("prices.panel.fallback")}</p>
    </div>
  );
}

function Line({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex items-baseline justify-between gap-4 px-3 py-1.5">
      <dt className="text-quiet">{name}</dt>
      <dd className="text-right">{children}</dd>
    </div>
  );
}
