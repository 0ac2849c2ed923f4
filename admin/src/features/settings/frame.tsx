/**
 * The frame of a settings form. It shows faults at their fields, and changes that other users save,
 * except over edited fields. A bar with the save button appears when something was edited. Leaving
 * the page then asks first.
 */
import { type ReactNode, useEffect, useRef } from "react";
import type { FieldValues, Path, UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { useSubmit } from "@/parts/form";
import { Button } from "@/ui/button";
import { cx } from "@/ui/cx";
import { useDiscard } from "@/ui/discard";
import { Notice } from "@/ui/status";
import { useToast } from "@/ui/toast";

interface Props<T extends FieldValues> {
  form: UseFormReturn<T>;
  /** The current values as the form holds them; the same object until they change. */
  saved: T;
  /** Saves, and returns the values that are then current. */
  onSubmit: (values: T) => Promise<T>;
  units?: Readonly<Record<string, number>>;
  children: ReactNode;
}

export function SettingsForm<T extends FieldValues>(props: Props<T>) {
  const { form, saved, onSubmit, units, children } = props;
  const { t } = useTranslation();
  const toast = useToast();
  const place = useRef<HTMLFormElement>(null);
  const { errors } = form.formState;
  useEffect(() => form.reset(saved, { keepDirtyValues: true }), [form, saved]);
  const submit = useSubmit({
    form,
    units,
    place,
    onSubmit: async (values) => {
      const after = await onSubmit(values);
      const typed = form.getValues();
      form.reset(after);
      // What was typed while it was being saved is a new edit.
      for (const name of Object.keys(values) as Path<T>[])
        if (JSON.stringify(typed[name]) !== JSON.stringify(values[name]))
          form.setValue(name, typed[name], { shouldDirty: true });
      toast.good(t("ui.saved"));
    },
  });
  return (
    <form ref={place} noValidate className="space-y-4" onSubmit={(event) => void submit(event)}>
      {errors.root && <Notice tone="bad">{errors.root.message}</Notice>}
      {children}
      <SaveBar form={form} saved={saved} />
    </form>
  );
}

/** Saves the edits, or discards them. */
function SaveBar<T extends FieldValues>({ form, saved }: Pick<Props<T>, "form" | "saved">) {
  const { t } = useTranslation();
  const { isDirty, isSubmitting } = form.formState;
  const reset = () => form.reset(saved);
  useDiscard(isDirty, reset);
  if (!isDirty) return null;
  return (
    <div
      className={cx(
        "sticky bottom-4 z-10 mt-4 flex flex-wrap items-center gap-2",
        "rounded-lg border border-line bg-raised px-4 py-2.5 shadow-lg",
      )}
    >
      <span className="min-w-0 flex-1 text-sm">{t("settings.unsaved")}</span>
      <Button onClick={reset} disabled={isSubmitting}>
        {t("ui.discard")}
      </Button>
      <Button type="submit" variant="primary" busy={isSubmitting}>
        {t("ui.save")}
      </Button>
    </div>
  );
}
