//! What a request to an endpoint is charged for: tokens, if the service reports them and they have
//! a price; else its unit (images, characters, seconds, searches); else tokens that are estimated
//! from the unit.
//!
//! Tokens that the service reports go before every price per unit: they are what it charges. An
//! image's price may depend on its size and quality: the price list then has an entry such as
//! `high/1024-x-1024/gpt-image-1`, which goes before the model's own.

use crate::domain::endpoint::{EndpointAsk, Unit};
use crate::domain::part::{Part, PartKind};
use crate::domain::price::{CostKind, Price};
use crate::domain::usage::Usage;

/// Tokens of an image: a large one in high quality.
const PER_IMAGE: u64 = 6_240;
/// Tokens of sound that is spoken: 1 250 for a minute, in which 900 characters are spoken.
const SPOKEN: UnitTokens = UnitTokens { of: 900, tokens: 1_250 };
/// Tokens of sound that is read: 1 000 for a minute.
const HEARD: UnitTokens = UnitTokens { of: 60, tokens: 1_000 };

/// Tokens for a number of units.
#[derive(Clone, Copy)]
struct UnitTokens {
    of: u64,
    tokens: u64,
}

impl UnitTokens {
    const fn tokens(self, units: u64) -> u64 {
        units.saturating_mul(self.tokens).div_ceil(self.of)
    }
}

/// The figures of a reply, before and after [`charged`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Its tokens.
    pub usage: Usage,
    /// What was made or used, in units.
    pub parts: Vec<Part>,
    /// The tokens are an estimate.
    pub estimated: bool,
}

/// What is charged for. `model`: as the provider is asked for it; `own`: the entry that prices it;
/// `find`: that of any other name.
pub fn charged<'a>(
    ask: &EndpointAsk,
    model: &str,
    own: Option<&Price>,
    find: impl Fn(&str) -> Option<&'a Price>,
    reported: Figures,
) -> Figures {
    let Figures { usage, parts, estimated } = reported;
    let Some((part, rate)) = unit(ask.endpoint.unit) else {
        return Figures { usage, parts: Vec::new(), estimated };
    };
    let has = |price: &Price, kind| price.rates.base(kind).is_some();
    let tokens = [CostKind::Input, CostKind::Output, CostKind::ImageOutput, CostKind::AudioOutput];
    let rates = || tokens.into_iter().filter_map(|kind| own?.rates.base(kind));
    let (names_tokens, has_tokens) =
        (rates().next().is_some(), rates().any(|rate| !rate.is_zero()));
    let is_reported = !estimated && usage.total() > 0;
    let variants = ask.variants.iter().map(|variant| format!("{variant}/{model}"));
    let variant =
        variants.into_iter().find(|name| find(name).is_some_and(|entry| has(entry, rate)));
    if is_reported && has_tokens {
        return Figures { usage, parts: Vec::new(), estimated };
    }
    let counted = parts.iter().find(|used| used.kind == part).map(|used| used.quantity);
    let quantity = counted.unwrap_or(ask.quantity);
    if variant.is_some() || own.is_some_and(|own| has(own, rate)) || !names_tokens {
        let model = variant.map(Into::into);
        let parts = vec![Part { model, ..Part::calls(part, quantity) }];
        let estimated = counted.is_none() && !ask.is_exact;
        let usage = if is_reported { usage } else { Usage::default() };
        return Figures { usage, parts, estimated };
    }
    let counted = EndpointAsk { quantity, ..ask.clone() };
    Figures { usage: as_tokens(&counted, usage), parts: Vec::new(), estimated: true }
}

/// The tokens that a request probably has, beside those that are known.
pub fn as_tokens(ask: &EndpointAsk, mut usage: Usage) -> Usage {
    let quantity = ask.quantity;
    match ask.endpoint.unit {
        Unit::Images => {
            usage.output = usage.output.max(quantity.saturating_mul(PER_IMAGE));
            usage.image_output = usage.output;
        }
        Unit::Characters => {
            usage.output = usage.output.max(SPOKEN.tokens(quantity));
            usage.audio_output = usage.output;
        }
        Unit::Seconds => {
            usage.input = HEARD.tokens(quantity);
            usage.audio_input = usage.input;
        }
        Unit::Tokens | Unit::Searches | Unit::Batch | Unit::Free => {}
    }
    usage
}

