/** Reads and writes system settings, the cleanup, and notifications. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { type BodyOf, call, type DataOf, type Operation, type Schemas } from "@/api/client";

export type Settings = Schemas["SettingsRecord"];
export type SentGroups = NonNullable<
  BodyOf<"actions/system-config/saveSystemSettings">["groupFeatures"]
>;
/** The settings as a form holds them. */
export type SystemForm = Omit<Settings, "timezone" | "cleanupRetentionDays"> & {
  cleanupRetentionDays: string;
};
/** The state of the cleanup of the request log. */
export type Cleanup = Schemas["CleanupRecord"];
export type Notifications = Schemas["NotificationsRecord"];

const keys = {
  system: ["settings", "system"],
  cleanup: ["settings", "cleanup"],
  notifications: ["settings", "notifications"],
} as const;

/** Polled while it runs, because no event reports it. */
const CLEANUP_PACE = 1000;

export const settings = queryOptions({
  queryKey: keys.system,
  queryFn: ({ signal }) => call("actions/system-config/fetchSystemSettings", {}, signal),
});

export const cleanup = queryOptions({
  queryKey: keys.cleanup,
  queryFn: ({ signal }) => call("actions/system-config/getCleanupStatus", {}, signal),
  refetchInterval: ({ state }) => (state.data?.running ? CLEANUP_PACE : false),
});

export const notifications = queryOptions({
  queryKey: keys.notifications,
  queryFn: ({ signal }) => call("actions/notifications/getNotificationSettingsAction", {}, signal),
});

/** Writes, and puts the gateway's answer (the current values) into the query cache. */
function useSave<O extends Operation>(operation: O, key: readonly string[]) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: BodyOf<O>) => call(operation, body),
    onSuccess: (saved: DataOf<O>) => cache.setQueryData(key, saved),
  });
}

export type NotificationsChange = BodyOf<"actions/notifications/updateNotificationSettingsAction">;

export const useSaveSettings = () =>
  useSave("actions/system-config/saveSystemSettings", keys.system);
export const useRunCleanup = () => useSave("actions/system-config/runCleanup", keys.cleanup);
export const useSaveNotifications = () =>
  useSave("actions/notifications/updateNotificationSettingsAction", keys.notifications);
export const useTestWebhook = () =>
  useMutation({
    mutationFn: (webhookUrl: string) =>
      call("actions/notifications/testWebhookAction", { webhookUrl }),
  });
