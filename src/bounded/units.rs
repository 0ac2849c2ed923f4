//! Durations and sizes in the form that people write: `500ms`, `30m`, `32MiB`.

use std::marker::PhantomData;

use super::number::within;
use super::{FromText, InYaml, Wrong};

/// A millisecond, the unit of durations.
pub const MS: u64 = 1;
/// A second.
pub const S: u64 = 1_000 * MS;
/// A minute.
pub const MIN: u64 = 60 * S;
/// An hour.
pub const HOUR: u64 = 60 * MIN;
/// A day.
pub const DAY: u64 = 24 * HOUR;
/// A kibibyte.
pub const KIB: u64 = 1 << 10;
/// A mebibyte.
pub const MIB: u64 = 1 << 20;
/// A gibibyte.
pub const GIB: u64 = 1 << 30;

/// A duration in milliseconds, written with a unit. `NONE`: it may be 0 too, for none.
#[derive(Debug)]
pub enum Span<const FROM: u64, const TO: u64, const NONE: bool = false> {}

/// A duration, or 0 for none.
pub type SpanOrNone<const FROM: u64, const TO: u64> = Span<FROM, TO, true>;

/// A duration in seconds, written with a unit or as a bare number.
#[derive(Debug)]
pub enum Seconds<const FROM: u64, const TO: u64> {}

/// A size in bytes, written with a unit.
#[derive(Debug)]
pub struct Size<N, const FROM: u64, const TO: u64>(PhantomData<N>);

impl<const FROM: u64, const TO: u64, const NONE: bool> FromText for Span<FROM, TO, NONE> {
    type Out = u64;

    const YAML: InYaml = InYaml::Number;

    fn read(text: &str) -> Result<u64, Wrong> {
        match read_duration(text) {
            Some(0) if NONE => Ok(0),
            read => duration(text, read, FROM, TO),
        }
    }

    fn text(ms: &u64) -> String {
        show_duration(*ms)
    }

    fn shape() -> String {
        let (from, to) = (show_duration(FROM), show_duration(TO));
        let none = if NONE { ", or 0 for none" } else { "" };
        format!("write {from} to {to}, with a unit: ms, s, m, h, d{none}")
    }
}

impl<const FROM: u64, const TO: u64> FromText for Seconds<FROM, TO> {
    type Out = u64;

    const YAML: InYaml = InYaml::Number;

    fn read(text: &str) -> Result<u64, Wrong> {
        let bare = text.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(S));
        duration(text, bare.or_else(|| read_duration(text)), FROM, TO).map(|ms| ms / S)
    }

    fn text(seconds: &u64) -> String {
        show_duration(seconds * S)
    }

    fn shape() -> String {
        let (from, to) = (show_duration(FROM), show_duration(TO));
        format!("write {from} to {to}, with a unit (s, m, h, d) or as a number of seconds")
    }
}

impl<N: TryFrom<u64> + TryInto<u64> + Copy, const FROM: u64, const TO: u64> FromText
    for Size<N, FROM, TO>
{
    type Out = N;

    const YAML: InYaml = InYaml::Number;

    fn read(text: &str) -> Result<N, Wrong> {
        let bytes = within(read_size(text).ok_or("is not a size")?, FROM, TO)?;
        N::try_from(bytes).map_err(|_| "is out of range".into())
    }

    fn text(bytes: &N) -> String {
        show_size((*bytes).try_into().unwrap_or(u64::MAX))
    }

    fn shape() -> String {
        let (from, to) = (show_size(FROM), show_size(TO));
        format!("write {from} to {to}, with a unit: B, KiB, MiB, GiB")
    }
}

/// The milliseconds that were read of a text, if they are within their bounds.
fn duration(text: &str, read: Option<u64>, from: u64, to: u64) -> Result<u64, Wrong> {
    match read {
        Some(ms) => Ok(within(ms, from, to)?),
        None if text.parse::<u64>().is_ok() => Err("has no unit".into()),
        None => Err("is not a duration".into()),
    }
}

/// Longest unit first within a family, so that `ms` is not read as `m` + `s`.
const DURATIONS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZES: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Milliseconds of `1500ms`, `90s`, `30m`, `12h`, `7d` or `0`. One unit, a whole number; `None` for
/// anything else.
#[must_use]
fn read_duration(text: &str) -> Option<u64> {
    read(text, &DURATIONS)
}

/// Bytes of `512B`, `64KiB`, `32MiB`, `4GiB` (or decimal `KB`, `MB`, `GB`).
#[must_use]
fn read_size(text: &str) -> Option<u64> {
    read(text, &SIZES)
}

fn read(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// The shortest exact way to write a duration: `1500ms`, `90s`, `30m`, `12h`.
#[must_use]
pub fn show_duration(ms: u64) -> String {
    show(ms, &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)], "ms")
}

/// The shortest exact way to write a size: `1500B`, `32MiB`.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    show(bytes, &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)], "B")
}

fn show(value: u64, units: &[(&str, u64)], smallest: &str) -> String {
    if value == 0 {
        return "0".to_owned();
    }
    match units.iter().find(|(_, factor)| value.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", value / factor),
        None => format!("{value}{smallest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_exactly() {
        for (text, ms) in
            [("500ms", 500), ("60s", 60_000), ("30m", 1_800_000), ("12h", 43_200_000), ("0", 0)]
        {
            assert_eq!(read_duration(text), Some(ms), "{text}");
        }
        for (ms, text) in
            [(1_500, "1500ms"), (60_000, "1m"), (90_000, "90s"), (86_400_000, "1d"), (0, "0")]
        {
            assert_eq!(show_duration(ms), text);
            assert_eq!(read_duration(text), Some(ms));
        }
        for text in [
            "",
            "5",
            "s",
            "1.5s",
            "-1s",
            "1h30m",
            "1 fortnight",
            "99999999999999999999d",
            "18446744073709551615d",
        ] {
            assert_eq!(read_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_read_and_written_exactly() {
        for (text, bytes) in [
            ("1B", 1),
            ("64KiB", 65_536),
            ("32MiB", 33_554_432),
            ("2gib", 2 << 30),
            ("5MB", 5_000_000),
        ] {
            assert_eq!(read_size(text), Some(bytes), "{text}");
        }
        for bytes in [0, 1, 1_500, 65_536, 33_554_432, 3 << 30] {
            assert_eq!(read_size(&show_size(bytes)), Some(bytes));
        }
        for text in ["", "32", "MiB", "1TiB", "0x10B", "1.5MiB"] {
            assert_eq!(read_size(text), None, "{text}");
        }
    }
}
