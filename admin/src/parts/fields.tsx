/** The fields of a form, each bound to its value by name, with the fault of that value. */
import type { InputHTMLAttributes, ReactNode } from "react";
import type {
  FieldValues,
  Path,
  RegisterOptions,
  UseFormRegisterReturn,
  UseFormReturn,
} from "react-hook-form";
import { useTranslation } from "react-i18next";
import { cx } from "@/ui/cx";
import { type Choice, Field, type Ids, Input, NumberInput, Select, Textarea } from "@/ui/field";

export interface BoundProps<T extends FieldValues> {
  form: UseFormReturn<T>;
  name: Path<T>;
  label: ReactNode;
  help?: ReactNode;
  /** Shown inside, at the end: `USD`, `ms`. */
  unit?: string;
  /** Says that the field may stay empty. */
  optional?: boolean;
  className?: string;
  /** The fault of a text, or `true`. */
  validate?: (text: string) => true | string;
}

/** Attributes of the control that a caller may set. */
type Attributes = Pick<
  InputHTMLAttributes<HTMLInputElement>,
  | "autoComplete"
  | "autoFocus"
  | "className"
  | "inputMode"
  | "maxLength"
  | "placeholder"
  | "readOnly"
  | "spellCheck"
  | "type"
>;

export function Bound<T extends FieldValues>({
  children,
  ...props
}: BoundProps<T> & { children: (control: Ids & UseFormRegisterReturn<Path<T>>) => ReactNode }) {
  const { form, name, validate, optional, ...field } = props;
  const { t } = useTranslation();
  const { error } = form.getFieldState(name, form.formState);
  const rules = { validate } as RegisterOptions<T, Path<T>>;
  return (
    <Field {...field} optional={optional ? t("ui.optional") : undefined} error={error?.message}>
      {(ids) => children({ ...ids, ...form.register(name, rules) })}
    </Field>
  );
}

/** `mono`: for patterns, names and credentials. */
export function TextField<T extends FieldValues>({
  mono,
  control,
  ...field
}: BoundProps<T> & { mono?: boolean; control?: Attributes }) {
  return (
    <Bound {...field}>
      {(bound) => (
        <Input
          autoComplete="off"
          {...control}
          className={cx(mono && "font-mono", control?.className)}
          {...bound}
        />
      )}
    </Bound>
  );
}

/** An amount. Its value is text, so nothing is rounded. */
export function NumberField<T extends FieldValues>({
  control,
  ...field
}: BoundProps<T> & { control?: Attributes }) {
  return <Bound {...field}>{(bound) => <NumberInput {...control} {...bound} />}</Bound>;
}

export function SelectField<T extends FieldValues>({
  choices,
  ...field
}: BoundProps<T> & { choices: readonly Choice[] }) {
  return <Bound {...field}>{(bound) => <Select {...bound} choices={choices} />}</Bound>;
}

/** Several lines of text. */
export function LinesField<T extends FieldValues>({
  control,
  ...field
}: BoundProps<T> & {
  control?: Pick<Attributes, "className" | "maxLength" | "placeholder"> & { rows?: number };
}) {
  return <Bound {...field}>{(bound) => <Textarea {...control} {...bound} />}</Bound>;
}
