/**
 * The routes. Each page is a separate chunk that is loaded when it is first opened. A page's
 * filters are in its address (`validateSearch`), so every view is a link.
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
import { auditSearch } from "@/features/audit/search";
import { connectSearch } from "@/features/connect/search";
import { invoicesSearch } from "@/features/invoices/search";
import { loginSearch } from "@/features/login/search";
import { logsSearch } from "@/features/logs/search";
import { overviewSearch } from "@/features/overview/search";
import { peopleSearch } from "@/features/people/search";
import { playgroundSearch } from "@/features/playground/search";
import { pricesSearch } from "@/features/prices/search";
import { providersSearch } from "@/features/providers/search";
import { rejectedSearch } from "@/features/rejected/search";
import { rulesSearch } from "@/features/rules/search";
import { sessionsSearch } from "@/features/sessions/search";
import { settingsSearch } from "@/features/settings/search";
import { Crashed, NotFound } from "./errors";
import { pagesFor } from "./nav";
import { Shell } from "./shell";

interface Context {
  cache: QueryClient;
}

const root = createRootRouteWithContext<Context>()({
  component: Outlet,
  notFoundComponent: NotFound,
});

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: loginSearch,
  component: lazyRouteComponent(() => import("@/features/login/page"), "LoginPage"),
});

/**
 * All pages behind the login. A page that the caller may not open redirects to one that is allowed.
 */
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
        throw redirect({
          to: "/login",
          search: location.pathname === "/" ? {} : { from: location.href },
        });
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
  validateSearch: overviewSearch,
  component: lazyRouteComponent(() => import("@/features/overview/page"), "OverviewPage"),
});

const people = createRoute({
  getParentRoute: () => shell,
  path: "/people",
  validateSearch: peopleSearch,
  component: lazyRouteComponent(() => import("@/features/people/page"), "PeoplePage"),
});

const providers = createRoute({
  getParentRoute: () => shell,
  path: "/providers",
  validateSearch: providersSearch,
  component: lazyRouteComponent(() => import("@/features/providers/page"), "ProvidersPage"),
});

const rules = createRoute({
  getParentRoute: () => shell,
  path: "/rules",
  validateSearch: rulesSearch,
  component: lazyRouteComponent(() => import("@/features/rules/page"), "RulesPage"),
});

const logs = createRoute({
  getParentRoute: () => shell,
  path: "/logs",
  validateSearch: logsSearch,
  component: lazyRouteComponent(() => import("@/features/logs/page"), "LogsPage"),
});

const sessions = createRoute({
  getParentRoute: () => shell,
  path: "/sessions",
  validateSearch: sessionsSearch,
  component: lazyRouteComponent(() => import("@/features/sessions/page"), "SessionsPage"),
});

const myUsage = createRoute({
  getParentRoute: () => shell,
  path: "/my-usage",
  component: lazyRouteComponent(() => import("@/features/my-usage/page"), "MyUsagePage"),
});

const connect = createRoute({
  getParentRoute: () => shell,
  path: "/connect",
  validateSearch: connectSearch,
  component: lazyRouteComponent(() => import("@/features/connect/page"), "ConnectPage"),
});

const playground = createRoute({
  getParentRoute: () => shell,
  path: "/playground",
  validateSearch: playgroundSearch,
  component: lazyRouteComponent(() => import("@/features/playground/page"), "PlaygroundPage"),
});

const prices = createRoute({
  getParentRoute: () => shell,
  path: "/prices",
  validateSearch: pricesSearch,
  component: lazyRouteComponent(() => import("@/features/prices/page"), "PricesPage"),
});

const invoices = createRoute({
  getParentRoute: () => shell,
  path: "/invoices",
  validateSearch: invoicesSearch,
  component: lazyRouteComponent(() => import("@/features/invoices/page"), "InvoicesPage"),
});

const settings = createRoute({
  getParentRoute: () => shell,
  path: "/settings",
  validateSearch: settingsSearch,
  component: lazyRouteComponent(() => import("@/features/settings/page"), "SettingsPage"),
});

const audit = createRoute({
  getParentRoute: () => shell,
  path: "/audit",
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import("@/features/audit/page"), "AuditPage"),
});

const rejected = createRoute({
  getParentRoute: () => shell,
  path: "/rejected",
  validateSearch: rejectedSearch,
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
        invoices,
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
