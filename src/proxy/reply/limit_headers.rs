//! The caller's own limits in the reply's head, under the names that clients of the format expect.
//!
//! Requests per minute are the format's `requests` limit. Money has separate names (`…-cost`), so
//! that no client reads dollars as requests. A caller without limits gets none, at no cost.

use http::{HeaderMap, HeaderName, HeaderValue};
use pingora::{ErrorType, OrErr as _};

use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::limit_type::LimitFigure;
use crate::domain::money::NanoUsd;
use crate::limits::{Denied, MoneyLeft, RequestsLeft, Standing};
use crate::proxy::context::RequestContext;

/// Names of limit, remaining and reset.
struct HeaderNames {
    texts: [&'static str; 3],
    /// Parsed once: parsing them for each reply took 3 000 instructions.
    parsed: [HeaderName; 3],
}

impl HeaderNames {
    const fn new(texts: [&'static str; 3]) -> Self {
        let [limit, remaining, reset] = texts;
        let parsed = [
            HeaderName::from_static(limit),
            HeaderName::from_static(remaining),
            HeaderName::from_static(reset),
        ];
        Self { texts, parsed }
    }
}

const NATIVE_REQUESTS: HeaderNames = HeaderNames::new([
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
]);
const REQUESTS: HeaderNames = HeaderNames::new([
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
]);
const COST: HeaderNames = HeaderNames::new([
    "x-ratelimit-limit-cost",
    "x-ratelimit-remaining-cost",
    "x-ratelimit-reset-cost",
]);

/// Adds the remaining amounts of the caller's limits, for a request that was admitted.
pub(in crate::proxy) fn add(headers: &mut HeaderMap, ctx: &RequestContext) -> pingora::Result<()> {
    match ctx.record.as_ref().and_then(|record| record.permit.as_ref()) {
        Some(permit) => write(headers, ctx.format, permit.standing(), || permit.time(ctx.now())),
        None => Ok(()),
    }
}

fn write(
    headers: &mut HeaderMap,
    format: WireFormat,
    standing: &Standing,
    now: impl Fn() -> Timestamp,
) -> pingora::Result<()> {
    if let Some(RequestsLeft { limit, remaining, reset_at }) = standing.requests {
        let values = [number(limit)?, number(remaining)?];
        insert(headers, requests_names(format), values, reset(format, Some(reset_at), &now))?;
    }
    if let Some(MoneyLeft { limit, remaining, reset_at, .. }) = standing.money {
        let remaining = remaining.max(NanoUsd::ZERO);
        let values = [value(&limit.text())?, value(&remaining.text())?];
        insert(headers, COST, values, reset(format, reset_at, &now))?;
    }
    Ok(())
}

/// The same for the limit that refused a request.
pub(in crate::proxy) fn of_refusal(
    ctx: &RequestContext,
    denied: &Denied,
) -> Vec<(&'static str, String)> {
    let [limit, remaining, resets] = match denied.limit_type.figure() {
        LimitFigure::Requests => requests_names(ctx.format).texts,
        LimitFigure::Money(_) => COST.texts,
        LimitFigure::Sessions => return Vec::new(),
    };
    let left =
        (denied.limit.to_decimal() - denied.current.to_decimal()).max(rust_decimal::Decimal::ZERO);
    let mut headers =
        vec![(limit, denied.limit.to_string()), (remaining, left.normalize().to_string())];
    headers.extend(reset(ctx.format, denied.reset_at, || denied.at).map(|at| (resets, at)));
    headers
}

fn insert(
    headers: &mut HeaderMap,
    names: HeaderNames,
    [limit, remaining]: [HeaderValue; 2],
    reset: Option<String>,
) -> pingora::Result<()> {
    let [limit_name, remaining_name, reset_name] = names.parsed;
    headers.insert(limit_name, limit);
    headers.insert(remaining_name, remaining);
    if let Some(reset) = reset {
        headers.insert(reset_name, value(&reset)?);
    }
    Ok(())
}

fn requests_names(format: WireFormat) -> HeaderNames {
    if format == WireFormat::Native { NATIVE_REQUESTS } else { REQUESTS }
}

/// RFC 3339 for the native format, a duration (`6m0s`) for the others. `now`: by the clock of `at`.
fn reset(format: WireFormat, at: Option<Timestamp>, now: impl Fn() -> Timestamp) -> Option<String> {
    let at = at?;
    match format {
        WireFormat::Native => Some(at.to_iso()),
        _ => Some(duration(at.since(now()))),
    }
}

/// `1s`, `6m0s`, `10h0m0s`; rounded up.
fn duration(ms: i64) -> String {
    let seconds = ms.max(0).unsigned_abs().div_ceil(1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// The value of a header that is a number. `HeaderValue::from` makes a buffer that grows.
pub(super) fn number(number: u64) -> pingora::Result<HeaderValue> {
    value(itoa::Buffer::new().format(number))
}

/// The value of one of the gateway's own headers.
pub(super) fn value(text: &str) -> pingora::Result<HeaderValue> {
    HeaderValue::from_str(text).or_err(ErrorType::InvalidHTTPHeader, "a header of the gateway")
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_are_written_as_the_openai_service_does() {
        for (ms, text) in [
            (-5, "0s"),
            (0, "0s"),
            (1, "1s"),
            (59_001, "1m0s"),
            (360_000, "6m0s"),
            (36_000_000, "10h0m0s"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }
}
