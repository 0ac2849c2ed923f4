//! How many of a reply's web searches are charged.

use crate::domain::format::WireFormat;

/// The charged searches of a reply that names `searches` queries. Of the models of alt-cli, Google
/// charges Gemini from 3 on for each query, older ones once for each request that searches. The
/// first number in the name decides. Without one, `…-latest` is a newer model and any other name an
/// older one.
#[must_use]
pub fn charged(format: WireFormat, model: &str, searches: u64) -> u64 {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let by_query = name.strip_prefix("gemini-").is_some_and(|rest| {
        let number = rest.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty());
        number.map_or(rest.ends_with("-latest"), |n| {
            n.parse().is_ok_and(|n: u32| (3..100).contains(&n))
        })
    });
    if format == WireFormat::AltCli && !by_query { searches.min(1) } else { searches }
}

#[cfg(test)]
mod tests {
    use super::charged;
    use crate::domain::format::WireFormat::{AltCli, Native};

    #[test]
    fn only_older_gemini_models_are_charged_by_request() {
        assert_eq!(charged(AltCli, "gemini-2.5-flash", 3), 1);
        assert_eq!(charged(AltCli, "models/gemini-2.5-pro", 0), 0);
        assert_eq!(charged(AltCli, "gemini-3.5-flash", 3), 3);
        for newer in ["gemini-flash-latest", "gemini-10-pro", "Gemini-3-pro"] {
            assert_eq!(charged(AltCli, newer, 3), 3, "{newer}");
        }
        for older in [
            "gemini-pro",
            "gemini-exp-1206",
            "gemini-live-2.5-flash",
            "gemini-robotics-er-1.5-preview",
        ] {
            assert_eq!(charged(AltCli, older, 3), 1, "{older}");
        }
        assert_eq!(charged(AltCli, "m", 3), 1);
        assert_eq!(charged(Native, "gemini-2.5-flash", 3), 3);
    }
}
