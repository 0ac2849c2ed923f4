/**
 * The frames of forms: at the side (`FormDrawer`), in the middle (`FormDialog`). Faults stand at
 * their fields in the gateway's words, and nothing that was typed is lost without asking.
 * `useSubmit` is the same for forms that are a page.
 */
import { type ReactNode, type RefObject, useEffect, useId, useRef } from "react";
import type { FieldValues, Path, UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { awayFromField, type Names, type Placed, showFault } from "@/api/form";
import { Button } from "@/ui/button";
import { Dialog, Drawer } from "@/ui/dialog";
import { useDiscard } from "@/ui/discard";
import { Notice } from "@/ui/status";

interface Submit<T extends FieldValues> {
  form: UseFormReturn<T>;
  /** Saves; what it throws is shown in the form. */
  onSubmit: (values: T) => Promise<void>;
  names?: Names<T>;
  /** Where the fields are. */
  place: RefObject<HTMLFormElement | null>;
}

/** What a form does when it is sent. */
export function useSubmit<T extends FieldValues>({ form, onSubmit, names, place }: Submit<T>) {
  /** Faults that were just put at fields. */
  const told = useRef<Placed[]>([]);
  // Once they are drawn: the first may be scrolled out of sight in a long form, and some may not be
  // shown at all.
  useEffect(() => {
    const faults = told.current;
    if (faults.length === 0) return;
    told.current = [];
    const shown = place.current?.querySelector<HTMLElement>("[aria-invalid]");
    if (shown) reveal(shown);
    const away = faults.filter(({ name }) => !isShown(place.current, name));
    if (away.length > 0) {
      const before = form.formState.errors.root?.message;
      const messages = away.map(({ fault }) => awayFromField(fault));
      // A fault at a field that is not there would stay, and keep the form from ever being sent
      // again.
      for (const { name } of away) form.clearErrors(name as Path<T>);
      form.setError("root", { message: [before, ...messages].filter(Boolean).join(" · ") });
    }
  });
  return form.handleSubmit(async (values) => {
    try {
      await onSubmit(values);
    } catch (error) {
      told.current = showFault(error, form.setError, (name) => name in values, names);
    }
  });
}

/** Whether a field of that name is drawn with a fault. */
function isShown(form: HTMLFormElement | null, name: string) {
  const faulty = [...(form?.querySelectorAll("[aria-invalid]") ?? [])];
  return faulty.some((field) => field.getAttribute("name") === name);
}

/** Scrolls to a field, opens a folded section around it, and focuses it. */
function reveal(field: HTMLElement) {
  const folded = field.closest("details");
  if (folded) folded.open = true;
  field.scrollIntoView({ block: "center" });
  field.focus({ preventScroll: true });
}

interface Props<T extends FieldValues> extends Omit<Submit<T>, "place"> {
  title: string;
  description?: ReactNode;
  onClose: () => void;
  /** The words on the button that saves. */
  submit: string;
  /** Nothing can be saved yet. */
  disabled?: boolean;
  /** Left of the buttons: the delete button. `gone` closes without asking about unsaved changes. */
  extra?: (gone: () => void) => ReactNode;
  children: ReactNode;
  width?: string;
}

function FormFrame<T extends FieldValues>({ as: Box, ...props }: Props<T> & { as: typeof Dialog }) {
  const {
    title,
    description,
    form,
    onSubmit,
    onClose,
    submit,
    disabled,
    extra,
    names,
    children,
    width,
  } = props;
  const { t } = useTranslation();
  const id = useId();
  const place = useRef<HTMLFormElement>(null);
  const { isDirty, isSubmitting, errors } = form.formState;
  const { close, release } = useDiscard(isDirty, onClose);
  const gone = () => {
    release(true);
    onClose();
  };
  const save = useSubmit({
    form,
    names,
    place,
    onSubmit: async (values) => {
      release(true);
      try {
        await onSubmit(values);
        onClose();
      } catch (error) {
        release(false);
        throw error;
      }
    },
  });
  return (
    <Box
      open
      onClose={close}
      title={title}
      description={description}
      width={width}
      footer={
        <>
          {extra?.(gone)}
          {errors.root && (
            <div className="min-w-0 flex-1 basis-64">
              <Notice tone="bad">{errors.root.message}</Notice>
            </div>
          )}
          <Button onClick={close}>{t("ui.cancel")}</Button>
          <Button variant="primary" type="submit" form={id} busy={isSubmitting} disabled={disabled}>
            {submit}
          </Button>
        </>
      }
    >
      <form
        id={id}
        ref={place}
        noValidate
        onSubmit={(event) => void save(event)}
        className="space-y-5"
      >
        {children}
      </form>
    </Box>
  );
}

/** A form at the side. Closes itself when it was saved. */
export function FormDrawer<T extends FieldValues>(props: Props<T>) {
  return <FormFrame as={Drawer} {...props} />;
}

/** A short form in the middle. Closes itself when it was saved. */
export function FormDialog<T extends FieldValues>(props: Props<T>) {
  return <FormFrame as={Dialog} {...props} />;
}
