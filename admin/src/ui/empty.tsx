/** States of a page without data: empty (with the next step), loading, or failed; `Answer`. */
import { RotateCw } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./button";
import { Notice } from "./status";

export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon?: ReactNode;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className="mx-auto flex max-w-md flex-col items-center px-4 py-12 text-center">
      {icon !== undefined && <div className="mb-3 rounded-xl bg-sunken p-3 text-faint">{icon}</div>}
      <h2>{title}</h2>
      {children !== undefined && <div className="mt-1 text-sm text-quiet">{children}</div>}
      {action !== undefined && (
        <div className="mt-4 flex flex-wrap justify-center gap-2">{action}</div>
      )}
    </div>
  );
}

export function Loading({ lines = 6 }: { lines?: number }) {
  const { t } = useTranslation();
  return (
    <div role="status" aria-label={t("ui.loading")} className="space-y-2 py-2">
      {Array.from({ length: lines }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: these have no identity
        <div key={index} className="h-8 animate-pulse rounded-md bg-sunken" />
      ))}
    </div>
  );
}

/** A failure, with the gateway's message and a button to try again. */
export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const { t } = useTranslation();
  const message =
    error instanceof Error && error.message !== "" ? error.message : t("ui.noConnection");
  return (
    <Notice
      tone="bad"
      title={t("ui.failed")}
      action={
        retry && (
          <Button size="sm" icon={<RotateCw className="size-3.5" aria-hidden />} onClick={retry}>
            {t("ui.retry")}
          </Button>
        )
      }
    >
      {message}
    </Notice>
  );
}

interface Asked<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** What a query answered: its data, a loading state, or the reason why it could not be read. */
export function Answer<T>({
  of,
  lines,
  children,
}: {
  of: Asked<T>;
  /** The height of the loading state. */
  lines?: number;
  children: (data: T) => ReactNode;
}) {
  if (of.data !== undefined) return children(of.data);
  return of.error ? (
    <Failed error={of.error} retry={() => void of.refetch()} />
  ) : (
    <Loading lines={lines} />
  );
}
