/** A small box that opens from a button. */
import { Popover as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { cx } from "./cx";

interface Props {
  trigger: ReactNode;
  label: string;
  children: ReactNode;
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
}

export function Popover({ trigger, label, children, open, onOpenChange }: Props) {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          aria-label={label}
          align="start"
          sideOffset={6}
          collisionPadding={12}
          data-popup
          className={cx(
            "z-50 w-72 max-w-[calc(100vw-1.5rem)] rounded-lg border",
            "border-line bg-raised p-3 shadow-xl outline-none",
          )}
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
