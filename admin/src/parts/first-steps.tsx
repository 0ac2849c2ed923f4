/**
 * The first steps: which of the five steps to the first request are done, and a strip on every page
 * that leads to the next one. The event stream announces the first request. After that the strip is
 * not shown and reads nothing.
 */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useRouterState } from "@tanstack/react-router";
import { useCallback, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import type { LogEntry } from "@/api/live";
import * as queries from "@/api/queries";
import { cx } from "@/ui/cx";
import { Notice } from "@/ui/status";
import { useLiveLog } from "./live";

/** Whether any request was ever logged. Once true, it stays so. */
const anyRequest = {
  queryKey: ["begun"],
  queryFn: () =>
    call("actions/usage-logs/getUsageLogs", { pageSize: 1 }).then((page) => page.logs.length > 0),
  staleTime: Number.POSITIVE_INFINITY,
};

const LOOKED = "tollgate.prices-looked-at";
/** Whether this browser has shown the price table. */
const pricesLooked = {
  queryKey: ["begun", "prices"],
  queryFn: () => Promise.resolve(localStorage.getItem(LOOKED) === "true"),
  staleTime: Number.POSITIVE_INFINITY,
};

/** The price table was opened, so its step is done. */
export function usePricesLooked(shown: boolean) {
  const cache = useQueryClient();
  useEffect(() => {
    if (!shown) return;
    localStorage.setItem(LOOKED, "true");
    cache.setQueryData(pricesLooked.queryKey, true);
  }, [cache, shown]);
}

/**
 * `guide`: the steps; `undefined` while they are unknown, and after the first request. `settled`:
 * nothing is being read that could still change it, or reading failed once.
 */
export function useFirstSteps() {
  const requests = useQuery(anyRequest);
  const enabled = requests.data === false;
  const providers = useQuery({ ...queries.providers, enabled });
  const looked = useQuery({ ...pricesLooked, enabled });
  // The built-in table does not count as checked; a synchronised or entered one does.
  const prices = useQuery({
    ...queries.prices,
    enabled: enabled && looked.data === false,
    select: (table) => table.some(({ source }) => source !== "seed"),
  });
  const users = useQuery({ ...queries.users, enabled });
  const settled = [requests, providers, looked, prices, users].every(
    ({ isLoading, failureCount }) => !isLoading || failureCount > 0,
  );
  if (!enabled || !providers.data || looked.data === undefined || !users.data) return { settled };
  const steps = [
    { id: "provider", done: providers.data.length > 0, to: "/providers" },
    { id: "prices", done: looked.data || prices.data === true, to: "/prices" },
    { id: "people", done: users.data.length > 0, to: "/people" },
    { id: "connect", done: false, to: "/connect" },
    { id: "request", done: false, to: "/logs" },
  ] as const;
  return { settled, guide: { steps, next: steps.findIndex((step) => !step.done) } };
}

/**
 * The page, below the next step; the overview shows all steps. The page becomes visible once the
 * steps are known: a strip that came later would move its buttons away under the pointer.
 */
export function NextStep({ children }: { children: React.ReactNode }) {
  const { settled } = useFirstSteps();
  return (
    <>
      <NextStepStrip />
      <div className={cx("min-h-0 flex-1", !settled && "invisible")}>{children}</div>
    </>
  );
}

function NextStepStrip() {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const { guide } = useFirstSteps();
  const [arrived, setArrived] = useState<string>();
  const hear = useCallback(
    (entry: LogEntry) => {
      if (cache.getQueryData(anyRequest.queryKey) !== false) return;
      cache.setQueryData(anyRequest.queryKey, true);
      setArrived(entry.requestId);
    },
    [cache],
  );
  useLiveLog(hear);
  const link = "font-medium underline underline-offset-2";
  if (arrived !== undefined)
    return (
      <Strip>
        <Notice tone="good" title={t("guide.arrived")}>
          <Link
            to="/logs"
            search={{ request: arrived }}
            className={link}
            onClick={() => setArrived(undefined)}
          >
            {t("guide.look")}
          </Link>
        </Notice>
      </Strip>
    );
  const step = guide?.steps[guide.next];
  if (!guide || !step || path === "/dashboard") return null;
  const here = step.to === path;
  return (
    <Strip>
      <Notice
        tone="plain"
        title={t("guide.step", { number: guide.next + 1, title: t(`guide.${step.id}.title`) })}
      >
        {here || (step.id === "connect" && path === "/logs") ? (
          t(`guide.${step.id}.here`)
        ) : (
          <Link to={step.to} className={link}>
            {t("guide.go", { page: t(`nav.${step.to.slice(1) as "people"}`) })}
          </Link>
        )}
      </Notice>
    </Strip>
  );
}

const Strip = ({ children }: { children: React.ReactNode }) => (
  <div className="mx-auto w-full max-w-[110rem] shrink-0 px-4 pt-4 sm:px-6">{children}</div>
);
