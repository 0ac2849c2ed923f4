//! The windows of a provider's account, as the headers of its replies describe them: how much of
//! each is used, and when it is reset.
//!
//! | headers | of |
//! |---|---|
//! | `anthropic-ratelimit-unified-{5h,7d,…}-{utilization,reset,status}` | subscriptions of Anthropic |
//! | `anthropic-ratelimit-{requests,tokens,…}-{limit,remaining,reset}`, `anthropic-fast-…` | its API |
//! | `x-ratelimit-{limit,remaining,reset}-{requests,tokens,…}` | OpenAI, Azure, compatible services |
//! | `x-codex-{primary,secondary}-{used-percent,reset-at,reset-after-seconds}` | Codex |

use chrono::DateTime;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::domain::clock::Timestamp;

/// Windows of one account that are kept.
const MOST: usize = 12;
/// Characters of a window's name.
const LONGEST_NAME: usize = 24;
/// How long a window counts whose reset is not known, in milliseconds.
const COUNTS_MS: i64 = 60_000;
/// The share that is shown at most, in thousandths.
const MOST_USED: u32 = 9_999;
/// Numbers from here on are seconds since the epoch, smaller ones seconds from now.
const FIRST_EPOCH: i64 = 1_000_000_000;

/// A window of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaWindow {
    /// As the headers have it, such as `5h`, `input-tokens`, `requests` or `primary`.
    pub name: Box<str>,
    /// The used share in thousandths; above 1000 if more was used than it has.
    pub used: u32,
    /// Its size, where it is told.
    pub limit: Option<u64>,
    /// What is left of it, where that is told.
    pub remaining: Option<u64>,
    /// When it is reset, where that is told.
    pub resets_at: Option<Timestamp>,
    /// When the reply with these figures arrived.
    pub seen_at: Timestamp,
}

impl QuotaWindow {
    /// Whether its figures are still those of the account.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.resets_at.map_or_else(|| now.is_within(COUNTS_MS, self.seen_at), |at| at > now)
    }

    /// Whether it is of all requests: some are only of the fast mode (`fast-…`) or of one family of
    /// models (`7d_oi`).
    fn is_general(&self) -> bool {
        !self.name.starts_with("fast-") && !self.name.contains('_')
    }

    fn until(&self) -> Timestamp {
        self.resets_at.unwrap_or_else(|| self.seen_at.plus_ms(COUNTS_MS))
    }
}

/// Whether a header may be about a window. `name`: lower-case.
pub fn is_quota_header(name: &str) -> bool {
    match name.as_bytes().first() {
        Some(b'a') => {
            name.starts_with("anthropic-ratelimit-") || name.starts_with("anthropic-fast-")
        }
        Some(b'x') => name.starts_with("x-ratelimit-") || name.starts_with("x-codex-"),
        _ => false,
    }
}

/// The windows that the headers (names in lower case, values) of a reply describe.
pub fn read<'h>(
    headers: impl Iterator<Item = (&'h str, &'h str)>,
    now: Timestamp,
) -> Vec<QuotaWindow> {
    let mut drafts: Vec<(String, Draft)> = Vec::new();
    for (name, value) in headers.filter(|(name, _)| is_quota_header(name)) {
        let Some((window, field)) = place(name) else { continue };
        let at = match drafts.iter().position(|(known, _)| *known == window) {
            Some(at) => at,
            None if drafts.len() < MOST && is_name(&window) => {
                drafts.push((window, Draft::default()));
                drafts.len() - 1
            }
            None => continue,
        };
        drafts[at].1.take(field, value.trim(), now);
    }
    let window = |(name, draft): (String, Draft)| {
        let Draft { used, limit, remaining, resets_at } = draft;
        let used = used.or_else(|| share(limit?, remaining?))?.min(MOST_USED);
        Some(QuotaWindow { name: name.into(), used, limit, remaining, resets_at, seen_at: now })
    };
    drafts.into_iter().filter_map(window).collect()
}

/// Adds newer figures to those that are known. Returns whether a share or a reset differs.
pub fn merge(known: &mut Vec<QuotaWindow>, newer: Vec<QuotaWindow>, now: Timestamp) -> bool {
    let mut differs = false;
    for window in newer {
        match known.iter_mut().find(|one| one.name == window.name) {
            Some(one) if one.seen_at > window.seen_at => {}
            Some(one) => {
                differs |= (one.used, one.resets_at) != (window.used, window.resets_at);
                *one = window;
            }
            None => {
                differs = true;
                if known.len() >= MOST {
                    known.retain(|one| one.is_live(now));
                }
                known.truncate(MOST - 1);
                known.push(window);
            }
        }
    }
    differs
}

/// The largest used share among the windows of all requests, in thousandths; 0 without any.
pub fn most_used(windows: &[QuotaWindow], now: Timestamp) -> u32 {
    let counted = windows.iter().filter(|one| one.is_general() && one.is_live(now));
    counted.map(|one| one.used).max().unwrap_or(0)
}

