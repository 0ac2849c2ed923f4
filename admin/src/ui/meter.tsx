/**
 * The used share of a limit: amber from 80 %, red when it refuses, and the same in words. The
 * reserved amount is a paler part of the bar.
 */
import type { ReactNode } from "react";
import { cx } from "./cx";
import { used, useFormat } from "./format";

interface Props {
  label: ReactNode;
  current: number;
  /** The reserved amount, which also counts. */
  reserved?: number;
  /** `null` or 0 with `zeroIsNone` = no limit. */
  limit: number | null;
  show: (value: number) => ReactNode;
  noLimit: string;
  /** "resets Monday 00:00" */
  note?: ReactNode;
  zeroIsNone?: boolean;
}

export function Meter({
  label,
  current,
  reserved = 0,
  limit,
  show,
  noLimit,
  note,
  zeroIsNone = false,
}: Props) {
  const format = useFormat();
  const bound = limit === null || (zeroIsNone && limit === 0) ? null : limit;
  const share = bound === null ? 0 : bound === 0 ? 1 : current / bound;
  const colour = share >= 1 ? "bg-bad" : share >= 0.8 ? "bg-warn" : "bg-accent";
  return (
    <div>
      <div className="flex items-baseline justify-between gap-3 text-sm">
        <span className="min-w-0 truncate">{label}</span>
        <span className="tabular whitespace-nowrap">
          {show(current)}
          <span className="text-faint"> / {bound === null ? noLimit : show(bound)}</span>
          {bound !== null && (
            <span
              className={cx(
                "ml-1.5 text-xs",
                share >= 1 ? "text-bad" : share >= 0.8 ? "text-warn" : "text-faint",
              )}
            >
              {used(share, format)}
            </span>
          )}
        </span>
      </div>
      <Bar
        share={bound === null ? null : share}
        more={bound ? reserved / bound : 0}
        colour={colour}
      />
      {note !== undefined && <div className="mt-0.5 text-xs text-faint">{note}</div>}
    </div>
  );
}

/** The bar alone. SVG, because the content security policy refuses a style attribute in markup. */
export function Bar({
  share,
  more = 0,
  colour = "bg-accent",
  className,
}: {
  share: number | null;
  /** A second, paler share after the first. */
  more?: number;
  colour?: string;
  className?: string;
}) {
  const width = share === null ? 0 : percentOf(share);
  const rest = Math.min(100 - width, percentOf(more));
  return (
    <div
      aria-hidden
      className={cx("mt-1 flex h-1.5 overflow-hidden rounded-full bg-sunken", className)}
    >
      <div
        className={cx("h-full rounded-full transition-[width]", colour)}
        style={{ width: `${width}%` }}
      />
      {rest > 0 && (
        <div
          className={cx("-ml-1 h-full rounded-r-full opacity-40 transition-[width]", colour)}
          style={{ width: `calc(${rest}% + 0.25rem)` }}
        />
      )}
    </div>
  );
}

const percentOf = (share: number) => Math.max(0, Math.min(1, share)) * 100;
