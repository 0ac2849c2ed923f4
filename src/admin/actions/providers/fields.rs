//! The bodies of `providers/*`, and how they are applied to a provider. Field names are snake_case
//! here.

use crate::admin::actions::keys::fields::{CACHE_TTL, GROUP, NAME, RESET_MODE, RESET_TIME};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Field, Form, Kind, Patch, Values};
use crate::admin::limits;
use crate::domain::group::Groups;
use crate::domain::key::CacheTtl;
use crate::domain::provider::{InstructionsStrategy, Provider, ProviderType};
use crate::formats::route;

pub const PROVIDER_ID: &[Field] = &[Field::new("providerId", Kind::ID, "The provider.").required()];

const PATTERN: Kind = Kind::text(1, 200);
/// The kinds of providers.
pub const TYPES: Kind = Kind::Choice(&["native", "native-auth", "responses", "chat-compatible", "alt-cli"]);
const STRATEGIES: Kind = Kind::Choice(&["auto", "force_official", "keep_original"]);
const URL: Kind = Kind::Text { min: 1, max: 2048, form: Form::BaseUrl };
const PROXY_URL: Kind = Kind::Text { min: 1, max: 2048, form: Form::ProxyUrl };
/// An hour: longer than any reply takes.
const TIMEOUT: Kind = Kind::Integer { min: 0, max: 3_600_000 };

/// A provider's own fields: of a new one, and of an edit.
pub const PROVIDER: &[Field] = &[
    Field::new("name", NAME, "").required(),
    Field::new("url", URL, "The upstream's base address, with or without `/v1`, or with a path prefix.").required(),
    Field::new("key", Kind::text(1, 4096), "The upstream's credential. Write-only: records show it masked.").required(),
    Field::new("provider_type", TYPES, "How the upstream is spoken to.").or_text("native"),
    Field::new("is_enabled", Kind::Boolean, "").or_true(),
    Field::new("weight", Kind::Integer { min: 1, max: 100 }, "The share among providers of the same priority.")
        .or_integer(1),
    Field::new("priority", Kind::Integer { min: -1000, max: 1_000_000 }, "Lower is tried first.").or_integer(0),
    Field::new("cost_multiplier", Kind::Decimal { max: 1000, places: 4 }, "Costs are multiplied by this.")
        .or_integer(1),
    Field::new("group_tag", GROUP, "Comma-separated provider groups; empty or `null` = the default group.").nullable(),
    Field::new("allowed_models", Kind::list(&PATTERN, 1000), "A trailing `*` matches any suffix; empty = every model.")
        .nullable(),
    Field::new("model_redirects", Kind::Map { max: 500, text_max: 200 }, "Requested model → model sent upstream.")
        .nullable(),
    Field::new("limit_5h_usd", Kind::usd(1_000_000), "USD in any 5 hours; `null` = no limit, 0 = nothing.").nullable(),
    Field::new("limit_daily_usd", Kind::usd(1_000_000), "USD a day; `null` = no limit, 0 = nothing.").nullable(),
    Field::new("limit_weekly_usd", Kind::usd(5_000_000), "USD a calendar week; `null` = no limit, 0 = nothing.")
        .nullable(),
    Field::new("limit_monthly_usd", Kind::usd(20_000_000), "USD a calendar month; `null` = no limit, 0 = nothing.")
        .nullable(),
    Field::new("limit_total_usd", Kind::usd(1_000_000_000), "USD ever; `null` = no limit, 0 = nothing.").nullable(),
    Field::new("daily_reset_mode", RESET_MODE, "`fixed`: at `daily_reset_time`; `rolling`: the past 24 hours.")
        .or_text("fixed"),
    Field::new("daily_reset_time", RESET_TIME, "`HH:MM` in the gateway's time zone.").or_text("00:00"),
    Field::new(
        "limit_concurrent_sessions",
        Kind::Integer { min: 0, max: 100_000 },
        "Conversations at once; 0 or `null` = no limit.",
    )
    .nullable(),
    Field::new("max_retry_attempts", Kind::Integer { min: 1, max: 10 }, "Attempts here for one request.").or_integer(2),
    Field::new(
        "circuit_breaker_failure_threshold",
        Kind::Integer { min: 0, max: 1000 },
        "Consecutive failures that open the circuit; 0 = it never opens.",
    )
    .or_integer(5),
    Field::new("circuit_breaker_open_duration", Kind::Integer { min: 1000, max: 86_400_000 }, "Milliseconds.")
        .or_integer(1_800_000),
    Field::new(
        "circuit_breaker_half_open_success_threshold",
        Kind::Integer { min: 1, max: 100 },
        "Successes of probes in a row that close the circuit.",
    )
    .or_integer(2),
    Field::new(
        "first_byte_timeout_streaming_ms",
        TIMEOUT,
        "Milliseconds to a stream's first byte; `null` = as configured, 0 = none.",
    )
    .nullable(),
    Field::new(
        "streaming_idle_timeout_ms",
        TIMEOUT,
        "Milliseconds between two pieces of a stream; `null` = as configured, 0 = none.",
    )
    .nullable(),
    Field::new(
        "request_timeout_non_streaming_ms",
        TIMEOUT,
        "Milliseconds for a whole reply; `null` = as configured, 0 = none.",
    )
    .nullable(),
    Field::new("cache_ttl_preference", CACHE_TTL, "Lifetime that prompt caches are asked for.").or_text("inherit"),
    Field::new("instructions_strategy", STRATEGIES, "What becomes of a request's instructions (responses only).")
        .or_text("keep_original"),
    Field::new("preserve_client_ip", Kind::Boolean, "Whether the upstream is told the client's address.").or_false(),
    Field::new("proxy_url", PROXY_URL, "`http://host:port` of a CONNECT proxy.").nullable(),
    Field::new("note", Kind::text(0, 200), "").nullable(),
];

