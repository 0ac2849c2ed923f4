/** What requests of the keys of each group may use. */
import { Plus, Trash2 } from "lucide-react";
import type { UseFormReturn } from "react-hook-form";
import { useFieldArray } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { FeatureFields } from "@/parts/feature-fields";
import { NumberField, SelectField, TextField } from "@/parts/fields";
import { Button } from "@/ui/button";
import { Card } from "@/ui/page";
import { Aliases } from "./aliases";
import type { SystemForm } from "./api";

/** Nothing, or milliseconds within the gateway's bounds. */
const isHedge = (value: unknown) => {
  const text = String(value ?? "");
  return text === "" || (/^\d+$/.test(text) && Number(text) >= 100 && Number(text) <= 60_000);
};

const STRATEGIES = ["weighted", "cheapest", "fastest"] as const;

export function GroupFeatures({ form }: { form: UseFormReturn<SystemForm> }) {
  const { t } = useTranslation();
  const { control, formState } = form;
  const { fields, append, remove } = useFieldArray({ control, name: "groupFeatures" });
  const errors = formState.errors.groupFeatures;
  return (
    <Card title={t("features.groups")}>
      <p className="mb-4 text-sm text-quiet">{t("features.ofGroup")}</p>
      <div className="space-y-4">
        {fields.map((field, at) => (
          <fieldset key={field.id} className="space-y-3 border-b border-line pb-4">
            <div className="flex items-end gap-2">
              <TextField
                form={form}
                name={`groupFeatures.${at}.group`}
                label={t("features.group")}
                validate={(text) => text.trim() !== "" || t("settings.system.needed")}
                control={{ placeholder: "default" }}
                className="min-w-0 flex-1"
              />
              <Button
                icon={<Trash2 className="size-4" aria-hidden />}
                onClick={() => remove(at)}
                aria-label={t("features.removeGroup", { name: field.group })}
              >
                {t("ui.delete")}
              </Button>
            </div>
            <SelectField
              form={form}
              name={`groupFeatures.${at}.strategy`}
              label={t("features.strategy")}
              help={t("features.strategyHelp")}
              choices={STRATEGIES.map((value) => ({
                value,
                label: t(`features.strategies.${value}`),
              }))}
            />
            <NumberField
              form={form}
              name={`groupFeatures.${at}.hedgeAfterMs`}
              label={t("features.hedge")}
              help={t("features.hedgeHelp")}
              unit="ms"
              control={{ placeholder: t("features.hedgeNever") }}
              validate={(value) => isHedge(value) || t("features.hedgeBounds")}
            />
            <FeatureFields
              form={form}
              allowed={`groupFeatures.${at}.allowed`}
              denied={`groupFeatures.${at}.denied`}
            />
            <Aliases form={form} group={at} />
          </fieldset>
        ))}
        <Button
          icon={<Plus className="size-4" aria-hidden />}
          onClick={() =>
            append({
              group: "",
              allowed: [],
              denied: [],
              strategy: "weighted",
              aliases: [],
              hedgeAfterMs: null,
            })
          }
        >
          {t("features.addGroup")}
        </Button>
        {errors?.message && <p className="text-sm text-bad">{errors.message}</p>}
      </div>
    </Card>
  );
}
