/** A few values beside each other, of which one is selected. */
import { cx } from "./cx";

interface Props<V extends string | number> {
  label: string;
  value: V;
  choices: readonly { value: V; label: string }[];
  onChange: (value: V) => void;
}

export function Segments<V extends string | number>(props: Props<V>) {
  const { label, value, choices, onChange } = props;
  return (
    <fieldset className="flex h-7 overflow-hidden rounded-md border border-strong-line text-xs">
      <legend className="sr-only">{label}</legend>
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={value === choice.value}
          className={cx(
            "px-2.5 aria-pressed:bg-accent-soft",
            "aria-pressed:font-medium aria-pressed:text-accent",
          )}
          onClick={() => onChange(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </fieldset>
  );
}
