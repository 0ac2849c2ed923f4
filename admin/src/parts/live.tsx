/** The live connection of the page: one for all, its state as a dot, and requests as they end. */
import { createContext, type ReactNode, useContext, useEffect, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import type { Live, LogEntry } from "@/api/live";
import type { Outage } from "@/api/outage";
import { cx } from "@/ui/cx";
import { clockTime, useFormat } from "@/ui/format";

const Context = createContext<Live | null>(null);

export function LiveProvider({ live, children }: { live: Live; children: ReactNode }) {
  useEffect(() => {
    live.start();
    return () => live.stop();
  }, [live]);
  return <Context value={live}>{children}</Context>;
}

export function useLive(): Live {
  const live = useContext(Context);
  if (live === null) throw new Error("no live connection");
  return live;
}

/** Calls back for every request that ends. */
export function useLiveLog(listener: (entry: LogEntry) => void) {
  const live = useLive();
  useEffect(() => live.onLog(listener), [live, listener]);
}

/** A request that has ended while the page was open. */
export function useEnded(requestId: string): LogEntry | undefined {
  const live = useLive();
  const arrived = useSyncExternalStore(live.subscribeLog, live.arrived);
  return arrived.find(({ entry }) => entry.requestId === requestId)?.entry;
}

/** The component that cannot be reached, if any. */
export function useOutage(): Outage | undefined {
  const { outages } = useLive();
  return useSyncExternalStore(outages.subscribe, outages.state);
}

export function LiveDot({ label = true }: { label?: boolean }) {
  const { t } = useTranslation();
  const format = useFormat();
  const live = useLive();
  const state = useSyncExternalStore(live.subscribe, live.state);
  const outage = useOutage();
  if (state.state === "off" && !outage) return null;
  const clock = (at: number) => clockTime(new Date(at), new Date(), format);
  const lost = state.state === "lost" || outage !== undefined;
  const words = outage
    ? t(`live.${outage.what}`, { since: clock(outage.since) })
    : state.state === "live"
      ? t("live.live")
      : state.state === "lost"
        ? t("live.lost", { since: clock(state.since) })
        : t("live.connecting");
  const colour = lost ? "bg-bad" : state.state === "live" ? "bg-good" : "bg-warn";
  return (
    <span
      className="inline-flex min-w-0 items-center gap-1.5 text-xs text-faint"
      title={words}
      role="status"
    >
      <span className={cx("size-2 shrink-0 rounded-full", colour)} aria-hidden />
      <span className={cx("truncate", !label && "sr-only")}>{words}</span>
    </span>
  );
}
