//! What a request reserves while it is in flight: an amount that counts against the limits for
//! other requests.
//!
//! The amount is the highest that a reachable provider could charge, by that provider's price and
//! multiplier. The modes differ in the number of tokens:
//!
//! | mode | input | output |
//! |---|---|---|
//! | `expected` | the estimate | the usual reply of this key and model, see [`output_tokens`] |
//! | `strict` | the upper bound | the most that the reply may have |
//! | `off` | nothing | nothing |
//!
//! "The most that the reply may have" is the request's `max_tokens`, unless that is 0, which some
//! services take for no bound; without it, the model's maximum from its price entry; without that,
//! [`UNKNOWN_MAXIMUM`].

use rust_decimal::Decimal;

use super::cost;
use crate::domain::batch::BatchGroup;
use crate::domain::money::NanoUsd;
use crate::domain::price::{CostKind, Rates};
use crate::domain::usage::{ServiceTier, Usage};

/// Maximum output tokens of a reply if neither the request nor the price entry has one.
pub const UNKNOWN_MAXIMUM: u64 = 128_000;
/// `expected` reserves at least this fraction of the maximum.
const FLOOR_DIVISOR: u64 = 4;

/// How requests in flight count against limits (`limits.reservation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Reservation {
    /// By the output of the key's recent replies of that model.
    #[default]
    Expected,
    /// By their maximum cost. No request is admitted that could exceed a limit together with those
    /// in flight.
    Strict,
    /// Not at all.
    Off,
}

impl Reservation {
    /// The setting's value: `expected`, `strict` or `off`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The known facts of a request before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// Estimated input tokens.
    pub input: u64,
    /// Input tokens that the request cannot exceed.
    pub input_bound: u64,
    /// The client's bound on the output tokens of one choice.
    pub max_tokens: Option<u64>,
    /// How many choices the client requests.
    pub choices: u64,
    /// The 90th percentile of the output of this key and model's recent replies, once there are
    /// enough.
    pub usual_output: Option<u64>,
    /// The client's bound on the output tokens of one use of a tool's model.
    pub tool_tokens: Option<u64>,
    /// The request asks for the fast mode.
    pub is_fast: bool,
}

/// How another model that the request names may add to its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// It may serve instead of the requested one, which is then not charged.
    Instead,
    /// It may serve after the requested one has written a part of its reply.
    After,
    /// It is used beside it, at most this many times.
    Beside(u64),
}

/// Output tokens of an image that a tool makes: a large one in high quality.
const IMAGE_TOKENS: u64 = 6_240;

/// Another model that a request names.
pub struct OtherModel<'a> {
    /// Its price, and what it may write.
    pub candidate: ReservedAt<'a>,
    /// When it is charged.
    pub share: Share,
}

/// What a request reserves that names further models: `own` is the amount for its own. In `strict`
/// every fallback may be charged, as each may decline after it has begun to write.
pub fn with_others<'a>(
    mode: Reservation,
    forecast: &Forecast,
    own: NanoUsd,
    others: impl IntoIterator<Item = OtherModel<'a>>,
) -> NanoUsd {
    let (mut dearest, mut beside) = (own, NanoUsd::ZERO);
    for OtherModel { candidate, share } in others {
        match share {
            Share::Beside(times) => {
                let is_image = candidate.rates.base(CostKind::ImageOutput).is_some();
                let most = candidate.max_output.or(is_image.then_some(IMAGE_TOKENS));
                let asked = Forecast {
                    max_tokens: forecast.tool_tokens,
                    choices: 1,
                    usual_output: Some(0),
                    ..*forecast
                };
                let once = at(mode, &asked, &ReservedAt { max_output: most, ..candidate });
                let uses = i64::try_from(times).unwrap_or(i64::MAX);
                beside = beside.saturating_add(NanoUsd(once.0.saturating_mul(uses)));
            }
            Share::After if mode == Reservation::Strict => {
                dearest = dearest.saturating_add(at(mode, forecast, &candidate));
            }
            Share::After | Share::Instead => dearest = dearest.max(at(mode, forecast, &candidate)),
        }
    }
    dearest.saturating_add(beside)
}

