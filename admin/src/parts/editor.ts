/**
 * The state of a form that creates or edits a record: its first values, what is sent, and what
 * follows. Spread its result into a `FormDrawer` or `FormDialog`.
 */
import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type DefaultValues, type FieldValues, useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { changes } from "@/api/form";
import { useToast } from "@/ui/toast";

interface Options<V extends FieldValues, B extends object, M> {
  /** The first values. They are read once, so that an edit is a difference from what was shown. */
  values: () => V;
  /** The form's values as the gateway takes them. */
  body: (values: V) => B;
  /**
   * Saves an existing record; left out for a new one. It gets the edited fields only, so that
   * changes of other users are kept, and is not called if there are none.
   */
  update?: ((changed: Partial<B>) => Promise<unknown>) | null;
  create: (body: B) => Promise<M>;
  /** What is read again after saving. */
  rereads: readonly QueryKey[];
  /** The message after saving; "Saved" if it is left out. */
  saved?: (values: V) => string;
  /** Follows instead of the message when a record was created. */
  onCreated?: (made: M) => void;
  /** Then the form does not wait until the data is read again. */
  atOnce?: boolean;
}

export function useEditor<V extends FieldValues, B extends object, M>(options: Options<V, B, M>) {
  const { values, body, update, create, rereads, saved, onCreated, atOnce } = options;
  const { t } = useTranslation();
  const cache = useQueryClient();
  const toast = useToast();
  const [before] = useState(values);
  const form = useForm<V>({ defaultValues: before as DefaultValues<V> });
  const reread = () =>
    Promise.all(rereads.map((queryKey) => cache.invalidateQueries({ queryKey })));
  const onSubmit = async (typed: V) => {
    let follow = () => toast.good(saved?.(typed) ?? t("ui.saved"));
    if (update) {
      const changed = changes(body(before), body(typed));
      if (Object.keys(changed).length > 0) await update(changed);
    } else {
      const made = await create(body(typed));
      if (onCreated) follow = () => onCreated(made);
    }
    const read = reread();
    if (update || !atOnce) await read;
    return follow;
  };
  return { form, onSubmit, submit: update ? t("ui.save") : t("ui.create") };
}
