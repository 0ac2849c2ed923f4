/** Notification settings as form values (all text) and as the gateway's record. */
import type { Notifications, NotificationsChange } from "./api";

export interface NotifyForm {
  enabled: boolean;
  circuitBreakerEnabled: boolean;
  circuitBreakerWebhook: string;
  dailyLeaderboardEnabled: boolean;
  dailyLeaderboardWebhook: string;
  dailyLeaderboardTime: string;
  dailyLeaderboardTopN: string;
  costAlertEnabled: boolean;
  costAlertWebhook: string;
  /** In percent; the gateway has a share. */
  costAlertThreshold: string;
  costAlertCheckInterval: string;
  /** Entered to be set; never shown. */
  webhookSecret: string;
}

/** A percent as a share. */
export const UNITS = { costAlertThreshold: 0.01 };

export function formOf(saved: Notifications): NotifyForm {
  return {
    enabled: saved.enabled,
    circuitBreakerEnabled: saved.circuitBreakerEnabled,
    circuitBreakerWebhook: saved.circuitBreakerWebhook ?? "",
    dailyLeaderboardEnabled: saved.dailyLeaderboardEnabled,
    dailyLeaderboardWebhook: saved.dailyLeaderboardWebhook ?? "",
    dailyLeaderboardTime: saved.dailyLeaderboardTime,
    dailyLeaderboardTopN: String(saved.dailyLeaderboardTopN),
    costAlertEnabled: saved.costAlertEnabled,
    costAlertWebhook: saved.costAlertWebhook ?? "",
    costAlertThreshold: String(Math.round(saved.costAlertThreshold * 10_000) / 100),
    costAlertCheckInterval: String(saved.costAlertCheckInterval),
    webhookSecret: "",
  };
}

const address = (typed: string) => (typed.trim() === "" ? null : typed.trim());

/** The changed values only. An empty address removes it; an empty secret keeps the stored one. */
export function changeOf(before: NotifyForm, after: NotifyForm): NotificationsChange {
  const all: Record<keyof NotifyForm, unknown> = {
    ...after,
    circuitBreakerWebhook: address(after.circuitBreakerWebhook),
    dailyLeaderboardWebhook: address(after.dailyLeaderboardWebhook),
    costAlertWebhook: address(after.costAlertWebhook),
    dailyLeaderboardTopN: Number(after.dailyLeaderboardTopN),
    costAlertThreshold: Math.round(Number(after.costAlertThreshold)) / 100,
    costAlertCheckInterval: Number(after.costAlertCheckInterval),
  };
  const names = Object.keys(after) as (keyof NotifyForm)[];
  return Object.fromEntries(
    names.filter((name) => before[name] !== after[name]).map((name) => [name, all[name]]),
  );
}

/** A random signing key of 32 bytes. */
export function newSecret(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
