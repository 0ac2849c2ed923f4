/** A form at the side: faults at their fields in the gateway's words, and nothing that was typed is lost without asking. */
import type { ReactNode } from "react";
import type { FieldValues, UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { showFault } from "@/api/form";
import { Button } from "@/ui/button";
import { useConfirm } from "@/ui/confirm";
import { Drawer } from "@/ui/dialog";
import { Notice } from "@/ui/status";

interface Props<T extends FieldValues> {
  title: string;
  description?: ReactNode;
  form: UseFormReturn<T>;
  /** Saves; what it throws is shown in the form. */
  onSubmit: (values: T) => Promise<void>;
  onClose: () => void;
  submit: string;
  /** The server's name of a field → the form's, where they differ. */
  names?: Record<string, string>;
  children: ReactNode;
  width?: string;
}

export function FormDrawer<T extends FieldValues>(props: Props<T>) {
  const { title, description, form, onSubmit, onClose, submit, names = {}, children, width } = props;
  const { t } = useTranslation();
  const confirm = useConfirm();
  const { isDirty, isSubmitting, errors } = form.formState;
  const close = async () => {
    const question = { title: t("ui.discardTitle"), body: t("ui.discardBody"), action: t("ui.discard") };
    if (!isDirty || (await confirm(question))) onClose();
  };
  const save = form.handleSubmit(async (values) => {
    try {
      await onSubmit(values);
    } catch (error) {
      showFault(error, form.setError, (name) => name in values, names as never);
    }
  });
  return (
    <Drawer
      open
      onClose={() => void close()}
      title={title}
      description={description}
      width={width}
      footer={
        <>
          {errors.root && (
            <div className="min-w-0 flex-1 basis-64">
              <Notice tone="bad">{errors.root.message}</Notice>
            </div>
          )}
          <Button onClick={() => void close()}>{t("ui.cancel")}</Button>
          <Button variant="primary" type="submit" form="drawer-form" busy={isSubmitting}>
            {submit}
          </Button>
        </>
      }
    >
      <form id="drawer-form" noValidate onSubmit={(event) => void save(event)} className="space-y-6">
        {children}
      </form>
    </Drawer>
  );
}
