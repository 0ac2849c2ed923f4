/** A provider as form values: text, with durations in readable units. Pure. */
import type { BodyOf } from "@/api/client";
import type { Feature } from "@/parts/feature-fields";
import { boundOf, orNull, textOf, words } from "@/parts/values";
import type { Provider } from "./selection";

export const TYPES = ["native", "native-auth", "responses", "chat-compatible", "alt-cli"] as const;
/** How a credential is sent. */
export const AUTHS = [
  "auto",
  "x-api-key",
  "bearer",
  "x-goog-api-key",
  "api-key",
  "gcp-service-account",
  "azure-entra",
  "aws-sigv4",
  "client",
  "none",
] as const;
/** Whether the provider gets no credential of the gateway's. */
export const sendsNone = (auth: string | undefined) => auth === "none" || auth === "client";
export const MONEY = [
  "limit_5h_usd",
  "limit_daily_usd",
  "limit_weekly_usd",
  "limit_monthly_usd",
  "limit_total_usd",
] as const;
export const TIMEOUTS = [
  "first_byte_timeout_streaming_ms",
  "streaming_idle_timeout_ms",
  "streaming_content_timeout_ms",
  "request_timeout_non_streaming_ms",
] as const;

/** Milliseconds in the unit of a field: minutes, seconds. */
export const UNITS: Readonly<Record<string, number>> = {
  circuit_breaker_open_duration: 60_000,
  ...Object.fromEntries(TIMEOUTS.map((name) => [name, 1000])),
};

/** The API's field names, so that a fault finds its field. */
export interface Values extends Record<(typeof MONEY)[number] | (typeof TIMEOUTS)[number], string> {
  name: string;
  url: string;
  key: string;
  provider_type: string;
  auth: string;
  /** Parts of the credential of `azure-entra`, whose secret is `key`. */
  entra_tenant: string;
  entra_client: string;
  /** One per line, `name = value`. */
  custom_headers: string;
  query: string;
  path_template: string;
  /** Further keys. `stored`: the masked text of one that is known to the gateway. */
  credentials: {
    name: string;
    key: string;
    is_enabled: boolean;
    stored: string;
    was: boolean | null;
  }[];
  key_is_enabled: boolean;
  quota_guard: string;
  is_enabled: boolean;
  weight: string;
  priority: string;
  cost_multiplier: string;
  group_tag: string[];
  allowed_models: string[];
  allowed_features: string[];
  denied_features: string[];
  model_redirects: string;
  daily_reset_mode: string;
  daily_reset_time: string;
  limit_concurrent_sessions: string;
  max_retry_attempts: string;
  circuit_breaker_failure_threshold: string;
  /** Minutes here, milliseconds in the API. */
  circuit_breaker_open_duration: string;
  circuit_breaker_half_open_success_threshold: string;
  cache_ttl_preference: string;
  instructions_strategy: string;
  preserve_client_ip: boolean;
  anthropic_host: string;
  websocket: boolean;
  probe_interval: string;
  probe_model: string;
  proxy_url: string;
  tls_ca: string;
  tls_client_certificate: string;
  tls_client_key: string;
  note: string;
}

/** Milliseconds as seconds; a value that is not a whole second keeps its fraction. */
const seconds = (ms: number | null | undefined) =>
  ms === null || ms === undefined ? "" : String(ms / 1000);

const lines = (texts: Record<string, string> | undefined) =>
  Object.entries(texts ?? {})
    .map(([name, text]) => `${name} = ${text}`)
    .join("\n");

