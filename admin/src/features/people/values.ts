/** Users and keys as form values (text), and back to what the gateway accepts. Pure. */
import type { Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import type { Feature } from "@/parts/feature-fields";
import { boundOf, orNull, textOf, words } from "@/parts/values";
import { dayOf } from "@/ui/format";

export type User = Schemas["UserRecord"];
export type Key = Schemas["KeyRecord"];

/** What is read again after a user or a key was changed. */
export const CHANGED = [keys.users, ["limits"]] as const;

export const MONEY = [
  "limit5hUsd",
  "limitDailyUsd",
  "limitWeeklyUsd",
  "limitMonthlyUsd",
  "limitTotalUsd",
] as const;
export type MoneyLimit = (typeof MONEY)[number];

export interface LimitValues extends Record<MoneyLimit, string> {
  limitConcurrentSessions: string;
  dailyResetMode: string;
  dailyResetTime: string;
}
export interface UserValues extends LimitValues {
  name: string;
  note: string;
  role: string;
  isEnabled: boolean;
  expiresAt: string;
  providerGroup: string[];
  tags: string[];
  rpm: string;
  allowedModels: string[];
  allowedClients: string[];
  allowedFeatures: string[];
  deniedFeatures: string[];
  lockKeyLimits: boolean;
  maxKeys: string;
}
export interface KeyValues extends LimitValues {
  name: string;
  isEnabled: boolean;
  expiresAt: string;
  canLoginWebUi: boolean;
  providerGroup: string[];
  cacheTtlPreference: string;
  allowedModels: string[];
  allowedFeatures: string[];
  deniedFeatures: string[];
}

/** Maps the gateway's rules about a limit of a key and the same one of its user to their field. */
export const LIMIT_RULES = {
  KEY_LIMIT_5H_EXCEEDS_USER_LIMIT: "limit5hUsd",
  KEY_LIMIT_DAILY_EXCEEDS_USER_LIMIT: "limitDailyUsd",
  KEY_LIMIT_WEEKLY_EXCEEDS_USER_LIMIT: "limitWeeklyUsd",
  KEY_LIMIT_MONTHLY_EXCEEDS_USER_LIMIT: "limitMonthlyUsd",
  KEY_LIMIT_TOTAL_EXCEEDS_USER_LIMIT: "limitTotalUsd",
  KEY_LIMIT_CONCURRENT_EXCEEDS_USER_LIMIT: "limitConcurrentSessions",
} as const satisfies Record<string, keyof LimitValues>;

/** Maps each of the gateway's rules about keys to the key's field. */
export const KEY_RULES = {
  DUPLICATE_NAME: "name",
  NO_GROUP_PERMISSION: "providerGroup",
  NO_DEFAULT_GROUP_PERMISSION: "providerGroup",
  CANNOT_DISABLE_LAST_KEY: "isEnabled",
  ...LIMIT_RULES,
} as const satisfies Record<string, keyof KeyValues>;

function limits(record: Key | User | undefined): LimitValues {
  return {
    limit5hUsd: textOf(record?.limit5hUsd),
    limitDailyUsd: textOf(record?.limitDailyUsd),
    limitWeeklyUsd: textOf(record?.limitWeeklyUsd),
    limitMonthlyUsd: textOf(record?.limitMonthlyUsd),
    limitTotalUsd: textOf(record?.limitTotalUsd),
    limitConcurrentSessions: boundOf(record?.limitConcurrentSessions),
    dailyResetMode: record?.dailyResetMode ?? "fixed",
    dailyResetTime: record?.dailyResetTime ?? "00:00",
  };
}

export function userValues(user: User | undefined, timeZone: string): UserValues {
  return {
    name: user?.name ?? "",
    note: user?.note ?? "",
    role: user?.role ?? "user",
    isEnabled: user?.isEnabled ?? true,
    expiresAt: dayOf(user?.expiresAt, timeZone),
    providerGroup: words(user?.providerGroup),
    tags: user?.tags ?? [],
    rpm: boundOf(user?.rpm),
    allowedModels: user?.allowedModels ?? [],
    allowedClients: user?.allowedClients ?? [],
    allowedFeatures: user?.allowedFeatures ?? [],
    deniedFeatures: user?.deniedFeatures ?? [],
    lockKeyLimits: user?.lockKeyLimits ?? false,
    maxKeys: textOf(user?.maxKeys),
    ...limits(user),
  };
}

export function keyValues(key: Key | undefined, timeZone: string): KeyValues {
  return {
    name: key?.name ?? "",
    isEnabled: key?.isEnabled ?? true,
    expiresAt: dayOf(key?.expiresAt, timeZone),
    canLoginWebUi: key?.canLoginWebUi ?? true,
    providerGroup: words(key?.providerGroup),
    cacheTtlPreference: key?.cacheTtlPreference ?? "inherit",
    allowedModels: key?.allowedModels ?? [],
    allowedFeatures: key?.allowedFeatures ?? [],
    deniedFeatures: key?.deniedFeatures ?? [],
    ...limits(key),
  };
}

function limitBody(values: LimitValues) {
  return {
    limit5hUsd: orNull(values.limit5hUsd),
    limitDailyUsd: orNull(values.limitDailyUsd),
    limitWeeklyUsd: orNull(values.limitWeeklyUsd),
    limitMonthlyUsd: orNull(values.limitMonthlyUsd),
    limitTotalUsd: orNull(values.limitTotalUsd),
    limitConcurrentSessions: orNull(values.limitConcurrentSessions),
    dailyResetMode: values.dailyResetMode as "fixed" | "rolling",
    dailyResetTime: values.dailyResetTime,
  };
}

export function userBody(values: UserValues) {
  return {
    name: values.name.trim(),
    note: values.note,
    role: values.role as "admin" | "user",
    isEnabled: values.isEnabled,
    expiresAt: orNull(values.expiresAt),
    providerGroup: orNull(values.providerGroup.join(",")),
    tags: values.tags,
    rpm: orNull(values.rpm),
    allowedModels: values.allowedModels,
    allowedClients: values.allowedClients,
    allowedFeatures: values.allowedFeatures as Feature[],
    deniedFeatures: values.deniedFeatures as Feature[],
    lockKeyLimits: values.lockKeyLimits,
    maxKeys: orNull(values.maxKeys),
    ...limitBody(values),
  };
}

export function keyBody(values: KeyValues) {
  return {
    name: values.name.trim(),
    isEnabled: values.isEnabled,
    expiresAt: orNull(values.expiresAt),
    canLoginWebUi: values.canLoginWebUi,
    providerGroup: orNull(values.providerGroup.join(",")),
    cacheTtlPreference: values.cacheTtlPreference as "inherit" | "5m" | "1h",
    allowedModels: values.allowedModels,
    allowedFeatures: values.allowedFeatures as Feature[],
    deniedFeatures: values.deniedFeatures as Feature[],
    ...limitBody(values),
  };
}

export const STATES = ["enabled", "disabled", "expired"] as const;
export type State = (typeof STATES)[number];
