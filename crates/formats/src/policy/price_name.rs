//! Which entries of the price table may price a model, by their names.
//!
//! The exact name wins. Without it, a name is looked up as the public list spells it (Gemini's
//! models have a prefix there), and then without its date or `-latest`:
//! `claude-sonnet-4-5-20250929` is priced as `claude-sonnet-4-5`. Nothing else is removed: a name
//! with more than a date may be another model.

/// The prefix of Gemini's own models in the public list. The other vendors' models have none there.
const LISTED_PREFIX: &str = "gemini/";

/// The name without its date or `-latest`; `None` if it has neither.
pub fn base(model: &str) -> Option<&str> {
    let shorter = model.strip_suffix("-latest").or_else(|| without_date(model))?;
    (!shorter.is_empty() && !shorter.ends_with('/')).then_some(shorter)
}

/// `…-2025-09-29`, `…-20250929` and `…@20250929`.
fn without_date(model: &str) -> Option<&str> {
    let (dashed, plain) = (model.len().checked_sub(11), model.len().checked_sub(9));
    let parts = |at: Option<usize>| model.split_at_checked(at?);
    if let Some((shorter, date)) = parts(dashed)
        && let [b'-', y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *date.as_bytes()
    {
        return is_date([y0, y1, y2, y3, m0, m1, d0, d1]).then_some(shorter);
    }
    let (shorter, date) = parts(plain)?;
    match *date.as_bytes() {
        [b'-' | b'@', y0, y1, y2, y3, m0, m1, d0, d1] => {
            is_date([y0, y1, y2, y3, m0, m1, d0, d1]).then_some(shorter)
        }
        _ => None,
    }
}

/// Year, month and day in digits. A version number is hardly ever one.
fn is_date(digits: [u8; 8]) -> bool {
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0_u32, |sum, digit| {
            digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0'))
        })
    };
    let (year, month, day) =
        digits.split_at_checked(4).map_or((None, None, None), |(year, rest)| {
            let (month, day) = rest.split_at_checked(2).unwrap_or((rest, &[]));
            (number(year), number(month), number(day))
        });
    matches!((year, month, day), (Some(2020..=2099), Some(1..=12), Some(1..=31)))
}

/// The price of a request, found by `look`: that of the requested model, else of the one that the
/// provider was asked for, else of either without its date or `-latest`. The exact name, which
/// nearly always matches, is cheap to try.
pub fn find<T>(requested: &str, upstream: &str, look: impl Fn(&str) -> Option<T>) -> Option<T> {
    if let Some(found) = look(requested) {
        return Some(found);
    }
    let asked = (upstream != requested).then_some(upstream);
    let listed = |name: &str| look(&[LISTED_PREFIX, name].concat());
    let own = || asked.and_then(|name| look(name).or_else(|| listed(name)));
    let undated = |name| base(name).and_then(|name| look(name).or_else(|| listed(name)));
    listed(requested)
        .or_else(own)
        .or_else(|| undated(requested))
        .or_else(|| asked.and_then(undated))
}

/// Whether two names are of one model: they differ in a date or `-latest` at most.
pub fn is_same(one: &str, other: &str) -> bool {
    let plain = |name| base(name).unwrap_or(name);
    one == other || plain(one) == plain(other)
}

/// Entries that price this model itself.
pub fn exact(model: &str) -> Vec<String> {
    vec![model.to_owned(), format!("{LISTED_PREFIX}{model}")]
}

/// Entries that price it without its date or `-latest`.
pub fn undated(model: &str) -> Vec<String> {
    base(model).map(exact).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_latest_are_taken_off_and_nothing_else() {
        for (model, expected) in [
            ("claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
            ("claude-haiku-4-5@20251001", Some("claude-haiku-4-5")),
            ("gpt-4o-2024-08-06", Some("gpt-4o")),
            ("claude-3-5-haiku-latest", Some("claude-3-5-haiku")),
            ("gemini/gemini-flash-latest", Some("gemini/gemini-flash")),
            ("größe-2024-08-06", Some("größe")),
            ("gpt-4o", None),
            ("gpt-4-0613", None),
            ("gpt-4-1106-preview", None),
            ("gemini-2.0-flash-001", None),
            ("gemini-2.5-flash-preview-09-2025", None),
            ("claude-sonnet-4-5", None),
            ("model-20251301", None),
            ("model-20251232", None),
            ("model-12345678", None),
            ("model-2024-08-6", None),
            ("model_20250929", None),
            ("gpt-4o-2024-13-06", None),
            ("ü2024-08-06", None),
            ("latest", None),
            ("-latest", None),
            ("-20250929", None),
            ("gemini/-latest", None),
            ("", None),
        ] {
            assert_eq!(base(model), expected, "{model}");
        }
    }

    #[test]
    fn the_exact_name_wins_then_the_provider_s_then_names_without_dates() {
        let find_in = |table: &[&'static str], requested: &str, upstream: &str| {
            find(requested, upstream, |name| table.iter().find(|entry| **entry == name).copied())
        };
        let all = ["m-2025-01-02", "up-20250102", "m", "up", "gemini/g", "gemini/h-latest"];
        for (table, requested, upstream, expected) in [
            (&all[..], "m-2025-01-02", "up-20250102", Some("m-2025-01-02")),
            (&all[1..], "m-2025-01-02", "up-20250102", Some("up-20250102")),
            (&all[2..], "m-2025-01-02", "up-20250102", Some("m")),
            (&all[3..], "m-2025-01-02", "up-20250102", Some("up")),
            (&all[4..], "m-2025-01-02", "up-20250102", None),
            (&all[..], "m-latest", "m-latest", Some("m")),
            (&all[..], "alias", "up", Some("up")),
            (&all[..], "g", "g", Some("gemini/g")),
            (&all[..], "g-latest", "g-latest", Some("gemini/g")),
            (&all[..], "h-latest", "h-latest", Some("gemini/h-latest")),
            (&all[..], "h", "h", None),
            (&all[..], "vendor/m", "vendor/m", None),
        ] {
            assert_eq!(
                find_in(table, requested, upstream),
                expected,
                "{requested} → {upstream} in {table:?}"
            );
        }
    }
}
