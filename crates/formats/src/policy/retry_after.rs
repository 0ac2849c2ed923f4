//! The `Retry-After` header (RFC 9110, section 10.2.3): seconds, or an HTTP date in any of its
//! three forms.

use chrono::{DateTime, NaiveDateTime};

use crate::domain::clock::Timestamp;

/// The end of the pause that the header asks for, at most `max_ms` from `now`. `None` if it is
/// invalid, or in the past.
///
/// Fractions of a second, which some providers send, are accepted and rounded up.
pub fn cooldown_until(header: &str, now: Timestamp, max_ms: u64) -> Option<Timestamp> {
    let header = header.trim();
    let wait_ms =
        seconds_as_ms(header).or_else(|| http_date(header).map(|date| date.since(now)))?;
    let bounded = wait_ms.min(i64::try_from(max_ms).unwrap_or(i64::MAX));
    (bounded > 0).then(|| now.plus_ms(bounded))
}

fn seconds_as_ms(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    // More digits than fit are a long time, which is bounded anyway.
    let ms = whole.parse::<i64>().unwrap_or(i64::MAX).saturating_mul(1_000);
    let up = i64::from(fraction.bytes().any(|b| b != b'0')) * 1_000;
    Some(ms.saturating_add(up))
}

fn http_date(text: &str) -> Option<Timestamp> {
    if let Ok(date) = DateTime::parse_from_rfc2822(text) {
        return Some(date.to_utc().into());
    }
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"]
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
        .map(|date| date.and_utc().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_all_three_dates_are_read_and_bounded() {
        // 1994-11-06T08:49:37Z, the RFC's own example
        let date = Timestamp(784_111_777_000);
        let now = date.plus_ms(-30_000);
        let cases = [
            ("20", Some(20_000)),
            (" 1.2 ", Some(2_000)),
            ("2.0", Some(2_000)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30_000)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(30_000)),
            ("Sun Nov  6 08:49:37 1994", Some(30_000)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(60_000)),
            ("3600", Some(60_000)),
            ("99999999999999999999", Some(60_000)),
            ("0", None),
            ("Sun, 06 Nov 1994 08:49:06 GMT", None),
            ("", None),
            ("-5", None),
            ("soon", None),
            (".", None),
        ];
        for (header, wait) in cases {
            assert_eq!(
                cooldown_until(header, now, 60_000),
                wait.map(|ms| now.plus_ms(ms)),
                "{header:?}"
            );
        }
    }
}
