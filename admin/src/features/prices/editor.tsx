/** One model's price: the rates in USD per million tokens. Other fields are not changed. */
import { ChevronRight } from "lucide-react";
import { useRef } from "react";
import type { UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { ApiError, call } from "@/api/client";
import { keys } from "@/api/queries";
import { useEditor } from "@/parts/editor";
import { NumberField, TextField } from "@/parts/fields";
import { FormDrawer } from "@/parts/form";
import { Checkbox, Section } from "@/ui/field";
import { useFormat } from "@/ui/format";
import type { Price } from "./api";
import {
  byName,
  numberOf,
  RATES,
  type Rate,
  type RateName,
  rateOf,
  USUAL,
  withRates,
} from "./rates";

interface Props {
  /** `null`: a new one. */
  price: Price | null;
  /** The initial name of a new entry. */
  model?: string;
  taken: ReadonlySet<string>;
  /** `saved`: the model, if the entry was saved. */
  onClose: (saved?: string) => void;
}

interface Values {
  modelName: string;
  force: boolean;
  rates: Record<RateName, string>;
}

const LONG = RATES.filter((rate) => !USUAL.includes(rate.name));

function valuesOf(price: Price | null, model: string | undefined): Values {
  const shown = (rate: Rate) => (price === null ? "" : (rateOf(price.priceData, rate) ?? ""));
  return {
    modelName: price?.modelName ?? model ?? "",
    force: false,
    rates: Object.fromEntries(RATES.map((rate) => [rate.name, shown(rate)])) as Record<
      RateName,
      string
    >,
  };
}

export function PriceEditor({ price, model, taken, onClose }: Props) {
  const { t } = useTranslation();
  const saved = useRef<string>(undefined);
  const editor = useEditor({
    values: () => valuesOf(price, model),
    body: (typed) => typed,
    create: async ({ modelName, rates, force }: Values) => {
      if (!RATES.some((rate) => rates[rate.name].trim() !== "")) {
        const params = { field: "rates.input" };
        throw new ApiError(400, "REQUIRED_FIELD", t("prices.edit.noRate"), params);
      }
      const edited = RATES.filter(({ name }) => dirtyFields.rates?.[name]);
      const typed = Object.fromEntries(edited.map(({ name }) => [name, rates[name]]));
      // What another administrator saved meanwhile stays, except over edited rates. The OpenAPI
      // document only says "an object".
      const entry = withRates(price?.priceData ?? { mode: "chat" }, typed);
      const priceData = entry as Record<string, never>;
      const sent = { modelName: modelName.trim(), priceData, force };
      saved.current = (await call("actions/model-prices/upsertModelPrice", sent)).modelName;
    },
    rereads: [keys.prices],
    saved: () => t("prices.edit.saved", { model: saved.current }),
  });
  const { form } = editor;
  const { errors, dirtyFields } = form.formState;
  const hasLong = price !== null && LONG.some((rate) => rateOf(price.priceData, rate) !== null);
  const longFault = LONG.some((rate) => errors.rates?.[rate.name] !== undefined);
  const fitsName = (name: string) => {
    if (name.trim() === "") return t("prices.edit.noName");
    return price === null && taken.has(name.trim()) ? t("prices.edit.taken") : true;
  };
  return (
    <FormDrawer
      {...editor}
      title={
        price === null ? t("prices.edit.new") : t("prices.edit.title", { model: price.modelName })
      }
      description={t("prices.edit.help")}
      onClose={() => onClose(saved.current)}
      submit={t("ui.save")}
      names={rateAtFault}
    >
      <TextField
        form={form}
        name="modelName"
        label={t("prices.model")}
        help={t("prices.edit.modelHelp")}
        validate={fitsName}
        mono
        control={{
          autoFocus: price === null,
          spellCheck: false,
          readOnly: price !== null,
          className: "read-only:bg-sunken read-only:text-quiet",
        }}
      />
      <Section title={t("prices.edit.usual")}>
        {USUAL.map((name) => (
          <RateField key={name} rate={byName(name)} form={form} />
        ))}
      </Section>
      <details open={hasLong || longFault || undefined} className="group border-t border-line pt-4">
        <summary className="flex items-center gap-1.5 text-sm font-semibold">
          <ChevronRight
            className="size-4 text-faint transition-transform group-open:rotate-90"
            aria-hidden
          />
          {t("prices.edit.more")}
        </summary>
        <div className="mt-3 grid grid-cols-1 gap-4 sm:grid-cols-2">
          {LONG.map((rate) => (
            <RateField key={rate.name} rate={rate} form={form} />
          ))}
        </div>
      </details>
      <Checkbox
        label={t("prices.force")}
        help={t("prices.forceHelp")}
        {...form.register("force")}
      />
    </FormDrawer>
  );
}

function RateField({ rate, form }: { rate: Rate; form: UseFormReturn<Values> }) {
  const { t } = useTranslation();
  const { currency } = useFormat();
  const isRate = (typed: string) => {
    if (typed.trim() === "") return true;
    const value = numberOf(typed, rate);
    if (value === undefined) return t("prices.edit.noNumber");
    return value < 0 ? t("prices.edit.negative") : true;
  };
  return (
    <NumberField
      form={form}
      name={`rates.${rate.name}`}
      label={t(`prices.rates.${rate.name}`)}
      unit={t(`prices.per.${rate.per}`, { currency })}
      help={t(`prices.rateHelp.${rate.name}`)}
      validate={isRate}
      control={{ className: "!pr-28" }}
    />
  );
}

/**
 * The rate that a refusal names. Longest name first, because one name can be the beginning of
 * another.
 */
function rateAtFault(fault: ApiError): `rates.${RateName}` | undefined {
  const { rate: said } = fault.params;
  if (fault.field !== "priceData" || typeof said !== "string") return undefined;
  const named = RATES.filter((rate) => said.includes(rate.field));
  const rate = named.sort((a, b) => b.field.length - a.field.length)[0];
  return rate && `rates.${rate.name}`;
}