export function values(provider: Provider | undefined): Values {
  const p = provider;
  return {
    name: p?.name ?? "",
    url: p?.url ?? "",
    key: "",
    provider_type: p?.providerType ?? "native",
    auth: p?.auth ?? "auto",
    entra_tenant: "",
    entra_client: "",
    custom_headers: lines(p?.customHeaders),
    query: lines(p?.query),
    path_template: p?.pathTemplate ?? "",
    credentials: (p?.credentials ?? []).map((one) => ({
      name: one.name,
      key: "",
      is_enabled: one.isEnabled,
      stored: one.key,
      was: one.isEnabled,
    })),
    key_is_enabled: p?.keyIsEnabled ?? true,
    quota_guard: textOf(p?.quotaGuard),
    is_enabled: p?.isEnabled ?? true,
    weight: textOf(p?.weight ?? 1),
    priority: textOf(p?.priority ?? 0),
    cost_multiplier: textOf(p?.costMultiplier ?? 1),
    group_tag: words(p?.groupTag),
    allowed_models: p?.allowedModels ?? [],
    allowed_features: p?.allowedFeatures ?? [],
    denied_features: p?.deniedFeatures ?? [],
    model_redirects: lines(p?.modelRedirects),
    limit_5h_usd: textOf(p?.limit5hUsd),
    limit_daily_usd: textOf(p?.limitDailyUsd),
    limit_weekly_usd: textOf(p?.limitWeeklyUsd),
    limit_monthly_usd: textOf(p?.limitMonthlyUsd),
    limit_total_usd: textOf(p?.limitTotalUsd),
    daily_reset_mode: p?.dailyResetMode ?? "fixed",
    daily_reset_time: p?.dailyResetTime ?? "00:00",
    limit_concurrent_sessions: boundOf(p?.limitConcurrentSessions),
    max_retry_attempts: textOf(p?.maxRetryAttempts ?? 2),
    circuit_breaker_failure_threshold: textOf(p?.circuitBreakerFailureThreshold ?? 5),
    circuit_breaker_open_duration: String((p?.circuitBreakerOpenDuration ?? 1_800_000) / 60_000),
    circuit_breaker_half_open_success_threshold: textOf(
      p?.circuitBreakerHalfOpenSuccessThreshold ?? 2,
    ),
    first_byte_timeout_streaming_ms: seconds(p?.firstByteTimeoutStreamingMs),
    streaming_idle_timeout_ms: seconds(p?.streamingIdleTimeoutMs),
    streaming_content_timeout_ms: seconds(p?.streamingContentTimeoutMs),
    request_timeout_non_streaming_ms: seconds(p?.requestTimeoutNonStreamingMs),
    cache_ttl_preference: p?.cacheTtlPreference ?? "inherit",
    instructions_strategy: p?.instructionsStrategy ?? "keep_original",
    preserve_client_ip: p?.preserveClientIp ?? false,
    anthropic_host: p?.anthropicHost ?? "auto",
    websocket: p?.websocket ?? false,
    probe_interval: textOf(p?.probeInterval),
    probe_model: p?.probeModel ?? "",
    proxy_url: p?.proxyUrl ?? "",
    tls_ca: p?.tlsCa ?? "",
    tls_client_certificate: p?.tlsClientCertificate ?? "",
    tls_client_key: "",
    note: p?.note ?? "",
  };
}

/** A new provider like this one. The credential is not known here, so it must be entered. */
export function copied(provider: Provider, name: string): Values {
  return { ...values(provider), name, key: "", credentials: [], key_is_enabled: true };
}

/**
 * In milliseconds; a text that is not a number is sent unchanged, so that the gateway refuses it.
 */
const scaled = (value: string, by: number) => {
  const number = Number(value);
  return Number.isFinite(number) && value.trim() !== "" ? Math.round(number * by) : value.trim();
};
const milliseconds = (value: string) => (value.trim() === "" ? null : scaled(value, 1000));

/** The number of the first line that is not of the form `requested = sent`, from 1. */
export function badRedirect(lines: string): number | undefined {
  const bad = lines
    .split("\n")
    .findIndex((line) => line.trim() !== "" && !/^\s*[^=\s][^=]*=\s*\S/.test(line));
  return bad < 0 ? undefined : bad + 1;
}

