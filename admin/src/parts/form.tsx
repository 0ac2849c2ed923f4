/**
 * The frames of forms: a drawer at the side (`FormDrawer`) and a dialog in the middle
 * (`FormDialog`). They show the gateway's faults at the fields, and ask before they discard input.
 * `useSubmit` does the same for forms that are a page.
 */
import { type ReactNode, type RefObject, useEffect, useId, useRef } from "react";
import type { FieldValues, Path, UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { awayFromField, type Names, type Placed, showFault } from "@/api/form";
import { Button } from "@/ui/button";
import { Dialog, Drawer } from "@/ui/dialog";
import { useDiscard } from "@/ui/discard";
import { Notice } from "@/ui/status";
import { DeleteButton, type Deletion } from "./delete";

interface Submit<T extends FieldValues> {
  form: UseFormReturn<T>;
  /** Saves; an error that it throws is shown in the form. */
  onSubmit: (values: T) => Promise<void>;
  names?: Names<T>;
  /** The units of fields, in those of the API, where they differ. */
  units?: Readonly<Record<string, number>>;
  /** The element that contains the fields. */
  place: RefObject<HTMLFormElement | null>;
}

/** Submits a form. */
export function useSubmit<T extends FieldValues>(options: Submit<T>) {
  const { form, onSubmit, names, units, place } = options;
  /** The faults that were just put at fields. */
  const told = useRef<Placed[]>([]);
  // After they are rendered: the first may be out of sight in a long form, and some fields may not
  // be rendered.
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
      // A fault at a field that does not exist would stay, and prevent every further submit.
      for (const { name } of away) form.clearErrors(name as Path<T>);
      form.setError("root", { message: [before, ...messages].filter(Boolean).join(" · ") });
    }
  });
  return form.handleSubmit(async (values) => {
    try {
      await onSubmit(values);
    } catch (error) {
      told.current = showFault(error, form.setError, (name) => name in values, names, units);
    }
  });
}

/** Whether a field of that name is rendered with a fault. */
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

interface Props<T extends FieldValues> extends Omit<Submit<T>, "place" | "onSubmit"> {
  title: string;
  /**
   * Saves; an error that it throws is shown in the form. Returns what follows when the form is
   * closed: a message, or another dialog. Who sees that need not wait for the form.
   */
  onSubmit: (values: T) => Promise<() => void>;
  description?: ReactNode;
  onClose: () => void;
  /** The label of the save button. */
  submit: string;
  /** Saving is not possible yet. */
  disabled?: boolean;
  /** The delete button, left of the others. It closes without asking about unsaved changes. */
  deletion?: Deletion | null;
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
    deletion,
    names,
    units,
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
    units,
    place,
    onSubmit: async (values) => {
      release(true);
      try {
        const then = await onSubmit(values);
        onClose();
        then();
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
          {deletion && <DeleteButton {...deletion} onDone={gone} />}
          {errors.root && (
            <div className="min-w-0 flex-1 basis-64">
              <Notice tone="bad">{errors.root.message}</Notice>
            </div>
          )}
          <Button onClick={close} disabled={isSubmitting}>
            {t("ui.cancel")}
          </Button>
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

/** A form at the side. It closes after saving. */
export function FormDrawer<T extends FieldValues>(props: Props<T>) {
  return <FormFrame as={Drawer} {...props} />;
}

/** A short form in the middle. It closes after saving. */
export function FormDialog<T extends FieldValues>(props: Props<T>) {
  return <FormFrame as={Dialog} {...props} />;
}
