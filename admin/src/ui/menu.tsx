/**
 * Menus of a button: actions and checkboxes. Not modal: a modal one would inject a style element.
 */
import { Check } from "lucide-react";
import { DropdownMenu as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { cx } from "./cx";

export interface Action {
  label: string;
  icon?: ReactNode;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
}

const BOX = cx(
  "z-50 min-w-44 max-h-[70vh] overflow-y-auto rounded-lg",
  "border border-line bg-raised p-1 shadow-xl",
);
const ITEM = cx(
  "flex h-8 cursor-default items-center gap-2 rounded px-2 text-sm outline-none",
  "select-none data-[highlighted]:bg-hover data-[disabled]:opacity-50",
);

export function Menu({
  trigger,
  actions,
  title,
}: {
  trigger: ReactNode;
  actions: (Action | "line")[];
  title?: ReactNode;
}) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content align="end" sideOffset={4} data-popup tabIndex={0} className={BOX}>
          {title !== undefined && (
            <Radix.Label className="px-2 py-1.5 text-xs text-faint">{title}</Radix.Label>
          )}
          {actions.map((action, index) =>
            action === "line" ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity
              <Radix.Separator key={index} className="my-1 border-t border-line" />
            ) : (
              <Radix.Item
                key={action.label}
                disabled={action.disabled}
                onSelect={action.onSelect}
                className={cx(ITEM, action.danger && "text-bad")}
              >
                {action.icon}
                {action.label}
              </Radix.Item>
            ),
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface Tick {
  id: string;
  label: string;
  checked: boolean;
  disabled?: boolean;
}

export function TickMenu({
  trigger,
  title,
  ticks,
  onTick,
}: {
  trigger: ReactNode;
  title: string;
  ticks: Tick[];
  onTick: (id: string, on: boolean) => void;
}) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content align="end" sideOffset={4} data-popup tabIndex={0} className={BOX}>
          <Radix.Label className="px-2 py-1.5 text-xs text-faint">{title}</Radix.Label>
          {ticks.map(({ id, label, checked, disabled }) => (
            <Radix.CheckboxItem
              key={id}
              checked={checked}
              disabled={disabled}
              onSelect={(event) => event.preventDefault()}
              onCheckedChange={(on) => onTick(id, on)}
              className={cx(ITEM, "pl-7 relative")}
            >
              <Radix.ItemIndicator className="absolute left-2">
                <Check className="size-3.5" aria-hidden />
              </Radix.ItemIndicator>
              {label}
            </Radix.CheckboxItem>
          ))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