/// The most that web searches of the request can cost, if it bounds them: reserved in `strict`.
pub fn searches(mode: Reservation, uses: u64, candidate: &ReservedAt<'_>) -> NanoUsd {
    if mode != Reservation::Strict {
        return NanoUsd::ZERO;
    }
    let usage = Usage { web_searches: uses, ..Usage::default() };
    let none = cost::total(candidate.rates, &Usage::default(), candidate.multiplier);
    let fees = cost::total(candidate.rates, &usage, candidate.multiplier);
    NanoUsd(fees.0.saturating_sub(none.0))
}

/// A provider that the request may be sent to: the inputs of its cost.
#[derive(Debug, Clone, Copy)]
pub struct ReservedAt<'a> {
    /// The rates of the price entry that applies at this provider.
    pub rates: &'a Rates,
    /// Maximum output tokens of the model, by its price entry; `None` if that has none.
    pub max_output: Option<u64>,
    /// The provider's `cost_multiplier`.
    pub multiplier: Decimal,
}

/// What the request reserves: the amount of the most expensive candidate. Zero without candidates.
pub fn amount<'a>(
    mode: Reservation,
    forecast: &Forecast,
    candidates: impl IntoIterator<Item = ReservedAt<'a>>,
) -> NanoUsd {
    if mode == Reservation::Off {
        return NanoUsd::ZERO;
    }
    candidates
        .into_iter()
        .map(|candidate| at(mode, forecast, &candidate))
        .max()
        .unwrap_or(NanoUsd::ZERO)
}

/// The reserved output tokens, for a model with this maximum.
///
/// `expected`: the maximum of the reply, until the usual output is known; then the usual output,
/// but at least a quarter of that maximum and at most all of it.
pub fn output_tokens(mode: Reservation, forecast: &Forecast, max_output: Option<u64>) -> u64 {
    let bound = forecast.max_tokens.filter(|bound| *bound > 0);
    let each = bound.or(max_output).unwrap_or(UNKNOWN_MAXIMUM);
    let most = each.saturating_mul(forecast.choices.max(1));
    match (mode, forecast.usual_output) {
        (Reservation::Off, _) => 0,
        (Reservation::Expected, Some(usual)) => usual.min(most).max(most.div_ceil(FLOOR_DIVISOR)),
        (Reservation::Expected, None) | (Reservation::Strict, _) => most,
    }
}

/// What requests of a batch may cost, with what they probably use together. `usual_output`: that of
/// each, if it is known. `Off` is taken for `Expected`.
pub fn of_batch(
    mode: Reservation,
    group: &BatchGroup,
    usual_output: Option<u64>,
    candidate: &ReservedAt<'_>,
) -> (Usage, NanoUsd) {
    let mode = if mode == Reservation::Off { Reservation::Expected } else { mode };
    let forecast = Forecast {
        input: group.input.div_ceil(group.count.max(1)),
        input_bound: group.input_bound,
        max_tokens: group.max_tokens,
        choices: group.choices,
        usual_output,
        tool_tokens: None,
        is_fast: false,
    };
    let output = output_tokens(mode, &forecast, candidate.max_output);
    let none = Usage { output, tier: ServiceTier::Batch, ..Usage::default() };
    let likely = Usage { input: forecast.input, ..none };
    let bound = forecast.input_bound;
    let inputs = match mode {
        Reservation::Strict => [
            Usage { input: bound, ..none },
            Usage { cache_write_5m: bound, ..none },
            Usage { cache_write_1h: bound, ..none },
        ],
        _ => [likely; 3],
    };
    let cost = |usage| cost::total(candidate.rates, usage, candidate.multiplier);
    let each = inputs.iter().map(cost).max().unwrap_or(NanoUsd::ZERO);
    let count = i64::try_from(group.count).unwrap_or(i64::MAX);
    let all = Usage { input: group.input, output: output.saturating_mul(group.count), ..likely };
    (all, NanoUsd(each.0.saturating_mul(count)))
}

