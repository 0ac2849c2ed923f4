/**
 * The frame of a settings form: faults at their fields, what somebody else saves shows (but not
 * over what is being typed), and a bar that appears when something was changed. Leaving the page
 * with it open asks first.
 */
import { type ReactNode, useEffect, useRef } from "react";
import type { FieldValues, UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { useSubmit } from "@/parts/form";
import { Button } from "@/ui/button";
import { useDiscard } from "@/ui/discard";
import { Notice } from "@/ui/status";
import { useToast } from "@/ui/toast";

interface Props<T extends FieldValues> {
  form: UseFormReturn<T>;
  /** What is in force, as the form holds it; the same object until it changes. */
  saved: T;
  /** Saves, and gives what is in force then. */
  onSubmit: (values: T) => Promise<T>;
  children: ReactNode;
}

export function SettingsForm<T extends FieldValues>({ form, saved, onSubmit, children }: Props<T>) {
  const { t } = useTranslation();
  const toast = useToast();
  const place = useRef<HTMLFormElement>(null);
  const { errors } = form.formState;
  useEffect(() => form.reset(saved, { keepDirtyValues: true }), [form, saved]);
  const submit = useSubmit({
    form,
    place,
    onSubmit: async (values) => {
      form.reset(await onSubmit(values));
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

/** Saves what was changed, or takes it back. */
function SaveBar<T extends FieldValues>({ form, saved }: Pick<Props<T>, "form" | "saved">) {
  const { t } = useTranslation();
  const { isDirty, isSubmitting } = form.formState;
  const reset = () => form.reset(saved);
  useDiscard(isDirty, reset);
  if (!isDirty) return null;
  return (
    <div className="sticky bottom-4 z-10 mt-4 flex flex-wrap items-center gap-2 rounded-lg border border-line bg-raised px-4 py-2.5 shadow-lg">
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
