/** Texts to copy: ids, keys, commands. */
import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button, IconButton } from "./button";
import { cx } from "./cx";

/** Copies a text. Without the clipboard API (plain HTTP) it uses the old method. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "fixed opacity-0";
    // Inside an open dialog, because focus must not leave it.
    (document.querySelector("[role=dialog]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function useCopy(onCopied?: () => void): [boolean, (text: string) => void] {
  const [done, setDone] = useState(false);
  return [
    done,
    (text) => {
      void copyText(text).then((copied) => {
        setDone(copied);
        if (!copied) return;
        onCopied?.();
        setTimeout(() => setDone(false), 1800);
      });
    },
  ];
}

interface CopyProps {
  text: string;
  label?: string;
  /** Shows the text, not only the icon. */
  full?: boolean;
  onCopied?: () => void;
}

export function CopyButton({ text, label, full = false, onCopied }: CopyProps) {
  const { t } = useTranslation();
  const [done, copy] = useCopy(onCopied);
  const name = done ? t("ui.copied") : (label ?? t("ui.copy"));
  const icon = done ? (
    <Check className="size-3.5 text-good" aria-hidden />
  ) : (
    <Copy className="size-3.5" aria-hidden />
  );
  const act = (event: { stopPropagation: () => void }) => {
    event.stopPropagation();
    copy(text);
  };
  return full ? (
    <Button size="sm" icon={icon} onClick={act}>
      {name}
    </Button>
  ) : (
    <IconButton size="sm" label={name} icon={icon} onClick={act} />
  );
}

/** A short id with its copy button. */
export function Id({ value, shown }: { value: string; shown?: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-0.5 font-mono text-xs">
      <span className="truncate" title={value}>
        {shown ?? value}
      </span>
      <CopyButton text={value} />
    </span>
  );
}

/** Lines to copy. */
export function Code({
  text,
  label,
  className,
}: {
  text: string;
  label?: string;
  className?: string;
}) {
  return (
    <div className={cx("rounded-lg border border-line bg-sunken", className)}>
      <div
        className={cx(
          "flex items-center justify-between gap-2 border-b",
          "border-line py-1 pr-1 pl-3 text-xs text-faint",
        )}
      >
        <span className="truncate">{label}</span>
        <CopyButton text={text} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach what scrolls */}
      <pre tabIndex={0} className="overflow-x-auto p-3 font-mono text-xs leading-5 whitespace-pre">
        {text}
      </pre>
    </div>
  );
}
