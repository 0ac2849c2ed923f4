//! How many of a reply's web searches are charged.

use std::sync::LazyLock;

use crate::domain::format::WireFormat;
use crate::domain::model_facts::SearchCharge;
use crate::domain::model_rows::{ModelNumber, ModelRows, lower};

static ROWS: LazyLock<ModelRows<SearchCharge>> = LazyLock::new(|| ModelRows::shipped("searches"));

/// The charged searches of a reply that names `searches` queries. Of the models of alt-cli, Google
/// charges newer ones for each query, older ones once for each request that searches
/// (`conf/models.json`). The first number in the name decides. Without one, `…-latest` is a newer
/// model and any other name an older one. `own`: what the model's price entry says instead.
pub fn charged(format: WireFormat, model: &str, own: Option<&SearchCharge>, searches: u64) -> u64 {
    let by_query = own.map_or_else(|| is_by_query(model), |own| own.each_query);
    if format == WireFormat::AltCli && !by_query { searches.min(1) } else { searches }
}

fn is_by_query(model: &str) -> bool {
    let name = lower(model.rsplit('/').next().unwrap_or(model));
    name.strip_prefix("gemini-").is_some_and(|rest| {
        let number = rest.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty());
        let number = match number {
            Some(number) => {
                number.parse().map_or_else(|_| ModelNumber::default(), |n| ModelNumber(n, 0))
            }
            None if rest.ends_with("-latest") => ModelNumber::LATEST,
            None => ModelNumber::default(),
        };
        ROWS.find("gemini", number, &name).is_some_and(|row| row.each_query)
    })
}

#[cfg(test)]
mod tests {
    use super::charged;
    use crate::domain::format::WireFormat::{AltCli, Native};
    use crate::domain::model_facts::SearchCharge;

    #[test]
    fn only_older_gemini_models_are_charged_by_request() {
        assert_eq!(charged(AltCli, "gemini-2.5-flash", None, 3), 1);
        assert_eq!(charged(AltCli, "models/gemini-2.5-pro", None, 0), 0);
        assert_eq!(charged(AltCli, "gemini-3.5-flash", None, 3), 3);
        for newer in ["gemini-flash-latest", "gemini-10-pro", "Gemini-3-pro"] {
            assert_eq!(charged(AltCli, newer, None, 3), 3, "{newer}");
        }
        for older in [
            "gemini-pro",
            "gemini-exp-1206",
            "gemini-live-2.5-flash",
            "gemini-robotics-er-1.5-preview",
        ] {
            assert_eq!(charged(AltCli, older, None, 3), 1, "{older}");
        }
        assert_eq!(charged(AltCli, "m", None, 3), 1);
        assert_eq!(charged(AltCli, "m", Some(&SearchCharge { each_query: true }), 3), 3);
        assert_eq!(charged(Native, "gemini-2.5-flash", None, 3), 3);
    }
}
