/** A form field with a list of words, and its fault. */
import type { ReactNode } from "react";
import { type FieldValues, type Path, type UseFormReturn, useController } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { Field } from "@/ui/field";
import { TagsInput } from "@/ui/tags";

interface Props<T extends FieldValues> {
  form: UseFormReturn<T>;
  name: Path<T>;
  label: ReactNode;
  help?: ReactNode;
  /** Offered while typing. */
  known?: string[];
  /** The meaning of an empty list. */
  placeholder?: string;
  disabled?: boolean;
  className?: string;
}

export function ListField<T extends FieldValues>({
  form,
  name,
  known,
  placeholder,
  disabled,
  ...rest
}: Props<T>) {
  const { t } = useTranslation();
  const { field, fieldState } = useController({ control: form.control, name });
  return (
    <Field {...rest} error={fieldState.error?.message}>
      {(ids) => (
        <TagsInput
          {...ids}
          name={name}
          value={field.value}
          onChange={field.onChange}
          known={known}
          placeholder={placeholder}
          disabled={disabled}
          removeLabel={(word) => t("ui.removeWord", { word })}
        />
      )}
    </Field>
  );
}