/// Sets every field that was sent; the caller handles the credential.
pub fn apply(values: &Values, provider: &mut Provider) {
    apply_identity(values, provider);
    limits::apply(values, &limits::SNAKE, &mut provider.limits);
    values.count("max_retry_attempts").apply_set(&mut provider.max_retry_attempts);
    let breaker = &mut provider.breaker;
    values.count("circuit_breaker_failure_threshold").apply_set(&mut breaker.failure_threshold);
    millis(values, "circuit_breaker_open_duration").apply_set(&mut breaker.open_duration_ms);
    let successes = values.count("circuit_breaker_half_open_success_threshold");
    successes.apply_set(&mut breaker.half_open_success_threshold);
    let timeouts = &mut provider.timeouts;
    millis(values, "first_byte_timeout_streaming_ms").apply_option(&mut timeouts.first_byte_streaming_ms);
    millis(values, "streaming_idle_timeout_ms").apply_option(&mut timeouts.streaming_idle_ms);
    millis(values, "request_timeout_non_streaming_ms").apply_option(&mut timeouts.request_non_streaming_ms);
    values.word("cache_ttl_preference", CacheTtl::parse).apply_set(&mut provider.cache_ttl);
    values.word("instructions_strategy", InstructionsStrategy::parse).apply_set(&mut provider.instructions);
    values.boolean("preserve_client_ip").apply_set(&mut provider.preserve_client_ip);
    values.text("proxy_url").apply_option(&mut provider.proxy_url);
    values.text("note").apply(&mut provider.note);
}

/// A redirect's target must be a name that is valid in an alt-cli provider's path.
///
/// # Errors
/// If one is not.
pub fn check_redirects(provider: &Provider) -> Result<(), ApiError> {
    if provider.kind != ProviderType::AltCli {
        return Ok(());
    }
    for (from, to) in &provider.model_redirects {
        if route::check_redirect(to).is_err() {
            let message = format!(
                "model_redirects: {from}: an alt-cli provider has the model in its path: the name must not hold \
                 dot segments, backslashes, `%`, `?`, `#` or `;`"
            );
            return Err(ApiError::field(Code::INVALID_FORMAT, "model_redirects", message));
        }
    }
    Ok(())
}

fn apply_identity(values: &Values, provider: &mut Provider) {
    values.text("name").apply_set(&mut provider.name);
    values.text("url").apply_set(&mut provider.url);
    values.word("provider_type", ProviderType::parse).apply_set(&mut provider.kind);
    values.boolean("is_enabled").apply_set(&mut provider.is_enabled);
    values.count("weight").apply_set(&mut provider.weight);
    let priority = values.integer("priority").map(|n| i32::try_from(n).unwrap_or_default());
    priority.apply_set(&mut provider.priority);
    values.decimal("cost_multiplier").apply_set(&mut provider.cost_multiplier);
    values.text("group_tag").map(|text| Groups::parse(&text)).apply(&mut provider.group_tag);
    values.texts("allowed_models").apply(&mut provider.allowed_models);
    values.pairs("model_redirects").apply(&mut provider.model_redirects);
}

fn millis(values: &Values, name: &str) -> Patch<u64> {
    values.integer(name).map(|ms| u64::try_from(ms).unwrap_or_default())
}
