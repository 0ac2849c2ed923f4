/** The further keys of a provider's form: a name, the key, and whether requests use it. */
import { Plus, Trash2 } from "lucide-react";
import type { UseFormReturn } from "react-hook-form";
import { useFieldArray } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { NumberField, TextField } from "@/parts/fields";
import { Button, IconButton } from "@/ui/button";
import { Section, Switch } from "@/ui/field";
import { useField } from "./form-sections";
import type { Values } from "./values";

export function Keys({ form }: { form: UseFormReturn<Values> }) {
  const { t } = useTranslation();
  const field = useField(form);
  const { control, formState, register } = form;
  const { fields, append, remove } = useFieldArray({ control, name: "credentials" });
  const fault =
    formState.errors.credentials?.message ?? formState.errors.credentials?.root?.message;
  return (
    <Section title={t("providers.sections.keys")} help={t("providers.sections.keysHelp")}>
      {fields.map((one, at) => (
        <fieldset
          key={one.id}
          className="grid gap-3 border-b border-line pb-3 sm:col-span-2 sm:grid-cols-2"
          aria-label={t("providers.keys.one", { name: one.name || at + 2 })}
        >
          <TextField
            form={form}
            name={`credentials.${at}.name`}
            label={t("providers.keys.name")}
            control={{ maxLength: 64 }}
          />
          <TextField
            form={form}
            name={`credentials.${at}.key`}
            label={t("providers.keys.text")}
            mono
            control={{
              type: "password",
              autoComplete: "new-password",
              placeholder: one.stored && `${one.stored} · ${t("providers.keyUnchanged")}`,
            }}
          />
          <div className="flex items-center justify-between gap-2 sm:col-span-2">
            <Switch label={t("providers.keys.use")} {...register(`credentials.${at}.is_enabled`)} />
            <IconButton
              size="sm"
              label={t("providers.keys.remove", { name: one.name })}
              icon={<Trash2 className="size-4" aria-hidden />}
              onClick={() => remove(at)}
            />
          </div>
        </fieldset>
      ))}
      {fault && (
        <p className="text-xs text-bad sm:col-span-2" role="alert">
          {fault}
        </p>
      )}
      <div className="sm:col-span-2">
        <Button
          size="sm"
          icon={<Plus className="size-3.5" aria-hidden />}
          onClick={() => append({ name: "", key: "", is_enabled: true, stored: "", was: null })}
        >
          {t("providers.keys.add")}
        </Button>
      </div>
      {fields.length > 0 && (
        <Switch
          label={t("providers.fields.key_is_enabled")}
          className="sm:col-span-2"
          {...register("key_is_enabled")}
        />
      )}
      <NumberField {...field("quota_guard")} unit="%" optional />
    </Section>
  );
}
