/** One model's price: the rates in USD per million tokens. Other fields are not changed. */
import { ChevronRight } from "lucide-react";
import { useRef } from "react";
import { type UseFormRegister, useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { FormDrawer } from "@/parts/form";
import { Checkbox, Field, Input, NumberInput, Section } from "@/ui/field";
import { useFormat } from "@/ui/format";
import { useToast } from "@/ui/toast";
import { type Price, useSave } from "./api";
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
  const toast = useToast();
  const save = useSave();
  const form = useForm<Values>({ defaultValues: valuesOf(price, model) });
  const { errors, dirtyFields } = form.formState;
  const saved = useRef<string>(undefined);
  const hasLong = price !== null && LONG.some((rate) => rateOf(price.priceData, rate) !== null);
  const longFault = LONG.some((rate) => errors.rates?.[rate.name] !== undefined);

  const submit = async ({ modelName, rates, force }: Values) => {
    if (!RATES.some((rate) => rates[rate.name].trim() !== "")) {
      throw new ApiError(400, "REQUIRED_FIELD", t("prices.edit.noRate"), { field: "rates.input" });
    }
    // The OpenAPI document only says "an object".
    const edited = Object.fromEntries(
      RATES.filter(({ name }) => dirtyFields.rates?.[name]).map(({ name }) => [name, rates[name]]),
    );
    // What another administrator saved meanwhile stays, except over edited rates.
    const priceData = withRates(price?.priceData ?? { mode: "chat" }, edited) as Record<
      string,
      never
    >;
    const done = await save.mutateAsync({ modelName: modelName.trim(), priceData, force });
    saved.current = done.modelName;
    return () => toast.good(t("prices.edit.saved", { model: done.modelName }));
  };
  const rateProps = { register: form.register, errors: errors.rates };
  return (
    <FormDrawer
      title={
        price === null ? t("prices.edit.new") : t("prices.edit.title", { model: price.modelName })
      }
      description={t("prices.edit.help")}
      form={form}
      onSubmit={submit}
      onClose={() => onClose(saved.current)}
      submit={t("ui.save")}
      names={rateAtFault}
    >
      <Field
        label={t("prices.model")}
        help={t("prices.edit.modelHelp")}
        error={errors.modelName?.message}
      >
        {(ids) => (
          <Input
            {...ids}
            className="font-mono read-only:bg-sunken read-only:text-quiet"
            autoFocus={price === null}
            spellCheck={false}
            autoComplete="off"
            readOnly={price !== null}
            {...form.register("modelName", {
              validate: (name) =>
                name.trim() === ""
                  ? t("prices.edit.noName")
                  : price === null && taken.has(name.trim())
                    ? t("prices.edit.taken")
                    : true,
            })}
          />
        )}
      </Field>
      <Section title={t("prices.edit.usual")}>
        {USUAL.map((name) => (
          <RateField key={name} rate={byName(name)} {...rateProps} />
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
            <RateField key={rate.name} rate={rate} {...rateProps} />
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

function RateField({
  rate,
  register,
  errors,
}: {
  rate: Rate;
  register: UseFormRegister<Values>;
  errors?: Partial<Record<RateName, { message?: string }>>;
}) {
  const { t } = useTranslation();
  const { currency } = useFormat();
  return (
    <Field
      label={t(`prices.rates.${rate.name}`)}
      unit={t(`prices.per.${rate.per}`, { currency })}
      help={t(`prices.rateHelp.${rate.name}`)}
      error={errors?.[rate.name]?.message}
    >
      {(ids) => (
        <NumberInput
          {...ids}
          className="!pr-28"
          {...register(`rates.${rate.name}`, {
            validate: (typed) => {
              if (typed.trim() === "") return true;
              const value = numberOf(typed, rate);
              if (value === undefined) return t("prices.edit.noNumber");
              return value < 0 ? t("prices.edit.negative") : true;
            },
          })}
        />
      )}
    </Field>
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
