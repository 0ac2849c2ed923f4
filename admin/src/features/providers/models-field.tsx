/** The models that a provider serves: typed, or taken from the provider's own list. */
import { useMutation } from "@tanstack/react-query";
import { ListPlus } from "lucide-react";
import { type UseFormReturn, useController } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { ListField } from "@/parts/list-field";
import { Button } from "@/ui/button";
import { Notice } from "@/ui/status";
import { type Asked, testProvider } from "./api";
import { useTestWords } from "./test-result";
import type { Values } from "./values";

interface Props {
  form: UseFormReturn<Values>;
  /** The form's values, which identify the provider to query. */
  asked: () => Asked;
  onFault: (error: unknown) => void;
}

export function ModelsField({ form, asked, onFault }: Props) {
  const { t } = useTranslation();
  const { field } = useController({ control: form.control, name: "allowed_models" });
  const models = field.value;
  const listing = useMutation({
    mutationFn: () => testProvider({ ...asked(), listOnly: true }),
    onSuccess: ({ models: listed }) => listed.length > 0 && field.onChange(listed),
    onError: onFault,
  });
  const words = useTestWords();
  const found = listing.data?.models.length ?? 0;
  return (
    <div className="space-y-2 sm:col-span-2">
      <ListField
        form={form}
        name="allowed_models"
        label={t("providers.fields.allowed_models")}
        help={t("providers.help.allowed_models")}
        placeholder={t("providers.everyModel")}
      />
      <div className="flex flex-wrap items-center gap-2">
        <Button
          size="sm"
          icon={<ListPlus className="size-3.5" aria-hidden />}
          busy={listing.isPending}
          onClick={() => listing.mutate()}
        >
          {t("providers.fetchModels")}
        </Button>
        {models.length > 0 && (
          <Button size="sm" variant="ghost" onClick={() => field.onChange([])}>
            {t("providers.clearModels")}
          </Button>
        )}
        {found > 0 && (
          <span className="text-xs text-faint">{t("providers.fetched", { count: found })}</span>
        )}
      </div>
      {listing.data && found === 0 && (
        <Notice tone="warn" title={t("providers.fetchedNone")}>
          {[words(listing.data), listing.data.message].filter(Boolean).join(" — ")}
        </Notice>
      )}
      {models.length === 0 && <p className="text-xs text-warn">{t("providers.takesAll")}</p>}
    </div>
  );
}
