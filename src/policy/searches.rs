//! How many of a reply's web searches are charged.

use crate::domain::format::WireFormat;

/// The charged searches of a reply that names `searches` queries. Of the models of alt-cli, Google
/// charges Gemini from 3 on for each query, older ones once for each request that searches. A name
/// that tells neither counts as an older one.
#[must_use]
pub fn charged(format: WireFormat, model: &str, searches: u64) -> u64 {
    let name = model.rsplit('/').next().unwrap_or(model);
    let older = ["gemini-1", "gemini-2", "gemini-exp"];
    let by_query =
        name.starts_with("gemini-") && !older.iter().any(|start| name.starts_with(start));
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
        assert_eq!(charged(AltCli, "gemini-flash-latest", 3), 3);
        assert_eq!(charged(AltCli, "m", 3), 1);
        assert_eq!(charged(Native, "gemini-2.5-flash", 3), 3);
    }
}
