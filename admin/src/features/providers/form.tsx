/** Creates and edits a provider, in sections; only the first is required. */
import { useQueryClient } from "@tanstack/react-query";
import type { TFunction } from "i18next";
import { useEffect, useRef } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { ApiError, call } from "@/api/client";
import { changes, showFault } from "@/api/form";
import * as queries from "@/api/queries";
import { FeatureFields } from "@/parts/feature-fields";
import { FormDrawer } from "@/parts/form";
import { ListField } from "@/parts/list-field";
import { Field, Input, NumberInput, Section, Select, Switch, Textarea } from "@/ui/field";
import { useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";
import { useToast } from "@/ui/toast";
import type { Asked } from "./api";
import { moved } from "./destination";
import { ModelsField } from "./models-field";
import type { Provider } from "./selection";
import { Trial } from "./trial";
import {
  type Body,
  badRedirect,
  body,
  copied,
  MONEY,
  TIMEOUTS,
  TYPES,
  UNITS,
  type Values,
  values,
} from "./values";
import { VendorField } from "./vendor-field";
import { follow, proposed } from "./vendors";

/** An example address of each format. */
const PLACES: Record<(typeof TYPES)[number], string> = {
  native: "api.anthropic.com",
  "native-auth": "llm.example.com",
  responses: "api.openai.com",
  "chat-compatible": "api.openai.com",
  "alt-cli": "generativelanguage.googleapis.com",
};

interface Props {
  /** The edited provider. */
  provider?: Provider;
  /** The provider that a new one copies, without its credential. */
  like?: Provider;
  onClose: () => void;
}

export function ProviderForm({ provider, like, onClose }: Props) {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const toast = useToast();
  const { currency } = useFormat();
  const initial = provider
    ? values(provider)
    : like
      ? copied(like, t("providers.copyName", like))
      : fresh();
  const form = useForm<Values>({ defaultValues: initial });
  const { register, control } = form;
  const errors = form.formState.errors as Record<string, { message?: string } | undefined>;
  const fault = (name: keyof Values) => errors[name]?.message;
  const place = (error: unknown) =>
    showFault(error, form.setError, (name) => name in initial).length > 0 &&
    error instanceof ApiError;
  // A new provider proposes its family's models until the user selects others.
  const [type, url] = form.watch(["provider_type", "url"]);
  const before = useRef<[string, string]>([type, url]);
  useEffect(() => {
    if (provider || like) return;
    const models = form.getValues("allowed_models");
    const next = follow(models, before.current, [type, url]);
    before.current = [type, url];
    if (next !== models) form.setValue("allowed_models", next);
  }, [form, provider, like, type, url]);
  const asked = () => {
    const { url, key, provider_type, proxy_url } = body(form.getValues());
    // If a stored proxy was removed from the form, the test also runs without it.
    const typed = { url, provider_type, proxy_url, ...(key ? { key } : {}) };
    return { ...typed, ...(provider ? { providerId: provider.id } : {}) } as Asked;
  };

  const elsewhere = moved(provider, form.watch("url"), form.watch("proxy_url"));
  const keyWanted = elsewhere !== undefined && form.watch("key") === "";

  const kept = provider && !elsewhere ? t("providers.keyKept", { key: provider.key }) : undefined;
  const keyHelp = provider ? kept : t(like ? "providers.keyOfCopy" : "providers.keyHelp");

  const save = async (typed: Values) => {
    if (provider) {
      const { key, ...rest } = body(typed);
      const changed = { ...changes(body(initial), rest), ...(key ? { key } : {}) };
      if (Object.keys(changed).length > 0)
        await call("actions/providers/editProvider", { providerId: provider.id, ...changed });
    } else {
      await call("actions/providers/addProvider", { ...body(typed), key: typed.key } as Body);
    }
    await cache.invalidateQueries({ queryKey: queries.keys.providers });
    await cache.invalidateQueries({ queryKey: queries.keys.health });
    return () => toast.good(provider ? t("ui.saved") : t("providers.added", { name: typed.name }));
  };

  const number = (name: keyof Values, unit?: string, placeholder?: string) => (
    <Field
      label={t(`providers.fields.${name}`)}
      help={helps(t, name)}
      error={fault(name)}
      unit={unit}
    >
      {(ids) => <NumberInput {...ids} placeholder={placeholder} {...register(name)} />}
    </Field>
  );
  const choice = (
    name: "cache_ttl_preference" | "instructions_strategy" | "daily_reset_mode",
    words: string[],
  ) => (
    <Field label={t(`providers.fields.${name}`)} help={helps(t, name)} error={fault(name)}>
      {(ids) => (
        <Select
          {...ids}
          choices={words.map((value) => ({
            value,
            label: t(`providers.words.${value}` as "providers.words.auto"),
          }))}
          {...register(name)}
        />
      )}
    </Field>
  );
  return (
    <FormDrawer
      title={provider ? t("providers.edit", { name: provider.name }) : t("providers.add")}
      description={provider ? undefined : t("providers.addHelp")}
      form={form}
      onSubmit={save}
      onClose={onClose}
      submit={provider ? t("ui.save") : t("providers.add")}
      units={UNITS}
    >
      <Section title={t("providers.sections.basics")}>
        {!provider && <VendorField form={form} />}
        <Field label={t("providers.fields.name")} error={fault("name")} className="sm:col-span-2">
          {(ids) => (
            <Input {...ids} autoFocus={!provider} autoComplete="off" {...register("name")} />
          )}
        </Field>
        <Field
          label={t("providers.fields.provider_type")}
          help={helps(t, "provider_type")}
          error={fault("provider_type")}
          className="sm:col-span-2"
        >
          {(ids) => (
            <Select
              {...ids}
              choices={TYPES.map((value) => ({ value, label: t(`providers.kinds.${value}`) }))}
              {...register("provider_type")}
            />
          )}
        </Field>
        <Field
          label={t("providers.fields.url")}
          help={helps(t, "url")}
          error={fault("url")}
          className="sm:col-span-2"
        >
          {(ids) => (
            <Input
              {...ids}
              type="url"
              placeholder={`https://${PLACES[type as "native"]}`}
              autoComplete="off"
              spellCheck={false}
              {...register("url")}
            />
          )}
        </Field>
        <Field
          label={t("providers.fields.key")}
          help={keyHelp}
          error={fault("key")}
          className="sm:col-span-2"
        >
          {(ids) => (
            <Input
              {...ids}
              type="password"
              autoComplete="new-password"
              placeholder={
                provider
                  ? t(elsewhere ? "providers.keyAgain" : "providers.keyUnchanged")
                  : undefined
              }
              className="font-mono"
              {...register("key")}
            />
          )}
        </Field>
        {keyWanted && (
          <div className="sm:col-span-2" data-testid="key-wanted">
            <Notice tone="warn">
              {t(`providers.keyMoved.${elsewhere}`, { host: host(provider?.url) })}
            </Notice>
          </div>
        )}
        <div className="sm:col-span-2">
          <Trial asked={asked} onFault={place} />
          <p className="mt-1 text-xs text-faint">{t("providers.testHelp")}</p>
        </div>
        <Switch label={t("providers.fields.is_enabled")} {...register("is_enabled")} />
      </Section>
      <Section
        title={t("providers.sections.selection")}
        help={t("providers.sections.selectionHelp")}
      >
        {number("priority")}
        {number("weight")}
        <ListField
          control={control}
          name="group_tag"
          label={t("providers.fields.group_tag")}
          help={helps(t, "group_tag")}
          placeholder="default"
          className="sm:col-span-2"
        />
        <ModelsField control={control} asked={asked} onFault={place} />
        <Field
          label={t("providers.fields.model_redirects")}
          help={helps(t, "model_redirects")}
          error={fault("model_redirects")}
          className="sm:col-span-2"
        >
          {(ids) => (
            <Textarea
              {...ids}
              className="font-mono !text-xs"
              placeholder="asked-model = sent-model"
              {...register("model_redirects", {
                validate: (lines) => {
                  const line = badRedirect(lines);
                  return line === undefined || t("providers.badRedirect", { line });
                },
              })}
            />
          )}
        </Field>
      </Section>
      <Section title={t("features.title")} help={t("features.ofProvider")}>
        <FeatureFields
          control={control}
          allowed="allowed_features"
          denied="denied_features"
          ofProvider
        />
      </Section>
      <Section title={t("providers.sections.cost")} help={t("providers.sections.costHelp")}>
        {number("cost_multiplier", "×")}
        {number("limit_concurrent_sessions", undefined, t("providers.noLimit"))}
        {MONEY.map((name) => (
          <div key={name}>{number(name, currency, t("providers.noLimit"))}</div>
        ))}
        {choice("daily_reset_mode", ["fixed", "rolling"])}
        <Field label={t("providers.fields.daily_reset_time")} error={fault("daily_reset_time")}>
          {(ids) => <Input {...ids} type="time" {...register("daily_reset_time")} />}
        </Field>
      </Section>
      <Section title={t("providers.sections.failures")} help={t("providers.sections.failuresHelp")}>
        {number("max_retry_attempts")}
        {number("circuit_breaker_failure_threshold")}
        {number("circuit_breaker_open_duration", "min")}
        {number("circuit_breaker_half_open_success_threshold")}
        {TIMEOUTS.map((name) => (
          <div key={name}>{number(name, "s", t("providers.asConfigured"))}</div>
        ))}
      </Section>
      <Section title={t("providers.sections.more")}>
        {choice("cache_ttl_preference", ["inherit", "5m", "1h"])}
        {choice("instructions_strategy", ["keep_original", "auto", "force_official"])}
        <Field
          label={t("providers.fields.proxy_url")}
          help={helps(t, "proxy_url")}
          error={fault("proxy_url")}
          className="sm:col-span-2"
        >
          {(ids) => (
            <Input {...ids} placeholder="http://proxy.example:3128" {...register("proxy_url")} />
          )}
        </Field>
        <Field
          label={t("providers.fields.note")}
          optional={t("ui.optional")}
          error={fault("note")}
          className="sm:col-span-2"
        >
          {(ids) => <Input {...ids} {...register("note")} />}
        </Field>
        <Switch
          label={t("providers.fields.preserve_client_ip")}
          help={helps(t, "preserve_client_ip")}
          className="sm:col-span-2"
          {...register("preserve_client_ip")}
        />
      </Section>
    </FormDrawer>
  );
}

/** The destination of the stored credential, as text. */
function host(url: string | undefined): string {
  try {
    return new URL(url ?? "").host;
  } catch {
    return url ?? "";
  }
}

/** A new provider, with the model names of its family. */
function fresh(): Values {
  const empty = values(undefined);
  return { ...empty, allowed_models: proposed(empty.provider_type, empty.url) };
}

/** The help text of a field, if it has one. */
function helps(t: TFunction, name: keyof Values): string | undefined {
  const text = t(`providers.help.${name}` as "providers.help.url", { defaultValue: "" });
  return text === "" ? undefined : text;
}
