/** A day in a form. A day that is typed only in part is refused; it does not count as "none". */
import { useRef } from "react";
import type { FieldValues, Path, UseFormRegister } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { Field, Input } from "@/ui/field";

interface Props<T extends FieldValues> {
  register: UseFormRegister<T>;
  name: Path<T>;
  label: string;
  help: string;
  optional?: boolean;
  error: string | undefined;
}

export function DateField<T extends FieldValues>(props: Props<T>) {
  const { register, name, label, help, optional, error } = props;
  const { t } = useTranslation();
  const input = useRef<HTMLInputElement>(null);
  const { ref, ...field } = register(name, {
    validate: () => !input.current?.validity.badInput || t("ui.halfDay"),
  });
  return (
    <Field
      label={label}
      optional={optional ? t("ui.optional") : undefined}
      error={error}
      help={help}
    >
      {(ids) => (
        <Input
          {...ids}
          type="date"
          {...field}
          ref={(element) => {
            input.current = element;
            ref(element);
          }}
        />
      )}
    </Field>
  );
}