/// When the last of the windows is reset of which at least `percent` is used; `None` if there is no
/// such window.
pub fn used_up_until(windows: &[QuotaWindow], percent: u32, now: Timestamp) -> Option<Timestamp> {
    let is_over = |one: &&QuotaWindow| {
        one.is_general() && one.is_live(now) && one.used >= percent.saturating_mul(10)
    };
    windows.iter().filter(is_over).map(QuotaWindow::until).max()
}

#[derive(Default)]
struct Draft {
    used: Option<u32>,
    limit: Option<u64>,
    remaining: Option<u64>,
    resets_at: Option<Timestamp>,
}

#[derive(Clone, Copy)]
enum Field {
    Limit,
    Remaining,
    Reset,
    /// A fraction of 1.
    Utilization,
    Percent,
    /// `rejected`: nothing is left.
    Status,
}

impl Draft {
    fn take(&mut self, field: Field, value: &str, now: Timestamp) {
        match field {
            Field::Limit => self.limit = value.parse().ok(),
            Field::Remaining => self.remaining = value.parse().ok(),
            Field::Reset => self.resets_at = self.resets_at.or_else(|| time(value, now)),
            Field::Utilization => self.use_share(thousandths(value, 1_000)),
            Field::Percent => self.use_share(thousandths(value, 10)),
            Field::Status if value == "rejected" => self.use_share(Some(1_000)),
            Field::Status => {}
        }
    }

    fn use_share(&mut self, share: Option<u32>) {
        self.used = self.used.max(share);
    }
}

/// Which window a header is about, and what it says of it.
fn place(header: &str) -> Option<(String, Field)> {
    let of = |field: &str| {
        Some(match field {
            "limit" => Field::Limit,
            "remaining" => Field::Remaining,
            "reset" => Field::Reset,
            "utilization" => Field::Utilization,
            "status" => Field::Status,
            _ => return None,
        })
    };
    if let Some(rest) = header.strip_prefix("x-ratelimit-") {
        let (field, window) = rest.split_once('-')?;
        return Some((window.to_owned(), of(field)?));
    }
    if let Some(rest) = header.strip_prefix("x-codex-") {
        let (window, field) = rest.split_once('-')?;
        let field = match field {
            "used-percent" => Field::Percent,
            "reset-at" | "reset-after-seconds" => Field::Reset,
            _ => return None,
        };
        return Some((window.to_owned(), field));
    }
    let (before, rest) = match header.strip_prefix("anthropic-fast-") {
        Some(rest) => ("fast-", rest),
        None => ("", header.strip_prefix("anthropic-ratelimit-")?),
    };
    let rest = rest.strip_prefix("unified-").unwrap_or(rest);
    let (window, field) = rest.rsplit_once('-')?;
    Some((format!("{before}{window}"), of(field)?))
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_');
    !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(is_plain)
}

/// What is used of a window, in thousandths.
fn share(limit: u64, remaining: u64) -> Option<u32> {
    let used = u128::from(limit.saturating_sub(remaining));
    u32::try_from((used * 1_000).checked_div(u128::from(limit))?).ok()
}

/// A number times `by`, rounded.
fn thousandths(text: &str, by: u32) -> Option<u32> {
    let number: Decimal = text.parse().ok()?;
    number.checked_mul(Decimal::from(by))?.round().to_u32()
}

