/** One complete price: every rate, its source, and the entry's other fields. */
import { Pencil, Trash2 } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { Code, Id } from "@/ui/code";
import { useConfirm } from "@/ui/confirm";
import { Panel } from "@/ui/dialog";
import { Facts } from "@/ui/page";
import { Notice } from "@/ui/status";
import { Time } from "@/ui/text";
import { useToast } from "@/ui/toast";
import { type Price, useDelete } from "./api";
import { PerUnit, Source } from "./cells";
import { factors, RATES, rateOf, SPECIAL, searchFee, tierRates } from "./rates";

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
  const confirm = useConfirm();
  const toast = useToast();
  const remove = useDelete();
  const ask = async () => {
    const yes = await confirm({
      title: t("prices.delete.title", { model: price.modelName }),
      body: t("prices.delete.body"),
      action: t("prices.delete.action"),
    });
    if (!yes) return;
    remove.mutate(
      { modelName: price.modelName },
      {
        onSuccess: () => {
          onClose();
          toast.good(t("prices.delete.done", { model: price.modelName }));
        },
        onError: toast.failed,
      },
    );
  };
  const rates = RATES.flatMap((rate) => {
    const value = rateOf(price.priceData, rate);
    return value === null ? [] : [{ rate, value }];
  });
  const tiers = tierRates(price.priceData, price.unapplied);
  const fee = searchFee(price.priceData);
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
          <Button
            variant="ghost"
            className="mr-auto !text-bad"
            icon={<Trash2 className="size-4" aria-hidden />}
            busy={remove.isPending}
            onClick={() => void ask()}
          >
            {t("ui.delete")}
          </Button>
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
        <div>
          <h3 className="mb-2">{t("prices.panel.rates")}</h3>
          <dl className="divide-y divide-line rounded-lg border border-line text-sm">
            {rates.map(({ rate, value }) => (
              <Line key={rate.name} name={t(`prices.rates.${rate.name}`)}>
                <PerUnit value={value} />{" "}
                <span className="text-xs text-faint">{t(`prices.each.${rate.per}`)}</span>
              </Line>
            ))}
            {fee !== null && (
              <Line name={t("logs.costs.kinds.web_search")}>
                <PerUnit value={fee} />{" "}
                <span className="text-xs text-faint">{t("prices.each.search")}</span>
              </Line>
            )}
            {factors(price.priceData).map(({ name, value }) => (
              <Line key={name} name={t(`prices.factors.${name}`)}>
                <span className="tabular">× {value}</span>
              </Line>
            ))}
          </dl>
          <p className="mt-1.5 text-xs text-faint">{t("prices.panel.fallback")}</p>
        </div>
        {tiers.length > 0 && (
          <div>
            <h3 className="mb-2">{t("prices.panel.tiers")}</h3>
            <dl className="divide-y divide-line rounded-lg border border-line text-xs">
              {tiers.map(({ field, value }) => (
                <div key={field} className="flex items-baseline justify-between gap-4 px-3 py-1.5">
                  <dt className="min-w-0 font-mono break-words text-quiet">{field}</dt>
                  <dd className="shrink-0 text-right">
                    <PerUnit value={value} />{" "}
                    <span className="text-faint">{t("prices.each.million")}</span>
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

function Line({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex items-baseline justify-between gap-4 px-3 py-1.5">
      <dt className="text-quiet">{name}</dt>
      <dd className="text-right">{children}</dd>
    </div>
  );
}
