/** The frame of every page: heading, actions, content. `full` gives the height to one table. */
import type { ReactNode } from "react";
import { cx } from "./cx";

interface Props {
  title: string;
  help?: ReactNode;
  actions?: ReactNode;
  full?: boolean;
  children: ReactNode;
}

export function Page({ title, help, actions, full, children }: Props) {
  return (
    <div
      className={cx(
        "mx-auto flex w-full max-w-[110rem] flex-col px-4 py-4 sm:px-6",
        full && "h-full min-h-0",
      )}
    >
      <div className="mb-3 flex flex-wrap items-start gap-x-4 gap-y-2">
        <div className="min-w-0 flex-1 basis-40">
          <h1>{title}</h1>
          {help !== undefined && <p className="text-sm text-quiet">{help}</p>}
        </div>
        {actions !== undefined && (
          <div className="flex flex-wrap items-center gap-2">{actions}</div>
        )}
      </div>
      <div className={cx("min-w-0", full && "flex min-h-0 flex-1 flex-col")}>{children}</div>
    </div>
  );
}

/** A titled card. */
export function Card({
  title,
  actions,
  children,
  className,
}: {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  return (
    <section className={cx("card min-w-0 p-4", className)}>
      {title !== undefined && (
        <div className="mb-3 flex flex-wrap items-center gap-2">
          <h2 className="min-w-24 flex-1 truncate !text-sm">{title}</h2>
          {actions}
        </div>
      )}
      {children}
    </section>
  );
}

/** Names and values. */
export function Facts({ facts }: { facts: [ReactNode, ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,auto)_1fr] gap-x-4 gap-y-1.5 text-sm">
      {facts.map(([name, value], index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the order is fixed
        <div key={index} className="contents">
          <dt className="text-faint">{name}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}
