/** A day in a form. A day that is typed only in part is refused; it does not count as "none". */
import { useRef } from "react";
import type { FieldValues } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { Input } from "@/ui/field";
import { Bound, type BoundProps } from "./fields";

export function DateField<T extends FieldValues>(props: Omit<BoundProps<T>, "validate">) {
  const { t } = useTranslation();
  const input = useRef<HTMLInputElement>(null);
  const validate = () => !input.current?.validity.badInput || t("ui.halfDay");
  return (
    <Bound {...props} validate={validate}>
      {({ ref, ...bound }) => (
        <Input
          type="date"
          {...bound}
          ref={(element) => {
            input.current = element;
            ref(element);
          }}
        />
      )}
    </Bound>
  );
}