/** Lines of the form `requested = sent`. */
export function redirects(lines: string): Record<string, string> {
  const pairs = lines.split("\n").map((line) => {
    const [from = "", ...to] = line.split("=");
    return [from.trim(), to.join("=").trim()] as const;
  });
  return Object.fromEntries(pairs.filter(([from, to]) => from && to));
}

export type Body = BodyOf<"actions/providers/addProvider">;

/** The credential as it is sent to the gateway; empty if none was typed. */
function credential({ auth, key, entra_tenant, entra_client }: Values): string {
  if (sendsNone(auth)) return "";
  if (auth !== "azure-entra" || key.trim().startsWith("{")) return key;
  const parts = {
    tenant_id: entra_tenant.trim(),
    client_id: entra_client.trim(),
    client_secret: key.trim(),
  };
  // The three belong together: the gateway says which is missing.
  return Object.values(parts).every((part) => part === "") ? "" : JSON.stringify(parts);
}

const isSecure = ({ url }: Values) => url.trim().toLowerCase().startsWith("https://");

/** All fields except the credential, which is sent only if it was typed. */
export function body(form: Values): Omit<Body, "key"> & { key?: string } {
  const money = Object.fromEntries(MONEY.map((name) => [name, orNull(form[name])]));
  const timeouts = Object.fromEntries(TIMEOUTS.map((name) => [name, milliseconds(form[name])]));
  const key = credential(form);
  return {
    ...(key === "" ? {} : { key }),
    name: form.name.trim(),
    url: form.url.trim(),
    provider_type: form.provider_type as Body["provider_type"],
    auth: form.auth as Body["auth"],
    custom_headers: redirects(form.custom_headers),
    query: redirects(form.query),
    path_template: orNull(form.path_template),
    // The gateway may have disabled one since: a switch is sent only if it was turned, or
    // with a new text.
    credentials: form.credentials.map(({ name, key, is_enabled, was }) => ({
      name: name.trim(),
      ...(key === "" ? {} : { key }),
      ...(is_enabled === was && key === "" ? {} : { is_enabled }),
    })),
    ...(form.credentials.length === 0 ? {} : { key_is_enabled: form.key_is_enabled }),
    quota_guard: orNull(form.quota_guard),
    is_enabled: form.is_enabled,
    weight: form.weight,
    priority: form.priority,
    cost_multiplier: form.cost_multiplier,
    group_tag: orNull(form.group_tag.join(",")),
    allowed_models: form.allowed_models,
    allowed_features: form.allowed_features as Feature[],
    denied_features: form.denied_features as Feature[],
    model_redirects: redirects(form.model_redirects),
    ...money,
    daily_reset_mode: form.daily_reset_mode as "fixed" | "rolling",
    daily_reset_time: form.daily_reset_time,
    limit_concurrent_sessions: orNull(form.limit_concurrent_sessions),
    max_retry_attempts: form.max_retry_attempts,
    circuit_breaker_failure_threshold: form.circuit_breaker_failure_threshold,
    circuit_breaker_open_duration: scaled(form.circuit_breaker_open_duration, 60_000),
    circuit_breaker_half_open_success_threshold: form.circuit_breaker_half_open_success_threshold,
    ...timeouts,
    cache_ttl_preference: form.cache_ttl_preference as Body["cache_ttl_preference"],
    instructions_strategy: form.instructions_strategy as Body["instructions_strategy"],
    preserve_client_ip: form.preserve_client_ip,
    anthropic_host: form.anthropic_host as Body["anthropic_host"],
    websocket: form.websocket,
    probe_interval: orNull(form.probe_interval),
    probe_model: orNull(form.probe_model),
    proxy_url: orNull(form.proxy_url),
    // The fields are shown for such an address only.
    tls_ca: isSecure(form) ? orNull(form.tls_ca) : null,
    tls_client_certificate: isSecure(form) ? orNull(form.tls_client_certificate) : null,
    ...(form.tls_client_key === "" || !isSecure(form)
      ? {}
      : { tls_client_key: form.tls_client_key }),
    note: form.note,
  };
}
