/**
 * All reads as query options with their keys. Features use only these. So code that changes
 * something knows which keys to refresh, and the event stream (`live.ts`) writes into the same
 * cache entries.
 */
import { queryOptions } from "@tanstack/react-query";
import { type BodyOf, call, read } from "./client";
import { nextExpiry } from "./next-expiry";
import { nextLimitChange } from "./next-limit-change";
import { readSelf } from "./self";

export const keys = {
  whoami: ["whoami"] as const,
  site: ["site"] as const,
  users: ["users"] as const,
  keyStatistics: (userId: number) => ["users", userId, "statistics"] as const,
  keyLimits: (keyId: number) => ["limits", "key", keyId] as const,
  userLimits: (userId: number) => ["limits", "user", userId] as const,
  providers: ["providers"] as const,
  providerLimits: (id: number) => ["limits", "provider", id] as const,
  health: ["health"] as const,
  providersHistory: ["providers", "history"] as const,
  prices: ["prices"] as const,
  models: ["logs", "models"] as const,
  endpoints: ["endpoints"] as const,
  logs: (filters: LogFilters) => ["logs", filters] as const,
  overview: ["overview"] as const,
  cacheMisses: ["statistics", "cache-misses"] as const,
  sessions: ["sessions"] as const,
  statistics: (asked: Statistics) => ["statistics", asked] as const,
};

export const whoami = queryOptions({
  queryKey: keys.whoami,
  queryFn: ({ signal }) => call("auth/whoami", {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
  // Another tab may have logged in as another user.
  refetchOnWindowFocus: "always",
  retry: false,
});

/** The gateway's name; available before the login. */
export const site = queryOptions({
  queryKey: keys.site,
  queryFn: ({ signal }) => read("auth/site", signal),
  staleTime: 60_000,
});

/** All users with their keys, for administrators. Pages for users use `useUsers`. */
export const users = queryOptions({
  queryKey: keys.users,
  queryFn: ({ signal }) => call("actions/users/getUsers", {}, signal),
  refetchInterval: ({ state }) => nextExpiry(state.data),
});

/** The caller as the only user, in the same place: only administrators may list users. */
export const self = queryOptions({
  queryKey: keys.users,
  queryFn: ({ signal }) => readSelf(signal),
  refetchInterval: ({ state }) => nextExpiry(state.data),
});

export const keyStatistics = (userId: number) =>
  queryOptions({
    queryKey: keys.keyStatistics(userId),
    queryFn: ({ signal }) => call("actions/keys/getKeysWithStatistics", { userId }, signal),
  });

// The use of limits. `refresh.ts` reads it again after events, and it is read again when time alone
// changes it.
export const keyLimits = (keyId: number) =>
  queryOptions({
    queryKey: keys.keyLimits(keyId),
    queryFn: ({ signal }) => call("actions/keys/getKeyLimitUsage", { keyId }, signal),
    refetchInterval: ({ state }) => nextLimitChange([state.data]),
  });

export const userLimits = (userId: number) =>
  queryOptions({
    queryKey: keys.userLimits(userId),
    queryFn: ({ signal }) => call("actions/users/getUserLimitUsage", { userId }, signal),
    refetchInterval: ({ state }) => nextLimitChange([state.data]),
  });

export const providers = queryOptions({
  queryKey: keys.providers,
  queryFn: ({ signal }) => call("actions/providers/getProviders", {}, signal),
});

export const providerLimits = (providerId: number) =>
  queryOptions({
    queryKey: keys.providerLimits(providerId),
    queryFn: ({ signal }) =>
      call("actions/providers/getProviderLimitUsage", { providerId }, signal),
    refetchInterval: ({ state }) => nextLimitChange([state.data]),
  });

export const prices = queryOptions({
  queryKey: keys.prices,
  queryFn: ({ signal }) => call("actions/model-prices/getModelPrices", {}, signal),
  staleTime: 60_000,
});

export const sessions = queryOptions({
  queryKey: keys.sessions,
  queryFn: ({ signal }) => call("actions/active-sessions/getActiveSessions", {}, signal),
});

/** What can be called beside the replies of the formats: fixed in the program. */
export const endpoints = queryOptions({
  queryKey: keys.endpoints,
  queryFn: ({ signal }) => call("actions/playground/getEndpoints", {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
});

/** The models that were requested. */
export const models = queryOptions({
  queryKey: keys.models,
  queryFn: ({ signal }) => call("actions/usage-logs/getModelList", {}, signal),
  staleTime: 60_000,
});

export type LogFilters = NonNullable<BodyOf<"actions/usage-logs/getUsageLogs">>;

export const health = queryOptions({
  queryKey: keys.health,
  queryFn: ({ signal }) => call("actions/providers/getProvidersHealthStatus", {}, signal),
  // The stream reports changes of the state. The share of failures in the past minutes also changes
  // without a request.
  refetchInterval: ({ state }) =>
    state.data?.some(({ recentAttempts }) => recentAttempts > 0) ? 30_000 : false,
});

/** A node adds to it every five minutes. No event says so. */
export const providersHistory = queryOptions({
  queryKey: keys.providersHistory,
  queryFn: ({ signal }) => call("actions/providers/getProvidersHistory", {}, signal),
  staleTime: 60_000,
  refetchInterval: 300_000,
});

export const overview = queryOptions({
  queryKey: keys.overview,
  queryFn: ({ signal }) => call("actions/overview/getOverviewData", {}, signal),
});

/** Today's cache misses. */
export const cacheMisses = queryOptions({
  queryKey: keys.cacheMisses,
  queryFn: ({ signal }) => call("actions/statistics/getCacheMisses", {}, signal),
  staleTime: 30_000,
});

export type Statistics = NonNullable<BodyOf<"actions/statistics/getUserStatistics">>;
export const statistics = (asked: Statistics) =>
  queryOptions({
    queryKey: keys.statistics(asked),
    queryFn: ({ signal }) => call("actions/statistics/getUserStatistics", asked, signal),
    staleTime: 30_000,
    placeholderData: (before) => before,
  });
