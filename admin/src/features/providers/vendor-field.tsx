/** Selects a well-known vendor and fills its URL, format and models into a new provider. */
import type { UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { Field, Select } from "@/ui/field";
import { type Values, values } from "./values";
import { VENDORS } from "./vendors";

const empty = values(undefined);

export function VendorField({ form }: { form: UseFormReturn<Values> }) {
  const { t } = useTranslation();
  const [url, type] = form.watch(["url", "provider_type"]);
  const chosen = VENDORS.find((one) => one.url === url && one.type === type);
  const choose = (id: string) => {
    const vendor = VENDORS.find((one) => one.id === id);
    if (!vendor) return;
    const isVendorName = VENDORS.some((one) => one.name === form.getValues("name"));
    const set = <K extends keyof Values>(name: K, value: Values[K]) =>
      form.setValue(name, value as never, { shouldDirty: true });
    set("provider_type", vendor.type);
    set("url", vendor.url);
    set("allowed_models", vendor.models);
    for (const name of ["auth", "query", "path_template", "custom_headers"] as const)
      set(name, vendor.way?.[name] ?? empty[name]);
    // Keep a name that the user typed.
    if (form.getValues("name").trim() === "" || isVendorName) set("name", vendor.name);
    form.clearErrors();
  };
  return (
    <Field
      label={t("providers.vendor")}
      help={t("providers.vendorHelp")}
      optional={t("ui.optional")}
      className="sm:col-span-2"
    >
      {(ids) => (
        <Select
          {...ids}
          value={chosen?.id ?? ""}
          choices={[
            { value: "", label: t("providers.otherVendor") },
            ...VENDORS.map(({ id, name }) => ({ value: id, label: name })),
          ]}
          onChange={(event) => choose(event.target.value)}
        />
      )}
    </Field>
  );
}