/// The part of the bill that counts a unit, and its rate; `None` if tokens alone are charged.
const fn unit(unit: Unit) -> Option<(PartKind, CostKind)> {
    match unit {
        Unit::Tokens | Unit::Batch | Unit::Free => None,
        Unit::Images => Some((PartKind::Image, CostKind::Image)),
        Unit::Characters => Some((PartKind::Character, CostKind::Character)),
        Unit::Seconds => Some((PartKind::Second, CostKind::Second)),
        Unit::Searches => Some((PartKind::Query, CostKind::Query)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::clock::Timestamp;
    use crate::domain::endpoint::ApiEndpoint;
    use crate::domain::price::PriceSource;
    use crate::policy::cost::{Belief, rates_from_json};

    fn price(name: &str, entry: &Value) -> Price {
        let rates = rates_from_json(entry, Belief::Usual).unwrap();
        Price::new(name.to_owned(), PriceSource::Manual, entry, rates, Timestamp(0))
    }

    fn ask(path: &str, quantity: u64, is_exact: bool) -> EndpointAsk {
        let endpoint = ApiEndpoint::of(path).unwrap();
        EndpointAsk {
            endpoint,
            quantity,
            is_exact,
            streams: false,
            answers: 1,
            variants: vec!["hd/1024-x-1024".to_owned()],
            batch: None,
        }
    }

    fn tokens(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    /// The figures that are charged, for a price entry.
    fn of(ask: &EndpointAsk, entry: &Value, reported: Figures) -> Figures {
        let own = price("m", entry);
        let other = price("hd/1024-x-1024/other", &json!({"output_cost_per_image": 0.08}));
        charged(ask, "m", Some(&own), |name| Some(&other).filter(|p| p.model == name), reported)
    }

    #[test]
    fn reported_tokens_go_before_units_if_they_have_a_price() {
        let images = ask("/v1/images/generations", 2, true);
        let both = json!({"output_cost_per_image_token": 4e-5, "output_cost_per_image": 0.04});
        let reported = || Figures {
            usage: tokens(9, 500),
            parts: vec![Part::calls(PartKind::Image, 2)],
            estimated: false,
        };
        let by_tokens = Figures { parts: Vec::new(), ..reported() };
        assert_eq!(of(&images, &both, reported()), by_tokens);
        let alone = json!({"output_cost_per_image": 0.04});
        assert_eq!(of(&images, &alone, reported()), reported());
    }

    /// Nine tokens, estimated.
    fn input() -> Figures {
        Figures { usage: tokens(9, 0), parts: Vec::new(), estimated: true }
    }

    #[test]
    fn sound_is_charged_by_its_unit_and_without_its_rate_by_estimated_tokens() {
        for (path, quantity, is_exact, entry, expected) in [
            (
                "/v1/audio/speech",
                1800,
                true,
                json!({"input_cost_per_character": 1.5e-5}),
                Figures {
                    parts: vec![Part::calls(PartKind::Character, 1800)],
                    ..Figures::default()
                },
            ),
            (
                "/v1/audio/speech",
                1800,
                true,
                json!({"input_cost_per_token": 2.5e-6, "output_cost_per_audio_token": 1.2e-5}),
                Figures {
                    usage: Usage { audio_output: 2500, ..tokens(9, 2500) },
                    parts: Vec::new(),
                    estimated: true,
                },
            ),
            (
                "/v1/audio/transcriptions",
                61,
                false,
                json!({"input_cost_per_second": 1e-4}),
                Figures {
                    parts: vec![Part::calls(PartKind::Second, 61)],
                    estimated: true,
                    ..Figures::default()
                },
            ),
            (
                "/v1/audio/transcriptions",
                60,
                false,
                json!({"input_cost_per_token": 2.5e-6}),
                Figures {
                    usage: Usage { audio_input: 1000, ..tokens(1000, 0) },
                    parts: Vec::new(),
                    estimated: true,
                },
            ),
        ] {
            let ask = ask(path, quantity, is_exact);
            assert_eq!(of(&ask, &entry, input()), expected, "{path} {entry}");
        }
    }

    #[test]
    fn without_tokens_the_unit_is_charged_and_without_its_rate_tokens_are_estimated() {
        for (path, quantity, is_exact, entry, expected) in [
            (
                "/v1/images/edits",
                2,
                false,
                json!({"output_cost_per_token": 4e-5}),
                Figures {
                    usage: Usage { image_output: 12_480, ..tokens(9, 12_480) },
                    parts: Vec::new(),
                    estimated: true,
                },
            ),
            (
                "/v1/rerank",
                1,
                false,
                json!({"input_cost_per_token": 0, "input_cost_per_query": 0.002}),
                Figures {
                    parts: vec![Part::calls(PartKind::Query, 1)],
                    estimated: true,
                    ..Figures::default()
                },
            ),
            ("/v1/embeddings", 0, true, json!({"input_cost_per_token": 1e-7}), input()),
        ] {
            let ask = ask(path, quantity, is_exact);
            assert_eq!(of(&ask, &entry, input()), expected, "{path} {entry}");
        }
    }

    #[test]
    fn a_size_has_its_own_entry() {
        let images = ask("/v1/images/generations", 1, true);
        let own = price("other", &json!({"output_cost_per_image": 0.04}));
        let hd = price("hd/1024-x-1024/other", &json!({"output_cost_per_image": 0.08}));
        let find = |name: &str| Some(&hd).filter(|price| price.model == name);
        let charged = charged(&images, "other", Some(&own), find, Figures::default());
        assert_eq!(charged.parts[0].model.as_deref(), Some("hd/1024-x-1024/other"));
    }
}
