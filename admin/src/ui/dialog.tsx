/**
 * Layers over the page: a dialog in the middle and a drawer at the side (both modal, for forms),
 * and a panel at the side, beside which the table stays usable. Focus moves in and returns; Escape
 * closes. Radix's own overlay is not used: it would add a style element to the page, which the
 * content security policy refuses.
 */
import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "./button";
import { cx } from "./cx";

interface Props {
  open: boolean;
  onClose: () => void;
  title: ReactNode;
  description?: ReactNode;
  children: ReactNode;
  /** Buttons, always visible. */
  footer?: ReactNode;
  width?: string;
}

function Head({
  title,
  description,
  extra,
}: {
  title: ReactNode;
  description?: ReactNode;
  extra?: ReactNode;
}) {
  const { t } = useTranslation();
  return (
    <div className="flex items-start gap-2 border-b border-line px-5 py-3">
      <div className="min-w-0 flex-1">
        <Radix.Title className="line-clamp-3 text-base leading-7 font-semibold break-words">
          {title}
        </Radix.Title>
        {description !== undefined && (
          <Radix.Description asChild>
            <div className="text-xs text-faint">{description}</div>
          </Radix.Description>
        )}
      </div>
      {extra}
      <Radix.Close asChild>
        <IconButton size="sm" label={t("ui.close")} icon={<X className="size-4" aria-hidden />} />
      </Radix.Close>
    </div>
  );
}

function Foot({ children }: { children: ReactNode }) {
  return (
    <div
      className={cx(
        "flex flex-wrap items-center justify-end gap-2",
        "border-t border-line bg-surface px-5 py-3",
      )}
    >
      {children}
    </div>
  );
}

const Shade = () => <div data-overlay className="fixed inset-0 z-40 bg-black/45" />;
/** A click on a message, which is above the page, does not close the dialog. */
const unlessMessage = (event: Event) => {
  if (event.target instanceof Element && event.target.closest("[data-message]"))
    event.preventDefault();
};
const noDescription = (description: ReactNode) =>
  description === undefined ? { "aria-describedby": undefined } : {};

/** What all of them have: title, content that scrolls, and buttons. */
function Frame({
  open,
  onClose,
  title,
  description,
  children,
  footer,
  extra,
  modal = true,
  ...content
}: Omit<Props, "width"> & {
  extra?: ReactNode;
  modal?: boolean;
} & Omit<Radix.DialogContentProps, "title">) {
  return (
    <Radix.Root open={open} modal={modal} onOpenChange={(now) => !now && onClose()}>
      <Radix.Portal>
        {modal && <Shade />}
        <Radix.Content
          {...noDescription(description)}
          onInteractOutside={unlessMessage}
          {...content}
        >
          <Head title={title} description={description} extra={extra} />
          <div className="min-h-0 flex-1 overflow-y-auto px-5 py-4">{children}</div>
          {footer !== undefined && <Foot>{footer}</Foot>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** A question or a short form. */
export function Dialog({ width = "max-w-lg", ...props }: Props) {
  return (
    <Frame
      {...props}
      data-popup
      className={cx(
        "fixed inset-x-3 top-[max(1rem,8vh)] z-50 mx-auto flex max-h-[84vh] flex-col",
        "overflow-hidden rounded-xl border border-line",
        "bg-raised shadow-2xl outline-none",
        width,
      )}
    />
  );
}

const SIDE = cx(
  "fixed inset-y-0 right-0 flex w-full flex-col border-l",
  "border-line bg-raised shadow-2xl outline-none",
);

/** A form at the side. */
export function Drawer({ width = "sm:max-w-2xl", ...props }: Props) {
  return <Frame {...props} data-panel className={cx(SIDE, "z-50", width)} />;
}

/** Details of the open row. The page behind it stays usable. */
export function Panel({ width = "sm:max-w-xl", ...props }: Props & { extra?: ReactNode }) {
  return (
    <Frame
      {...props}
      modal={false}
      data-panel
      className={cx(SIDE, "z-30", width)}
      onOpenAutoFocus={(event) => event.preventDefault()}
      onInteractOutside={(event) => event.preventDefault()}
    />
  );
}
