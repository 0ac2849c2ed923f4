/** States: every colour has an icon and a word. */
import { Ban, CircleAlert, CircleCheck, CircleDashed, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { cx } from "./cx";

export type Tone = "good" | "warn" | "bad" | "off" | "plain";

const TONES: Record<Tone, string> = {
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
  off: "bg-sunken text-quiet",
  plain: "bg-sunken text-quiet",
};
const ICONS = {
  good: CircleCheck,
  warn: TriangleAlert,
  bad: CircleAlert,
  off: Ban,
  plain: CircleDashed,
};

export function Badge({
  tone,
  children,
  icon = true,
  title,
}: {
  tone: Tone;
  children: ReactNode;
  icon?: boolean;
  title?: string;
}) {
  const Icon = ICONS[tone];
  return (
    <span
      title={title}
      className={cx(
        "inline-flex h-5 items-center gap-1 rounded px-1.5 text-xs font-medium whitespace-nowrap",
        TONES[tone],
      )}
    >
      {icon && <Icon className="size-3" aria-hidden />}
      {children}
    </span>
  );
}

/** A neutral word: a group, a format, a tag. */
export function Tag({
  children,
  title,
  whole,
}: {
  children: ReactNode;
  title?: string;
  whole?: boolean;
}) {
  const fit = whole ? "break-all" : "h-5 truncate whitespace-nowrap";
  return (
    <span
      title={title}
      className={cx(
        "inline-block max-w-full rounded border border-line",
        "px-1.5 text-xs leading-[1.125rem] text-quiet",
        fit,
      )}
    >
      {children}
    </span>
  );
}

/** A notice within a page. */
export function Notice({
  tone,
  title,
  children,
  action,
}: {
  tone: Tone;
  title?: ReactNode;
  children?: ReactNode;
  action?: ReactNode;
}) {
  const Icon = ICONS[tone];
  return (
    <div
      className={cx(
        "flex flex-wrap items-start gap-x-3 gap-y-2 rounded-lg px-3 py-2.5 text-sm",
        TONES[tone],
      )}
      role={tone === "bad" ? "alert" : undefined}
    >
      <Icon className="mt-0.5 size-4 shrink-0" aria-hidden />
      <div className="min-w-0 flex-1 basis-48">
        {title !== undefined && <div className="font-medium">{title}</div>}
        {children !== undefined && <div className="break-words">{children}</div>}
      </div>
      {action}
    </div>
  );
}
