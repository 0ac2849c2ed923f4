/** Ctrl-K: to any page, user, key, provider, session or model by a few letters of its name. */
import { CornerDownLeft } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { cx } from "@/ui/cx";
import { Dialog } from "@/ui/dialog";
import { type Entry, find, useEntries } from "./palette-entries";

export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  return open ? (
    <Dialog open onClose={onClose} title={t("palette.title")} width="max-w-xl">
      <Finder onClose={onClose} />
    </Dialog>
  ) : null;
}

function Finder({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState("");
  const [active, setActive] = useState(0);
  const entries = useEntries(typed);
  const found = useMemo(() => find(entries, typed), [entries, typed]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is found begins at its first
  useEffect(() => setActive(0), [typed]);
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.go();
  };
  return (
    <>
      <input
        // biome-ignore lint/a11y/noAutofocus: the palette is opened to type
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls="palette"
        aria-activedescendant={found[active] ? `palette-${active}` : undefined}
        aria-label={t("palette.title")}
        placeholder={t("palette.placeholder")}
        className="control"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            const step = event.key === "ArrowDown" ? 1 : -1;
            setActive((active + step + found.length) % Math.max(1, found.length));
          } else if (event.key === "Enter") {
            event.preventDefault();
            choose(found[active]);
          }
        }}
      />
      <div role="listbox" id="palette" aria-label={t("palette.title")} className="mt-2">
        {found.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input above has the keyboard
          <div
            key={entry.id}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            onMouseMove={() => setActive(index)}
            onClick={() => choose(entry)}
            className={cx(
              "flex h-9 cursor-pointer items-center gap-2.5 rounded-md px-2 text-sm",
              index === active && "bg-accent-soft",
            )}
          >
            <span className="text-faint">{entry.icon}</span>
            <span className="min-w-0 flex-1 truncate">{entry.label}</span>
            <span className="text-xs text-faint">{entry.kind}</span>
            {index === active && <CornerDownLeft className="size-3.5 text-faint" aria-hidden />}
          </div>
        ))}
        {found.length === 0 && <p className="px-2 py-6 text-center text-sm text-faint">{t("palette.none")}</p>}
      </div>
    </>
  );
}
