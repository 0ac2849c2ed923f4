/** The further sections of a provider's form. */
import type { UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { LinesField, NumberField, SelectField, TextField } from "@/parts/fields";
import { ListField } from "@/parts/list-field";
import { Section, Switch } from "@/ui/field";
import { useFormat } from "@/ui/format";
import type { Asked } from "./api";
import { ModelsField } from "./models-field";
import { badRedirect, MONEY, TIMEOUTS, type Values } from "./values";

type Form = UseFormReturn<Values>;

/** What a field of the form has by its name: label, and help if there is a text. */
export function useField(form: Form) {
  const { t } = useTranslation();
  return (name: keyof Values) => ({
    form,
    name,
    label: t(`providers.fields.${name}`),
    help: t(`providers.help.${name}` as "providers.help.url", { defaultValue: "" }) || undefined,
  });
}

/** What the choices of a setting are called. */
function useChoices() {
  const { t } = useTranslation();
  return (values: string[], prefix = "") =>
    values.map((value) => ({
      value,
      label: t(`providers.words.${prefix}${value}` as "providers.words.auto"),
    }));
}

interface SelectionProps {
  form: Form;
  test: { asked: () => Asked; onFault: (error: unknown) => void };
}

export function Selection({ form, test }: SelectionProps) {
  const { t } = useTranslation();
  const field = useField(form);
  const isRedirects = (lines: string) => {
    const line = badRedirect(lines);
    return line === undefined || t("providers.badRedirect", { line });
  };
  return (
    <Section title={t("providers.sections.selection")} help={t("providers.sections.selectionHelp")}>
      <NumberField {...field("priority")} />
      <NumberField {...field("weight")} />
      <ListField {...field("group_tag")} placeholder="default" className="sm:col-span-2" />
      <ModelsField form={form} {...test} />
      <LinesField
        {...field("model_redirects")}
        validate={isRedirects}
        control={{ className: "font-mono !text-xs", placeholder: "asked-model = sent-model" }}
        className="sm:col-span-2"
      />
    </Section>
  );
}

export function Cost({ form }: { form: Form }) {
  const { t } = useTranslation();
  const { currency } = useFormat();
  const field = useField(form);
  const choices = useChoices();
  const unlimited = { placeholder: t("providers.noLimit") };
  return (
    <Section title={t("providers.sections.cost")} help={t("providers.sections.costHelp")}>
      <NumberField {...field("cost_multiplier")} unit="×" />
      <NumberField {...field("limit_concurrent_sessions")} control={unlimited} />
      {MONEY.map((name) => (
        <NumberField key={name} {...field(name)} unit={currency} control={unlimited} />
      ))}
      <SelectField {...field("daily_reset_mode")} choices={choices(["fixed", "rolling"])} />
      <TextField {...field("daily_reset_time")} control={{ type: "time" }} />
    </Section>
  );
}

export function Failures({ form }: { form: Form }) {
  const { t } = useTranslation();
  const field = useField(form);
  const configured = { placeholder: t("providers.asConfigured") };
  return (
    <Section title={t("providers.sections.failures")} help={t("providers.sections.failuresHelp")}>
      <NumberField {...field("max_retry_attempts")} />
      <NumberField {...field("circuit_breaker_failure_threshold")} />
      <NumberField {...field("circuit_breaker_open_duration")} unit="min" />
      <NumberField {...field("circuit_breaker_half_open_success_threshold")} />
      <NumberField {...field("probe_interval")} unit="s" optional />
      <TextField {...field("probe_model")} mono optional />
      {TIMEOUTS.map((name) => (
        <NumberField key={name} {...field(name)} unit="s" control={configured} />
      ))}
    </Section>
  );
}

export function Further({ form }: { form: Form }) {
  const { t } = useTranslation();
  const field = useField(form);
  const choices = useChoices();
  const type = form.watch("provider_type");
  const isNative = type === "native" || type === "native-auth";
  const arePairs = (lines: string) => {
    const line = badRedirect(lines);
    return line === undefined || t("providers.badPair", { line });
  };
  const pairs = { validate: arePairs, className: "sm:col-span-2" };
  const mono = "font-mono !text-xs";
  return (
    <Section title={t("providers.sections.more")}>
      {isNative && (
        <>
          <SelectField
            {...field("cache_ttl_preference")}
            choices={choices(["inherit", "5m", "1h"])}
          />
          <SelectField
            {...field("anthropic_host")}
            choices={choices(["auto", "yes", "no"], "host_")}
          />
        </>
      )}
      {type === "responses" && (
        <>
          <SelectField
            {...field("instructions_strategy")}
            choices={choices(["keep_original", "auto", "force_official"])}
          />
          <Switch
            label={t("providers.fields.websocket")}
            help={field("websocket").help}
            className="sm:col-span-2"
            {...form.register("websocket")}
          />
        </>
      )}
      <LinesField
        {...field("custom_headers")}
        {...pairs}
        control={{ className: mono, placeholder: `x-header = text \${secret part}` }}
      />
      <LinesField
        {...field("query")}
        {...pairs}
        control={{ className: mono, placeholder: "api-version = 2024-10-21" }}
      />
      <TextField
        {...field("path_template")}
        mono
        control={{ placeholder: "/deployments/{model}/{path}" }}
        className="sm:col-span-2"
      />
      <TextField {...field("note")} optional className="sm:col-span-2" />
      <Switch
        label={t("providers.fields.preserve_client_ip")}
        help={field("preserve_client_ip").help}
        className="sm:col-span-2"
        {...form.register("preserve_client_ip")}
      />
    </Section>
  );
}