/// A time as RFC 3339, as seconds since the epoch or from now, or as a duration such as `6m0s`.
fn time(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(date) = DateTime::parse_from_rfc3339(text) {
        return Some(date.to_utc().into());
    }
    if let Ok(seconds) = text.parse::<i64>() {
        let is_epoch = seconds >= FIRST_EPOCH;
        let ms = seconds.checked_mul(1_000).filter(|ms| *ms >= 0)?;
        return Some(if is_epoch { Timestamp(ms) } else { now.plus_ms(ms) });
    }
    let (mut rest, mut total) = (text, Decimal::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: Decimal = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let length = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
        let ms: u32 = match &unit[..length] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(Decimal::from(ms))?)?;
        rest = &unit[length..];
    }
    (!text.is_empty()).then_some(())?;
    Some(now.plus_ms(total.ceil().to_i64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_790_000_000_000);

    fn windows(headers: &[(&str, &str)]) -> Vec<(String, u32, Option<i64>)> {
        let read = read(headers.iter().copied(), NOW);
        let shown = |one: QuotaWindow| {
            (one.name.to_string(), one.used, one.resets_at.map(|at| at.since(NOW) / 1_000))
        };
        read.into_iter().map(shown).collect()
    }

    #[test]
    fn the_windows_of_each_vendor_are_read() {
        let of = |name: &str, used, reset| (name.to_owned(), used, reset);
        let anthropic = [
            ("request-id", "req_1"),
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-09-21T14:13:22Z"),
            ("anthropic-ratelimit-input-tokens-limit", "30000"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-09-21T14:13:50Z"),
            ("anthropic-fast-output-tokens-limit", "10"),
            ("anthropic-fast-output-tokens-remaining", "1"),
        ];
        let expected = [
            of("requests", 20, Some(2)),
            of("input-tokens", 1_000, Some(30)),
            of("fast-output-tokens", 900, None),
        ];
        assert_eq!(windows(&anthropic), expected);
        let unified = [
            ("anthropic-ratelimit-unified-status", "allowed"),
            ("anthropic-ratelimit-unified-reset", "1790003600"),
            ("anthropic-ratelimit-unified-5h-utilization", "0.4371"),
            ("anthropic-ratelimit-unified-5h-reset", "1790003600"),
            ("anthropic-ratelimit-unified-5h-status", "allowed"),
            ("anthropic-ratelimit-unified-7d-status", "rejected"),
            ("anthropic-ratelimit-unified-7d-reset", "1790086400"),
            ("anthropic-ratelimit-unified-7d_oi-utilization", "1.2"),
            ("anthropic-ratelimit-unified-overage-status", "allowed"),
        ];
        let expected =
            [of("5h", 437, Some(3_600)), of("7d", 1_000, Some(86_400)), of("7d_oi", 1_200, None)];
        assert_eq!(windows(&unified), expected);
        let openai = [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "15"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "12.5s"),
            ("x-ratelimit-remaining-strange", "7"),
        ];
        let expected = [of("requests", 750, Some(360)), of("tokens", 0, Some(12))];
        assert_eq!(windows(&openai), expected);
        let codex = [
            ("x-codex-primary-used-percent", "81.6"),
            ("x-codex-primary-window-minutes", "300"),
            ("x-codex-primary-reset-at", "1790000060"),
            ("x-codex-secondary-used-percent", "3"),
            ("x-codex-secondary-reset-after-seconds", "600"),
            ("x-codex-credits-balance", "5"),
        ];
        let expected = [of("primary", 816, Some(60)), of("secondary", 30, Some(600))];
        assert_eq!(windows(&codex), expected);
    }

    #[test]
    fn what_is_no_figure_is_left_out() {
        let long = format!("x-ratelimit-limit-{}", "a".repeat(25));
        for (name, value) in [
            ("x-ratelimit-limit-requests", "many"),
            ("x-codex-primary-used-percent", ""),
            ("x-codex-primary-used-percent", "-3"),
            ("anthropic-ratelimit-unified-5h-utilization", "99999999999999999999999999999999"),
            (&long, "1"),
        ] {
            let remaining = name.replace("limit-", "remaining-");
            let beside = (remaining != name).then_some((remaining.as_str(), "1"));
            let headers: Vec<_> = std::iter::once((name, value)).chain(beside).collect();
            assert_eq!(windows(&headers), [], "{name}: {value}");
        }
        for text in ["", "soon", "6x", "-5", "1m2", "9".repeat(40).as_str()] {
            assert_eq!(time(text, NOW), None, "{text}");
        }
        let many: Vec<String> =
            (0..40).map(|n| format!("anthropic-ratelimit-unified-w{n}-utilization")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "0.1")).collect();
        assert_eq!(windows(&many).len(), MOST);
    }

    #[test]
    fn a_window_counts_until_its_reset_and_the_newest_figures_win() {
        let of = |name: &str, used, reset: Option<i64>, seen: i64| QuotaWindow {
            name: name.into(),
            used,
            limit: None,
            remaining: None,
            resets_at: reset.map(|ms| NOW.plus_ms(ms)),
            seen_at: NOW.plus_ms(seen),
        };
        let mut known = vec![of("5h", 970, Some(5_000), 0), of("7d", 960, None, 0)];
        assert_eq!(used_up_until(&known, 96, NOW), Some(NOW.plus_ms(COUNTS_MS)));
        assert_eq!(used_up_until(&known, 97, NOW), Some(NOW.plus_ms(5_000)));
        assert_eq!(used_up_until(&known, 98, NOW), None);
        assert_eq!(used_up_until(&known, 97, NOW.plus_ms(5_000)), None, "it was reset");
        assert_eq!((most_used(&known, NOW), most_used(&known, NOW.plus_ms(5_000))), (970, 960));
        assert!(!merge(&mut known, vec![of("5h", 970, Some(5_000), 9)], NOW));
        assert!(merge(&mut known, vec![of("5h", 10, Some(9_000), 9)], NOW));
        assert!(!merge(&mut known, vec![of("5h", 999, Some(1), 8)], NOW), "older");
        assert_eq!(used_up_until(&known, 97, NOW), None);
        let special = [of("7d_oi", 999, Some(9), 0), of("fast-tokens", 999, Some(9), 0)];
        assert_eq!((most_used(&special, NOW), used_up_until(&special, 1, NOW)), (0, None));
    }
}
