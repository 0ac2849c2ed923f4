/** Ctrl-K: opens any page, user, key, provider, session or model by some letters of its name. */
import { Command } from "cmdk";
import { CornerDownLeft } from "lucide-react";
import { useEffect, useId, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { cx } from "@/ui/cx";
import { Dialog } from "@/ui/dialog";
import { find, useEntries } from "./palette-entries";

export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  return open ? (
    <Dialog open onClose={onClose} title={t("palette.title")} width="max-w-xl">
      <Finder onClose={onClose} />
    </Dialog>
  ) : null;
}

/** Keys that cmdk would handle instead of the input field. */
const OF_THE_TEXT = ["Home", "End"];

function Finder({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState("");
  // The position is active, not the entry, so the first entry stays active when better ones arrive
  // later.
  const [active, setActive] = useState("0");
  const { entries, loading } = useEntries(typed);
  const found = useMemo(() => find(entries, typed), [entries, typed]);
  const waits = loading && found.length === 0;
  // Who types a name and presses Enter before the lists have arrived wants the entry all the same.
  const [entered, setEntered] = useState(false);
  const first = entered ? found[0] : undefined;
  useEffect(() => {
    if (!first) return;
    onClose();
    first.go();
  }, [first, onClose]);
  // cmdk reports the active option to screen readers one change late, so we set both ids.
  const id = useId();
  return (
    // `find` selects and sorts. With cmdk's own filter, one kind could fill the list.
    <Command
      label={t("palette.title")}
      shouldFilter={false}
      vimBindings={false}
      loop
      value={active}
      onValueChange={setActive}
    >
      <Command.Input
        asChild
        autoFocus
        placeholder={t("palette.placeholder")}
        className="control"
        value={typed}
        onValueChange={(text) => {
          setTyped(text);
          setEntered(false);
        }}
        onKeyDown={(event) => {
          if (OF_THE_TEXT.includes(event.key)) event.stopPropagation();
          setEntered(waits && event.key === "Enter" && !event.nativeEvent.isComposing);
        }}
      >
        <input aria-activedescendant={found[Number(active)] && `${id}-${active}`} />
      </Command.Input>
      <Command.List label={t("palette.title")} className="mt-2">
        {found.map((entry, place) => (
          <Command.Item
            asChild
            // biome-ignore lint/suspicious/noArrayIndexKey: an option is a place in the list
            key={place}
            value={String(place)}
            onSelect={() => {
              onClose();
              entry.go();
            }}
            className={cx(
              "group flex h-9 cursor-pointer items-center gap-2.5",
              "rounded-md px-2 text-sm data-[selected=true]:bg-accent-soft",
            )}
          >
            <div id={`${id}-${place}`}>
              <span className="text-faint">{entry.icon}</span>
              <span className="min-w-0 flex-1 truncate">{entry.label}</span>
              <span className="text-xs text-faint">{entry.kind}</span>
              <CornerDownLeft
                className="hidden size-3.5 text-faint group-data-[selected=true]:block"
                aria-hidden
              />
            </div>
          </Command.Item>
        ))}
        <Command.Empty className="px-2 py-6 text-center text-sm text-faint">
          {t(waits ? "ui.loading" : "palette.none")}
        </Command.Empty>
      </Command.List>
    </Command>
  );
}
