/** Tabs: several views of one subject. `full` passes the available height to the view. */
import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { cx } from "./cx";

interface Tab {
  id: string;
  label: ReactNode;
  content: ReactNode;
}

export function Tabs({
  tabs,
  value,
  onChange,
  label,
  full,
}: {
  tabs: Tab[];
  value?: string;
  onChange?: (id: string) => void;
  label: string;
  full?: boolean;
}) {
  return (
    <Radix.Root
      value={value}
      onValueChange={onChange}
      defaultValue={value === undefined ? tabs[0]?.id : undefined}
      className={cx(full && "flex min-h-0 flex-1 flex-col")}
    >
      <Radix.List
        aria-label={label}
        // The line is an inner shadow: a trigger over a border would make the bar scroll.
        className={cx(
          "shrink-0 -mx-1 mb-4 flex gap-1 overflow-x-auto overflow-y-hidden",
          "px-1 pt-1 shadow-[inset_0_-1px_0_var(--color-line)]",
        )}
      >
        {tabs.map(({ id, label }) => (
          <Radix.Trigger
            key={id}
            value={id}
            className={cx(
              "h-9 shrink-0 rounded-t border-b-2 border-transparent",
              "px-2.5 text-sm font-medium whitespace-nowrap text-quiet",
              "hover:text-ink focus-visible:-outline-offset-2",
              "data-[state=active]:border-accent data-[state=active]:text-ink",
            )}
          >
            {label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map(({ id, content }) => (
        <Radix.Content
          key={id}
          value={id}
          className={cx(
            "outline-none",
            full && "flex min-h-0 flex-1 flex-col data-[state=inactive]:hidden",
          )}
        >
          {content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
