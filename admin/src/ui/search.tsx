/** A list's search box. `onChange` is called when the typing pauses. */
import { Search, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { cx } from "./cx";

const PAUSE = 150;

export function SearchBox({
  value,
  onChange,
  label,
}: {
  value: string;
  onChange: (value: string) => void;
  label: string;
}) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState(value);
  const reported = useRef(value);
  const later = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    // Changed from outside: by a link, or because the filter was cleared.
    if (value !== reported.current) {
      reported.current = value;
      setTyped(value);
    }
  }, [value]);
  useEffect(() => () => clearTimeout(later.current), []);
  const change = (text: string, pause = PAUSE) => {
    setTyped(text);
    clearTimeout(later.current);
    later.current = setTimeout(() => {
      reported.current = text.trim();
      onChange(text.trim());
    }, pause);
  };
  return (
    <span className="relative min-w-40 max-w-80 flex-1">
      <Search
        className="pointer-events-none absolute top-1/2 left-2 size-3.5 -translate-y-1/2 text-faint"
        aria-hidden
      />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        spellCheck={false}
        autoComplete="off"
        className="control !h-7 !pr-7 !pl-7 !text-xs [&::-webkit-search-cancel-button]:hidden"
        value={typed}
        onChange={(event) => change(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && typed !== "") {
            event.stopPropagation();
            change("", 0);
          } else if (event.key === "Enter") change(typed, 0);
        }}
      />
      {typed !== "" && (
        <button
          type="button"
          aria-label={t("ui.clear")}
          className={cx(
            "absolute top-1/2 right-1 -translate-y-1/2",
            "rounded p-0.5 text-faint hover:text-ink",
          )}
          onClick={() => change("", 0)}
        >
          <X className="size-3.5" aria-hidden />
        </button>
      )}
    </span>
  );
}
