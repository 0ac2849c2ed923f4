/**
 * The selection with the current providers: tiers by priority, shares by weight, skipped providers.
 */
import { useQuery } from "@tanstack/react-query";
import { ArrowDown } from "lucide-react";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { cx } from "@/ui/cx";
import { Field, Input, Select } from "@/ui/field";
import { percent, useFormat } from "@/ui/format";
import { Bar } from "@/ui/meter";
import { Badge } from "@/ui/status";
import { useNow } from "@/ui/text";
import { type ClientFormat, type Health, type Provider, selection, type Tier } from "./selection";
import { useSpent } from "./spent";

const FORMATS = ["native", "responses", "chat-compatible", "alt-cli"] as const;

interface Props {
  providers: Provider[];
  health: Health[];
}

export function Flow({ providers, health }: Props) {
  const { t } = useTranslation();
  const [group, setGroup] = useState("");
  const [model, setModel] = useState("");
  const [clientFormat, setClientFormat] = useState<ClientFormat>();
  const { data: prices } = useQuery(queries.prices);
  const now = useNow().getTime();
  const spent = useSpent();
  const tiers = useMemo(
    () =>
      selection(providers, health, { group, model, format: clientFormat }, now, ({ id }) =>
        spent.has(id),
      ),
    [providers, health, group, model, clientFormat, now, spent],
  );
  const reached = tiers.some((tier) => tier.first);
  return (
    <div className="space-y-4">
      <p className="max-w-3xl text-sm text-quiet">{t("providers.flow.help")}</p>
      <div className="grid max-w-3xl grid-cols-1 gap-3 sm:grid-cols-3">
        <Field label={t("providers.flow.group")} help={t("providers.flow.groupHelp")}>
          {(ids) => (
            <Input
              {...ids}
              placeholder="default"
              value={group}
              onChange={(event) => setGroup(event.target.value)}
            />
          )}
        </Field>
        <Field label={t("providers.flow.model")} help={t("providers.flow.modelHelp")}>
          {(ids) => (
            <>
              <Input
                {...ids}
                list="flow-models"
                placeholder={t("providers.flow.anyModel")}
                value={model}
                onChange={(event) => setModel(event.target.value)}
              />
              <datalist id="flow-models">
                {(prices ?? []).slice(0, 300).map((price) => (
                  <option key={price.modelName} value={price.modelName} />
                ))}
              </datalist>
            </>
          )}
        </Field>
        <Field label={t("providers.flow.format")} help={t("providers.flow.formatHelp")}>
          {(ids) => (
            <Select
              {...ids}
              value={clientFormat ?? ""}
              choices={[
                { value: "", label: t("providers.flow.anyFormat") },
                ...FORMATS.map((value) => ({ value, label: t(`providers.kinds.${value}`) })),
              ]}
              onChange={(event) =>
                setClientFormat(FORMATS.find((one) => one === event.target.value))
              }
            />
          )}
        </Field>
      </div>
      <ol className="max-w-3xl space-y-1">
        {tiers.map((tier, index) => (
          <li key={tier.priority}>
            {index > 0 && (
              <div className="flex items-center gap-2 py-1 pl-6 text-xs text-faint">
                <ArrowDown className="size-4" aria-hidden />
                {t("providers.flow.next")}
              </div>
            )}
            <TierBox tier={tier} />
          </li>
        ))}
      </ol>
      {!reached && <p className="text-sm text-bad">{t("providers.flow.noneAvailable")}</p>}
      <p className="max-w-3xl text-xs text-faint">{t("providers.flow.notes")}</p>
    </div>
  );
}

function TierBox({ tier }: { tier: Tier }) {
  const { t } = useTranslation();
  const format = useFormat();
  return (
    <section
      className={cx("card p-3", tier.first && "!border-accent")}
      aria-label={t("providers.flow.tier", { priority: tier.priority })}
    >
      <div className="mb-2 flex items-center gap-2 text-xs font-medium text-quiet">
        {t("providers.flow.tier", { priority: tier.priority })}
        {tier.first && (
          <span className="rounded bg-accent-soft px-1.5 py-0.5 text-accent">
            {t("providers.flow.first")}
          </span>
        )}
      </div>
      <ul className="space-y-2">
        {tier.choices.map(({ provider, out, converts, share }) => (
          <li
            key={provider.id}
            className="grid grid-cols-[minmax(6rem,14rem)_1fr_auto] items-center gap-3 text-sm"
          >
            <span className={cx("truncate", out && "text-faint")}>{provider.name}</span>
            {out ? (
              <span>
                <Badge
                  tone={out === "circuit" || out === "cooldown" || out === "limit" ? "warn" : "off"}
                >
                  {t(`providers.out.${out}`)}
                </Badge>
              </span>
            ) : converts ? (
              <span className="text-xs text-faint">{t("providers.flow.converts")}</span>
            ) : (
              <Bar share={share} className="!mt-0" />
            )}
            <span className="tabular text-right text-xs text-quiet sm:w-32 sm:whitespace-nowrap">
              {out || converts ? "—" : percent(share, format)}{" "}
              <span className="text-faint">
                ({t("providers.flow.weight", { weight: provider.weight })})
              </span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
