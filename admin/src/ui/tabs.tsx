/** Views of one thing, side by side. */
import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";

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
}: {
  tabs: Tab[];
  value?: string;
  onChange?: (id: string) => void;
  label: string;
}) {
  return (
    <Radix.Root value={value} onValueChange={onChange} defaultValue={value === undefined ? tabs[0]?.id : undefined}>
      <Radix.List aria-label={label} className="-mx-1 mb-4 flex gap-1 overflow-x-auto border-b border-line px-1">
        {tabs.map(({ id, label }) => (
          <Radix.Trigger
            key={id}
            value={id}
            className="-mb-px h-9 border-b-2 border-transparent px-2.5 text-sm font-medium whitespace-nowrap text-quiet hover:text-ink data-[state=active]:border-accent data-[state=active]:text-ink"
          >
            {label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map(({ id, content }) => (
        <Radix.Content key={id} value={id} className="outline-none">
          {content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
