/** Buttons. An icon alone needs a `label`, which is also its tooltip. */
import { LoaderCircle } from "lucide-react";
import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { cx } from "./cx";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: "primary" | "secondary" | "ghost" | "danger";
  size?: "sm" | "md";
  icon?: ReactNode;
  /** Work is in progress: shows that and ignores further clicks. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

const LOOKS = {
  primary: "bg-accent text-on-accent hover:bg-accent-hover border-transparent",
  secondary: "bg-surface text-ink hover:bg-hover border-strong-line",
  ghost: "bg-transparent text-quiet hover:bg-hover hover:text-ink border-transparent",
  danger: "bg-danger text-white hover:brightness-110 border-transparent",
};

/** The classes of a button, for elements that must be links. */
export const buttonLook = (variant: keyof typeof LOOKS = "secondary", size: "sm" | "md" = "md") =>
  cx(
    "inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md",
    "border font-medium whitespace-nowrap select-none disabled:opacity-55",
    size === "sm" ? "h-7 px-2 text-xs" : "h-9 px-3 text-sm",
    LOOKS[variant],
  );

export function Button({
  variant = "secondary",
  size = "md",
  icon,
  busy,
  className,
  children,
  disabled,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      className={cx(buttonLook(variant, size), className)}
      {...rest}
    >
      {busy ? <LoaderCircle className="size-4 animate-spin" aria-hidden /> : icon}
      {children}
    </button>
  );
}

export function IconButton({
  label,
  className,
  size = "md",
  ...rest
}: ButtonProps & { label: string }) {
  return (
    <Button
      variant="ghost"
      aria-label={label}
      title={label}
      className={cx("!px-0", size === "sm" ? "w-7" : "w-9", className)}
      size={size}
      {...rest}
    />
  );
}
