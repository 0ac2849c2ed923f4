/** System settings, cleaning up, and notifications: reading and writing them. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { type BodyOf, call, type DataOf, type Operation, type Schemas } from "@/api/client";

export type Settings = Schemas["SettingsRecord"];
/** Where cleaning up the request log stands. */
export type Cleanup = Schemas["CleanupRecord"];
export type Notifications = Schemas["NotificationsRecord"];

const keys = {
  system: ["settings", "system"],
  cleanup: ["settings", "cleanup"],
  notifications: ["settings", "notifications"],
} as const;

/** While it runs, its state is asked for: no event tells of it. */
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

/** Writes, and puts what the gateway answers (what is in force now) where it is read from. */
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
