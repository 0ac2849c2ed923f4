/**
 * The banner above every page: the component that cannot be reached, since when, and the time of
 * the shown data.
 */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { useOutage } from "@/parts/live";
import { clockTime, useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";

export function OutageBanner() {
  const { t } = useTranslation();
  const format = useFormat();
  const outage = useOutage();
  const stale = useStale();
  const clock = (at: number) => clockTime(new Date(at), new Date(), format);
  if (outage) {
    return (
      <div className="shrink-0 px-4 pt-3 sm:px-6">
        <Notice tone="bad" title={t(`outage.${outage.what}`, { since: clock(outage.since) })}>
          {t(`outage.${outage.what}Text`, { asOf: clock(outage.asOf) })}
        </Notice>
      </div>
    );
  }
  if (stale === undefined) return null;
  const [at, why] = stale.split(" ", 1).concat(stale.slice(stale.indexOf(" ") + 1));
  return (
    <div className="shrink-0 px-4 pt-3 sm:px-6">
      <Notice tone="warn" title={t("outage.stale", { asOf: clock(Number(at)) })}>
        {why || t("ui.noConnection")}
      </Notice>
    </div>
  );
}

/**
 * The oldest shown data that could not be refreshed: its time in milliseconds, a space, the reason.
 */
function useStale(): string | undefined {
  const cache = useQueryClient().getQueryCache();
  const subscribe = useCallback((watcher: () => void) => cache.subscribe(watcher), [cache]);
  return useSyncExternalStore(subscribe, () => {
    const failed = cache
      .getAll()
      .filter(
        (query) =>
          query.isActive() && query.state.status === "error" && query.state.data !== undefined,
      )
      .sort((a, b) => a.state.dataUpdatedAt - b.state.dataUpdatedAt)[0];
    if (failed === undefined) return undefined;
    const { error, dataUpdatedAt } = failed.state;
    return `${dataUpdatedAt} ${error instanceof ApiError ? error.message : ""}`;
  });
}
