/**
 * The labels of the gateway's fields (`daily_reset_time`, `dailyResetTime`) in the user's language:
 * for faults that cannot be shown at their field.
 */
import i18n from "i18next";

/** Catalogue sections with labels under the gateway's own names. */
const SECTIONS = ["providers.fields", "people"];

/** Labels under other names. */
const OTHERS: Record<string, string> = {
  siteTitle: "settings.system.siteTitle",
  currencyDisplay: "settings.system.currency",
  allowGlobalUsageView: "settings.system.global",
  enableClientVersionCheck: "settings.system.clients",
  enableAutoCleanup: "settings.cleanup.auto",
  cleanupRetentionDays: "settings.cleanup.retention",
  cleanupSchedule: "settings.cleanup.schedule",
  circuitBreakerWebhook: "settings.notify.webhook",
  dailyLeaderboardWebhook: "settings.notify.webhook",
  costAlertWebhook: "settings.notify.webhook",
  webhookUrl: "settings.notify.webhook",
  webhookSecret: "settings.notify.secret",
  dailyLeaderboardTime: "settings.notify.time",
  dailyLeaderboardTopN: "settings.notify.top",
  costAlertThreshold: "settings.notify.threshold",
  costAlertCheckInterval: "settings.notify.interval",
  pattern: "rules.pattern",
  matchType: "rules.match",
  description: "rules.description",
  word: "rules.words.word",
  appliesTo: "rules.errors.appliesTo",
  category: "rules.errors.category",
  overrideStatusCode: "rules.errors.status",
  overrideResponse: "rules.errors.response",
  modelName: "prices.model",
};

/** The bare name of a field such as `updates.limitDailyUsd` or `allowed_models[2]`. */
export const plainName = (field: string) => field.replace(/^updates\./, "").replace(/\[.*$/, "");

/** The label of a field; `undefined` if no form has such a field. */
export function fieldLabel(field: string): string | undefined {
  const name = plainName(field);
  const keys = [...SECTIONS.map((section) => `${section}.${name}`), OTHERS[name]];
  for (const key of keys) {
    if (key === undefined || !i18n.exists(key)) continue;
    const label: unknown = i18n.t(key as "ui.cancel");
    if (typeof label === "string") return label;
  }
  return undefined;
}
