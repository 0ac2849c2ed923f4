/** The names of a group that stand for models. */
import { Plus, Trash2 } from "lucide-react";
import type { UseFormReturn } from "react-hook-form";
import { useFieldArray } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { NumberField, TextField } from "@/parts/fields";
import { ListField } from "@/parts/list-field";
import { Button } from "@/ui/button";
import type { SystemForm } from "./api";

const isPercent = (text: string) => /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= 100;

export function Aliases({ form, group }: { form: UseFormReturn<SystemForm>; group: number }) {
  const { t } = useTranslation();
  const name = `groupFeatures.${group}.aliases` as const;
  const { fields, append, remove } = useFieldArray({ control: form.control, name });
  return (
    <div className="space-y-3">
      <p className="text-sm">{t("aliases.title")}</p>
      <p className="text-xs text-quiet">{t("aliases.help")}</p>
      {fields.map((field, at) => (
        <fieldset
          key={field.id}
          className="grid gap-3 rounded border border-line p-3 sm:grid-cols-2"
        >
          <TextField
            form={form}
            name={`${name}.${at}.name`}
            label={t("aliases.name")}
            validate={(text) => text.trim() !== "" || t("settings.system.needed")}
            control={{ placeholder: "fast", maxLength: 200 }}
            mono
          />
          <div className="flex items-end justify-end">
            <Button
              icon={<Trash2 className="size-4" aria-hidden />}
              onClick={() => remove(at)}
              aria-label={t("aliases.remove", { name: field.name })}
            >
              {t("ui.delete")}
            </Button>
          </div>
          <ListField
            form={form}
            name={`${name}.${at}.models`}
            label={t("aliases.models")}
            help={t("aliases.modelsHelp")}
            className="sm:col-span-2"
          />
          <ListField
            form={form}
            name={`${name}.${at}.degradeModels`}
            label={t("aliases.cheaper")}
            help={t("aliases.cheaperHelp")}
            placeholder={t("aliases.none")}
          />
          <NumberField
            form={form}
            name={`${name}.${at}.degradeAt`}
            label={t("aliases.degradeAt")}
            unit="%"
            validate={(text) => isPercent(String(text)) || t("aliases.percent")}
          />
        </fieldset>
      ))}
      <Button
        size="sm"
        icon={<Plus className="size-4" aria-hidden />}
        onClick={() => append({ name: "", models: [], degradeModels: [], degradeAt: 80 })}
      >
        {t("aliases.add")}
      </Button>
    </div>
  );
}