fn at(mode: Reservation, forecast: &Forecast, candidate: &ReservedAt<'_>) -> NanoUsd {
    let output = output_tokens(mode, forecast, candidate.max_output);
    let cost = |usage: &Usage| cost::total(candidate.rates, usage, candidate.multiplier);
    // A more expensive tier than the standard one may be the account's default; only the fast mode
    // is in the request.
    let is_possible = |tier: &ServiceTier| {
        forecast.is_fast || !matches!(tier, ServiceTier::Fast | ServiceTier::FastUs)
    };
    let most = |usage: &Usage| {
        let tiers = ServiceTier::ALL.into_iter().filter(is_possible);
        let tiers = tiers.map(|tier| cost(&Usage { tier, ..*usage }));
        tiers.max().unwrap_or(NanoUsd::ZERO)
    };
    if mode != Reservation::Strict {
        return cost(&Usage { input: forecast.input, output, ..Usage::default() });
    }
    // The kind of each token depends on the client and the provider.
    let none = Usage::default();
    let input = forecast.input_bound;
    let inputs = [
        Usage { input, ..none },
        Usage { input, image_input: input, ..none },
        Usage { input, audio_input: input, ..none },
        Usage { cache_write_5m: input, ..none },
        Usage { cache_write_1h: input, ..none },
    ];
    let dearest = inputs.into_iter().max_by_key(|usage| most(usage)).unwrap_or_default();
    let outputs = [
        Usage { output, ..dearest },
        Usage { output, reasoning: output, ..dearest },
        Usage { output, image_output: output, ..dearest },
        Usage { output, audio_output: output, ..dearest },
    ];
    outputs.iter().map(most).max().unwrap_or(NanoUsd::ZERO)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Reservation::{Expected, Off, Strict};
    use super::*;
    use crate::domain::clock::Timestamp;
    use crate::domain::price::{Price, PriceSource};
    use crate::policy::price::{Belief, rates_from_json};

    const ASK: Forecast = Forecast {
        input: 1_000,
        input_bound: 4_000,
        max_tokens: Some(8_000),
        choices: 1,
        usual_output: None,
        tool_tokens: None,
        is_fast: false,
    };

    fn rates(entry: Value) -> Rates {
        rates_from_json(&entry, Belief::Usual).unwrap()
    }

    fn plain() -> Rates {
        rates(json!({"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5}))
    }

    #[test]
    fn output_is_the_most_until_the_usual_is_known_and_never_below_a_quarter_of_it() {
        let with = |max_tokens, usual_output| Forecast { max_tokens, usual_output, ..ASK };
        let cases = [
            ("no reply known", with(Some(8_000), None), None, [8_000, 8_000]),
            ("the usual", with(Some(8_000), Some(3_000)), None, [3_000, 8_000]),
            ("short replies", with(Some(8_000), Some(3)), None, [2_000, 8_000]),
            ("a quarter is rounded up", with(Some(7), Some(0)), None, [2, 7]),
            ("longer than this one may be", with(Some(8_000), Some(9_000)), None, [8_000, 8_000]),
            ("by the price entry", with(None, None), Some(64_000), [64_000, 64_000]),
            (
                "the request's bound goes first",
                with(Some(8_000), None),
                Some(64_000),
                [8_000, 8_000],
            ),
            ("a quarter of the entry's", with(None, Some(100)), Some(64_000), [16_000, 64_000]),
            ("zero is not a bound", with(Some(0), None), Some(64_000), [64_000, 64_000]),
            ("nobody says", with(None, None), None, [UNKNOWN_MAXIMUM, UNKNOWN_MAXIMUM]),
            ("three choices", Forecast { choices: 3, ..ASK }, None, [24_000, 24_000]),
            ("no choice is one", Forecast { choices: 0, ..ASK }, None, [8_000, 8_000]),
        ];
        for (name, forecast, max_output, [expected, strict]) in cases {
            assert_eq!(output_tokens(Expected, &forecast, max_output), expected, "{name}");
            assert_eq!(output_tokens(Strict, &forecast, max_output), strict, "{name}");
            assert_eq!(output_tokens(Off, &forecast, max_output), 0, "{name}");
        }
    }

    #[test]
    fn the_dearest_candidate_counts_with_its_multiplier_and_its_own_maximum() {
        let (cheap, dear) =
            (plain(), rates(json!({"input_cost_per_token": 0, "output_cost_per_token": 3e-5})));
        let candidate = |rates, multiplier: &str, max_output| ReservedAt {
            rates,
            max_output,
            multiplier: multiplier.parse().unwrap(),
        };
        // 1 000 × 1e-6 + 8 000 × 1e-5 = 0.081
        let one = [candidate(&cheap, "1", None)];
        assert_eq!(amount(Expected, &ASK, one), NanoUsd(81_000_000));
        // 8 000 × 3e-5 = 0.24
        let two = [candidate(&cheap, "1", None), candidate(&dear, "1", None)];
        assert_eq!(amount(Expected, &ASK, two), NanoUsd(240_000_000));
        let multiplied = [candidate(&cheap, "10", None), candidate(&dear, "1", None)];
        assert_eq!(amount(Expected, &ASK, multiplied), NanoUsd(810_000_000));
        // Without a bound of the request: 1 000 × 1e-6 + 64 000 × 1e-5 = 0.641
        let unbounded = Forecast { max_tokens: None, ..ASK };
        let longer = [candidate(&cheap, "1", Some(64_000)), candidate(&cheap, "1", Some(8_000))];
        assert_eq!(amount(Expected, &unbounded, longer), NanoUsd(641_000_000));
        assert_eq!(amount(Off, &ASK, two), NanoUsd::ZERO);
        assert_eq!(amount(Strict, &ASK, []), NanoUsd::ZERO);
    }

    #[test]
    fn strict_takes_the_upper_bound_of_the_input_at_the_dearest_rate_that_it_may_be_billed_at() {
        let cached = rates(json!({
            "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5,
            "cache_creation_input_token_cost": 1.25e-6, "cache_creation_input_token_cost_above_1hr": 2e-6,
            "output_cost_per_image_token": 4e-5,
        }));
        let reserved = |mode, rates: &Rates| {
            amount(mode, &ASK, [ReservedAt { rates, max_output: None, multiplier: Decimal::ONE }])
        };
        // 4 000 × 1e-6 + 8 000 × 1e-5
        assert_eq!(reserved(Strict, &plain()), NanoUsd(84_000_000));
        // 4 000 × 2e-6 + 8 000 × 4e-5
        assert_eq!(reserved(Strict, &cached), NanoUsd(328_000_000));
        // The estimate, as plain input and output: 1 000 × 1e-6 + 8 000 × 1e-5
        assert_eq!(reserved(Expected, &cached), NanoUsd(81_000_000));
    }

    #[test]
    fn a_batch_reserves_all_its_requests_at_its_own_tier() {
        let rates = rates(json!({
            "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5,
            "input_cost_per_token_batches": 5e-7, "output_cost_per_token_batches": 5e-6,
            "cache_creation_input_token_cost_batches": 1e-6,
        }));
        let at = ReservedAt { rates: &rates, max_output: None, multiplier: Decimal::TWO };
        let (max_tokens, choices) = (Some(50), 2);
        let group = BatchGroup {
            model: 0,
            count: 10,
            input: 10_000,
            input_bound: 4_000,
            max_tokens,
            choices,
        };
        // Ten times 1 000 × 5e-7 + 100 × 5e-6, twice.
        let (usage, cost) = of_batch(Expected, &group, None, &at);
        assert_eq!((usage.input, usage.output, cost), (10_000, 1_000, NanoUsd(20_000_000)));
        assert_eq!(usage.tier, ServiceTier::Batch);
        assert_eq!(of_batch(Off, &group, None, &at), (usage, cost));
        // Ten times 4 000 × 1e-6 + 100 × 5e-6, twice.
        assert_eq!(of_batch(Strict, &group, None, &at).1, NanoUsd(90_000_000));
        // The usual output, but a quarter of the most at least.
        assert_eq!(of_batch(Expected, &group, Some(1), &at).0.output, 250);
    }

    #[test]
    fn an_absurd_bound_reserves_the_most_that_there_is() {
        let absurd = Forecast { max_tokens: Some(u64::MAX), choices: u64::MAX, ..ASK };
        let dear = rates(json!({"output_cost_per_token": 1}));
        let candidate = [ReservedAt { rates: &dear, max_output: None, multiplier: Decimal::ONE }];
        assert_eq!(amount(Strict, &absurd, candidate), NanoUsd(i64::MAX));
    }

    #[test]
    fn a_models_maximum_is_read_by_either_name_of_the_public_list() {
        let cases = [
            (json!({"max_output_tokens": 64_000, "max_tokens": 200_000}), Some(64_000)),
            (json!({"max_tokens": 8_192}), Some(8_192)),
            (json!({"max_output_tokens": null, "max_tokens": 8_192}), Some(8_192)),
            (json!({"max_output_tokens": "64000"}), None),
            (json!({"max_output_tokens": 0}), None),
            (json!({}), None),
        ];
        for (entry, expected) in cases {
            let price = Price::new(
                "m".to_owned(),
                PriceSource::Manual,
                &entry,
                Rates::default(),
                Timestamp(1),
            );
            assert_eq!(price.max_output, expected, "{entry}");
        }
    }
}
