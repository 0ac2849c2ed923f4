/** Form fields: a label, the control with its unit, one line of help, and the fault below. */
import { CircleAlert } from "lucide-react";
import {
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from "react";
import { cx } from "./cx";

export interface Ids {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

interface FieldProps {
  label: ReactNode;
  help?: ReactNode;
  error?: string;
  /** Shown inside, at the end: `USD`, `ms`. */
  unit?: string;
  optional?: string;
  className?: string;
  children: (ids: Ids) => ReactNode;
}

export function Field({ label, help, error, unit, optional, className, children }: FieldProps) {
  const id = useId();
  const described = cx(error && `${id}-error`, help !== undefined && `${id}-help`);
  return (
    <div className={cx("min-w-0", className)}>
      <div className="mb-1 flex items-baseline justify-between gap-2">
        <label htmlFor={id} className="text-sm font-medium">
          {label}
        </label>
        {optional !== undefined && <span className="text-xs text-faint">{optional}</span>}
      </div>
      <div className="relative">
        {children({
          id,
          "aria-describedby": described || undefined,
          "aria-invalid": error !== undefined || undefined,
        })}
        {unit !== undefined && (
          <span
            className={cx(
              "pointer-events-none absolute inset-y-0 right-0",
              "flex items-center pr-3 text-xs text-faint",
            )}
          >
            {unit}
          </span>
        )}
      </div>
      {error !== undefined && <Fault id={`${id}-error`}>{error}</Fault>}
      {help !== undefined && (
        <p id={`${id}-help`} className="mt-1 text-xs text-faint">
          {help}
        </p>
      )}
    </div>
  );
}

/** The fault, under the control. */
function Fault({ id, children }: { id?: string; children: string }) {
  return (
    <span id={id} className="mt-1 flex gap-1 text-xs text-bad" role="alert">
      <CircleAlert className="mt-px size-3.5 shrink-0" aria-hidden />
      <span>{children}</span>
    </span>
  );
}

type InputProps = InputHTMLAttributes<HTMLInputElement> & {
  ref?: Ref<HTMLInputElement>;
  hasUnit?: boolean;
};

export function Input({ className, hasUnit, ...rest }: InputProps) {
  return <input className={cx("control", hasUnit && "pr-14", className)} {...rest} />;
}

/** An input for amounts. Its value is text, so nothing is rounded. */
export function NumberInput({ className, ...rest }: InputProps) {
  return (
    <Input
      inputMode="decimal"
      autoComplete="off"
      hasUnit
      className={cx("tabular", className)}
      {...rest}
    />
  );
}

export function Textarea({
  className,
  ...rest
}: TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }) {
  return <textarea className={cx("control !h-auto min-h-20 py-1.5", className)} {...rest} />;
}

export interface Choice {
  value: string;
  label: string;
}

/** The system's own select: it works with every keyboard, screen reader and phone. */
export function Select({
  choices,
  className,
  ...rest
}: SelectHTMLAttributes<HTMLSelectElement> & {
  choices: readonly Choice[];
  ref?: Ref<HTMLSelectElement>;
}) {
  return (
    <select className={cx("control pr-8", className)} {...rest}>
      {choices.map(({ value, label }) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  );
}

type CheckProps = Omit<InputHTMLAttributes<HTMLInputElement>, "type"> & {
  ref?: Ref<HTMLInputElement>;
};

/** A checkbox with its label on the right. */
export function Checkbox({
  label,
  help,
  className,
  ...rest
}: CheckProps & { label: ReactNode; help?: ReactNode }) {
  return (
    <label className={cx("flex items-start gap-2", className)}>
      <input type="checkbox" className="mt-0.5 size-4 shrink-0 accent-accent" {...rest} />
      <span className="min-w-0">
        <span className="block text-sm">{label}</span>
        {help !== undefined && <span className="block text-xs text-faint">{help}</span>}
      </span>
    </label>
  );
}

/** A switch. It takes effect at once, or when its form is saved. */
export function Switch({
  label,
  hideLabel,
  help,
  error,
  className,
  ...rest
}: CheckProps & { label: string; hideLabel?: boolean; help?: ReactNode; error?: string }) {
  return (
    <label className={cx("inline-flex items-start gap-2.5", className)}>
      <span className="relative mt-0.5 inline-flex shrink-0">
        <input
          type="checkbox"
          // biome-ignore lint/a11y/useAriaPropsForRole: a checkbox has its state natively
          role="switch"
          aria-label={hideLabel ? label : undefined}
          aria-invalid={error !== undefined || undefined}
          className="peer absolute inset-0 z-10 opacity-0"
          {...rest}
        />
        <span
          className={cx(
            "h-5 w-9 rounded-full bg-strong-line transition-colors",
            "peer-checked:bg-accent peer-focus-visible:outline-2",
            "peer-focus-visible:outline-offset-2",
            "peer-focus-visible:outline-accent peer-disabled:opacity-50",
          )}
        />
        <span
          className={cx(
            "pointer-events-none absolute top-0.5 left-0.5 size-4 rounded-full",
            "bg-white shadow transition-transform peer-checked:translate-x-4",
          )}
        />
      </span>
      {!hideLabel && (
        <span className="min-w-0">
          <span className="block text-sm">{label}</span>
          {error !== undefined && <Fault>{error}</Fault>}
          {help !== undefined && <span className="block text-xs text-faint">{help}</span>}
        </span>
      )}
    </label>
  );
}

/** A section of a long form. */
export function Section({
  title,
  help,
  children,
  className,
  disabled,
}: {
  title: string;
  help?: ReactNode;
  children: ReactNode;
  className?: string;
  /** The fields of the section cannot be changed: `help` has the reason. */
  disabled?: boolean;
}) {
  return (
    <fieldset
      disabled={disabled}
      className={cx("min-w-0 border-t border-line pt-4 first:border-t-0 first:pt-0", className)}
    >
      <legend className="float-left mb-1 w-full text-sm font-semibold">{title}</legend>
      {help !== undefined && <p className="clear-both mb-3 text-xs text-faint">{help}</p>}
      <div className="clear-both grid grid-cols-1 gap-4 pt-1 sm:grid-cols-2">{children}</div>
    </fieldset>
  );
}
