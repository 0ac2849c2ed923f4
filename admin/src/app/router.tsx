/**
 * The routes. Each page is its own piece of the program, loaded when first opened. What a page is
 * filtered by is in the address (`validateSearch`), so that every view is a link.
 */
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { ApiError } from "@/api/client";
import * as queries from "@/api/queries";
import { Crashed, NotFound } from "./errors";
import { pagesFor } from "./nav";
import { flag, number, oneOf, text } from "./search";
import { Shell } from "./shell";

interface Context {
  cache: QueryClient;
}

const root = createRootRouteWithContext<Context>()({ component: Outlet, notFoundComponent: NotFound });

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: (search: Record<string, unknown>): { from?: string } => ({ from: text(search.from) }),
  component: lazyRouteComponent(() => import("@/features/login/page"), "LoginPage"),
});

/** Everything behind the login. Pages that are not for this person lead to the one that is. */
const shell = createRoute({
  getParentRoute: () => root,
  id: "shell",
  component: Shell,
  beforeLoad: async ({ context, location }) => {
    let session: Awaited<ReturnType<NonNullable<typeof queries.whoami.queryFn>>>;
    try {
      session = await context.cache.ensureQueryData(queries.whoami);
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        throw redirect({ to: "/login", search: location.pathname === "/" ? {} : { from: location.href } });
      }
      throw error;
    }
    const pages = pagesFor(session);
    const allowed = pages.some(({ path }) => path === location.pathname);
    if (!allowed) throw redirect({ to: pages[0]?.path ?? "/dashboard", replace: true });
    return { session };
  },
});

const home = createRoute({ getParentRoute: () => shell, path: "/" });

const overview = createRoute({
  getParentRoute: () => shell,
  path: "/dashboard",
  validateSearch: (search: Record<string, unknown>): OverviewSearch => ({
    range: oneOf(search.range, ["hour", "today", "7days", "30days", "thisMonth"] as const),
    by: oneOf(search.by, ["key", "model", "provider"] as const),
    show: oneOf(search.show, ["calls"] as const),
  }),
  component: lazyRouteComponent(() => import("@/features/overview/page"), "OverviewPage"),
});

export interface OverviewSearch {
  /** The last 24 hours unless it says otherwise. */
  range?: "hour" | "today" | "7days" | "30days" | "thisMonth";
  /** By user unless it says otherwise. */
  by?: "key" | "model" | "provider";
  /** Cost unless it says otherwise. */
  show?: "calls";
}

const people = createRoute({
  getParentRoute: () => shell,
  path: "/people",
  validateSearch: (search: Record<string, unknown>): PeopleSearch => ({
    q: text(search.q),
    state: oneOf(search.state, ["enabled", "disabled", "expired"] as const),
    group: text(search.group),
    view: oneOf(search.view, ["users", "keys"] as const),
    user: number(search.user),
    key: number(search.key),
  }),
  component: lazyRouteComponent(() => import("@/features/people/page"), "PeoplePage"),
});
export interface PeopleSearch {
  q?: string;
  state?: "enabled" | "disabled" | "expired";
  group?: string;
  view?: "users" | "keys";
  user?: number;
  key?: number;
}

const providers = createRoute({
  getParentRoute: () => shell,
  path: "/providers",
  validateSearch: (search: Record<string, unknown>): { id?: number; view?: "flow" } => ({
    id: number(search.id),
    view: oneOf(search.view, ["flow"] as const),
  }),
  component: lazyRouteComponent(() => import("@/features/providers/page"), "ProvidersPage"),
});

const rules = createRoute({
  getParentRoute: () => shell,
  path: "/rules",
  validateSearch: (search: Record<string, unknown>): RulesSearch => ({
    view: oneOf(search.view, ["errors"] as const),
    q: text(search.q),
    id: number(search.id),
  }),
  component: lazyRouteComponent(() => import("@/features/rules/page"), "RulesPage"),
});
export interface RulesSearch {
  /** Sensitive words unless it says otherwise. */
  view?: "errors";
  q?: string;
  /** The one that is open. */
  id?: number;
}

