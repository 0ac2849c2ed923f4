//! What a look found: how bad it is, and what to do.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it must be.
    Ok,
    /// Not checked, or worth knowing.
    Note,
    /// The gateway works; it will not for long, or not as meant.
    Warning,
    /// The gateway does not start, refuses requests, or may count wrongly.
    Fault,
}

/// One result of a look at one part.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// The part: a word or two, lower case.
    pub part: &'static str,
    /// What was seen, without any secret.
    pub text: String,
    /// What to do about it; empty if nothing.
    pub advice: String,
}

impl Finding {
    /// The part is as it must be.
    pub(crate) fn ok(part: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Ok, part, text: text.into(), advice: String::new() }
    }

    /// Worth knowing; nothing needs to be done.
    pub(crate) fn note(part: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Note, ..Self::ok(part, text) }
    }

    /// Something to do soon.
    pub(crate) fn warning(
        part: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { level: Level::Warning, part, text: text.into(), advice: advice.into() }
    }

    /// Something to do now.
    pub(crate) fn fault(
        part: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { level: Level::Fault, ..Self::warning(part, text, advice) }
    }
}

/// Bytes for people: `3.2 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    const TIB: u64 = 1 << 40;
    let (unit, name) = match bytes {
        0..KIB => return format!("{bytes} bytes"),
        KIB..MIB => (KIB, "KiB"),
        MIB..GIB => (MIB, "MiB"),
        GIB..TIB => (GIB, "GiB"),
        TIB.. => (TIB, "TiB"),
    };
    format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
}

/// A length of time for people, in its largest unit: `3 min`, `20 days`.
pub(crate) fn time(ms: i64) -> String {
    let s = ms.unsigned_abs() / 1_000;
    match s {
        0 => format!("{} ms", ms.unsigned_abs()),
        1..120 => format!("{s} s"),
        120..7_200 => format!("{} min", s / 60),
        7_200..172_800 => format!("{} h", s / 3_600),
        _ => format!("{} days", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_the_unit_that_is_read_best() {
        for (size, text) in [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1_024, "1.0 KiB"),
            (1_048_575, "1023.9 KiB"),
            (1_048_576, "1.0 MiB"),
            (3_435_973_837, "3.2 GiB"),
            (1 << 40, "1.0 TiB"),
            (5 << 50, "5120.0 TiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
        for (ms, text) in [
            (-7, "7 ms"),
            (1_500, "1 s"),
            (180_000, "3 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 days"),
        ] {
            assert_eq!(time(ms), text);
        }
    }
}
