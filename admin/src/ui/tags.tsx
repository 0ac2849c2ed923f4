/**
 * A list of words as chips: Enter or a comma adds the typed word, Backspace removes the last one.
 */
import { X } from "lucide-react";
import { useState } from "react";
import { cx } from "./cx";

interface Props {
  id?: string;
  name?: string;
  value: string[];
  onChange: (value: string[]) => void;
  placeholder?: string;
  removeLabel: (word: string) => string;
  /** Offered while typing. */
  known?: string[];
  disabled?: boolean;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

export function TagsInput({
  id,
  name,
  value,
  onChange,
  placeholder,
  removeLabel,
  known = [],
  disabled,
  ...aria
}: Props) {
  const [typed, setTyped] = useState("");
  const add = (text: string) => {
    const words = text
      .split(/[,\n]/)
      .map((word) => word.trim())
      .filter((word) => word !== "" && !value.includes(word));
    if (words.length > 0) onChange([...value, ...new Set(words)]);
    setTyped("");
  };
  return (
    <div
      className={cx(
        "control flex !h-auto min-h-9 flex-wrap items-center gap-1 py-1 !pl-1.5",
        "focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-accent",
        disabled && "bg-sunken text-quiet",
      )}
    >
      {value.map((word) => (
        <span
          key={word}
          className={cx(
            "inline-flex max-w-full items-center gap-0.5",
            "rounded bg-sunken py-0.5 pr-0.5 pl-1.5 text-xs",
          )}
        >
          <span className="truncate">{word}</span>
          <button
            type="button"
            className="rounded p-0.5 text-faint hover:bg-hover hover:text-ink"
            aria-label={removeLabel(word)}
            disabled={disabled}
            onClick={() => onChange(value.filter((other) => other !== word))}
          >
            <X className="size-3" aria-hidden />
          </button>
        </span>
      ))}
      <input
        id={id}
        name={name}
        {...aria}
        disabled={disabled}
        list={known.length > 0 ? `${id}-known` : undefined}
        className="min-w-24 flex-1 bg-transparent px-1 text-sm outline-none"
        value={typed}
        placeholder={value.length === 0 ? placeholder : undefined}
        onChange={(event) =>
          event.target.value.endsWith(",") ? add(event.target.value) : setTyped(event.target.value)
        }
        onBlur={() => add(typed)}
        onKeyDown={(event) => {
          // Enter takes the word of an input method.
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Enter" && typed.trim() !== "") {
            event.preventDefault();
            add(typed);
          } else if (event.key === "Backspace" && typed === "" && value.length > 0) {
            onChange(value.slice(0, -1));
          }
        }}
      />
      {known.length > 0 && (
        <datalist id={`${id}-known`}>
          {known.map((word) => (
            <option key={word} value={word} />
          ))}
        </datalist>
      )}
    </div>
  );
}
