//! Durations and sizes in the form that people write: `500ms`, `30m`, `32MiB`.

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
pub(super) fn read_duration(text: &str) -> Option<u64> {
    read(text, &DURATIONS)
}

/// Bytes of `512B`, `64KiB`, `32MiB`, `4GiB` (or decimal `KB`, `MB`, `GB`).
#[must_use]
pub(super) fn read_size(text: &str) -> Option<u64> {
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
pub(super) fn show_duration(ms: u64) -> String {
    show(ms, &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)], "ms")
}

/// The shortest exact way to write a size: `1500B`, `32MiB`.
#[must_use]
pub(super) fn show_size(bytes: u64) -> String {
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
