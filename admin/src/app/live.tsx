/** The live connection in the page: one for all, its state as a dot, and requests as they end. */
import { createContext, type ReactNode, useContext, useEffect, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import type { Live, LogEntry } from "@/api/live";
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

/** Hears of every request that ends. */
export function useLiveLog(listener: (entry: LogEntry) => void) {
  const live = useLive();
  useEffect(() => live.onLog(listener), [live, listener]);
}

export function LiveDot({ label = true }: { label?: boolean }) {
  const { t } = useTranslation();
  const format = useFormat();
  const live = useLive();
  const state = useSyncExternalStore(live.subscribe, live.state);
  if (state.state === "off") return null;
  const words =
    state.state === "live"
      ? t("live.live")
      : state.state === "connecting"
        ? t("live.connecting")
        : t("live.lost", { since: clockTime(new Date(state.since ?? 0), new Date(), format) });
  const colour = state.state === "live" ? "bg-good" : state.state === "lost" ? "bg-bad" : "bg-warn";
  return (
    <span className="inline-flex min-w-0 items-center gap-1.5 text-xs text-faint" title={words} role="status">
      <span className={cx("size-2 shrink-0 rounded-full", colour)} aria-hidden />
      <span className={cx("truncate", !label && "sr-only")}>{words}</span>
    </span>
  );
}