const logs = createRoute({
  getParentRoute: () => shell,
  path: "/logs",
  validateSearch: (search: Record<string, unknown>): LogsSearch => ({
    from: text(search.from),
    to: text(search.to),
    model: text(search.model),
    status: number(search.status),
    failed: flag(search.failed),
    user: number(search.user),
    key: number(search.key),
    provider: number(search.provider),
    session: text(search.session),
    id: text(search.id),
    endpoint: text(search.endpoint),
    retries: number(search.retries),
    request: text(search.request),
  }),
  component: lazyRouteComponent(() => import("@/features/logs/page"), "LogsPage"),
});
export interface LogsSearch {
  /** Days (`2026-11-21`) or ISO times. */
  from?: string;
  to?: string;
  model?: string;
  status?: number;
  /** Only what was not answered with 200. */
  failed?: true;
  user?: number;
  key?: number;
  provider?: number;
  session?: string;
  /** `x-tollgate-request-id`. */
  id?: string;
  endpoint?: string;
  retries?: number;
  /** The one that is open. */
  request?: string;
}

const sessions = createRoute({
  getParentRoute: () => shell,
  path: "/sessions",
  validateSearch: (search: Record<string, unknown>): SessionsSearch => ({
    q: text(search.q),
    session: text(search.session),
  }),
  component: lazyRouteComponent(() => import("@/features/sessions/page"), "SessionsPage"),
});
export interface SessionsSearch {
  q?: string;
  session?: string;
}

const myUsage = createRoute({
  getParentRoute: () => shell,
  path: "/my-usage",
  component: lazyRouteComponent(() => import("@/features/my-usage/page"), "MyUsagePage"),
});

const connect = createRoute({
  getParentRoute: () => shell,
  path: "/connect",
  validateSearch: (search: Record<string, unknown>): { client?: string } => ({ client: text(search.client) }),
  component: lazyRouteComponent(() => import("@/features/connect/page"), "ConnectPage"),
});

const playground = createRoute({
  getParentRoute: () => shell,
  path: "/playground",
  validateSearch: (search: Record<string, unknown>): PlaygroundSearch => ({
    key: number(search.key),
    format: oneOf(search.format, ["native", "responses", "chat-compatible", "alt-cli"] as const),
    model: text(search.model),
  }),
  component: lazyRouteComponent(() => import("@/features/playground/page"), "PlaygroundPage"),
});
export interface PlaygroundSearch {
  /** The id of the key that requests are sent as. */
  key?: number;
  /** `native` unless it says otherwise. */
  format?: "native" | "responses" | "chat-compatible" | "alt-cli";
  model?: string;
}

const prices = createRoute({
  getParentRoute: () => shell,
  path: "/prices",
  validateSearch: (search: Record<string, unknown>): PricesSearch => ({
    q: text(search.q),
    source: oneOf(search.source, ["manual", "sync", "seed"] as const),
    model: text(search.model),
    add: typeof search.add === "string" ? search.add : undefined,
  }),
  component: lazyRouteComponent(() => import("@/features/prices/page"), "PricesPage"),
});
export interface PricesSearch {
  q?: string;
  source?: "manual" | "sync" | "seed";
  /** The one that is open. */
  model?: string;
  /** A new one's form is open, with this name. */
  add?: string;
}

const settings = createRoute({
  getParentRoute: () => shell,
  path: "/settings",
  validateSearch: (search: Record<string, unknown>): SettingsSearch => ({
    view: oneOf(search.view, ["notifications"] as const),
  }),
  component: lazyRouteComponent(() => import("@/features/settings/page"), "SettingsPage"),
});
export interface SettingsSearch {
  view?: "notifications";
}

const audit = createRoute({
  getParentRoute: () => shell,
  path: "/audit",
  validateSearch: (search: Record<string, unknown>): AuditSearch => ({
    actor: text(search.actor),
    action: text(search.action),
    target: text(search.target),
    start: text(search.start),
    end: text(search.end),
    id: number(search.id),
  }),
  component: lazyRouteComponent(() => import("@/features/audit/page"), "AuditPage"),
});
export interface AuditSearch {
  actor?: string;
  action?: string;
  target?: string;
  /** Days, `YYYY-MM-DD`. */
  start?: string;
  end?: string;
  id?: number;
}

const rejected = createRoute({
  getParentRoute: () => shell,
  path: "/rejected",
  validateSearch: (search: Record<string, unknown>): { q?: string } => ({ q: text(search.q) }),
  component: lazyRouteComponent(() => import("@/features/rejected/page"), "RejectedPage"),
});

/** Makes the router; `main.tsx` does it once. */
export function makeRouter(cache: QueryClient) {
  return createRouter({
    routeTree: root.addChildren([
      login,
      shell.addChildren([
        home,
        overview,
        logs,
        sessions,
        rejected,
        myUsage,
        people,
        providers,
        rules,
        playground,
        connect,
        prices,
        settings,
        audit,
      ]),
    ]),
    context: { cache },
    defaultPreload: "intent",
    defaultPreloadStaleTime: 0,
    defaultErrorComponent: Crashed,
    scrollRestoration: false,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
