//! Reads the rates of a price-table entry, exactly.
//!
//! Field names are those of the public model price list. JSON numbers are taken by their text, so no binary fraction ever
//! enters the arithmetic; `3e-6` and `"0.000003"` are the same rate. Unknown fields are no concern of this file: the entry
//! itself is stored whole.

use rust_decimal::Decimal;
use serde_json::{Map, Value};

use crate::domain::price::{Rates, Tier};

/// Highest rate that is believed, USD per token. (The dearest model known asks for less than a thousandth of it.)
pub const MAX_PER_TOKEN: Decimal = Decimal::ONE;
/// Highest fee that is believed, USD per request.
pub const MAX_PER_REQUEST: Decimal = Decimal::ONE_THOUSAND;
/// What may be insisted on.
const FORCED: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);

/// How far a price may be from every known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belief {
    /// [`MAX_PER_TOKEN`] and [`MAX_PER_REQUEST`] hold.
    Usual,
    /// An administrator insists: a million USD per token, beyond which sums would overflow.
    Forced,
}

/// Why a price entry was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceProblem {
    #[error("a price entry must be a JSON object")]
    NotAnObject,
    #[error("{field} must be a decimal number")]
    NotANumber { field: &'static str },
    #[error("{field} must not be negative")]
    Negative { field: &'static str },
    #[error("{field} must not be above {max} USD")]
    TooLarge { field: &'static str, max: Decimal },
    #[error("a price entry must name at least one rate, such as input_cost_per_token")]
    NoRates,
}

impl PriceProblem {
    /// The field at fault, where it is one.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        match self {
            Self::NotAnObject | Self::NoRates => None,
            Self::NotANumber { field } | Self::Negative { field } | Self::TooLarge { field, .. } => Some(field),
        }
    }
}

/// The rates of one entry. Absent and `null` fields are `None`.
///
/// # Errors
/// A field that is no finite decimal number, is negative or is above [`MAX_PER_TOKEN`] (for the fee
/// [`MAX_PER_REQUEST`]), or an entry without a single rate: such a model is better unpriced, and flagged so, than free.
pub fn rates_from_json(entry: &Value, belief: Belief) -> Result<Rates, PriceProblem> {
    let entry = entry.as_object().ok_or(PriceProblem::NotAnObject)?;
    let (per_token, per_request) = match belief {
        Belief::Usual => (MAX_PER_TOKEN, MAX_PER_REQUEST),
        Belief::Forced => (FORCED, FORCED),
    };
    let token = |field| rate(entry, field, per_token);
    let rates = Rates {
        input: token("input_cost_per_token")?,
        output: token("output_cost_per_token")?,
        cache_write_5m: token("cache_creation_input_token_cost")?,
        cache_write_1h: token("cache_creation_input_token_cost_above_1hr")?,
        cache_read: token("cache_read_input_token_cost")?,
        per_request: rate(entry, "input_cost_per_request", per_request)?,
        image_input: token("input_cost_per_image_token")?,
        image_output: token("output_cost_per_image_token")?,
        above_200k: Tier {
            input: token("input_cost_per_token_above_200k_tokens")?,
            output: token("output_cost_per_token_above_200k_tokens")?,
            cache_write_5m: token("cache_creation_input_token_cost_above_200k_tokens")?,
            cache_write_1h: token("cache_creation_input_token_cost_above_1hr_above_200k_tokens")?,
            cache_read: token("cache_read_input_token_cost_above_200k_tokens")?,
        },
    };
    if rates == Rates::default() { Err(PriceProblem::NoRates) } else { Ok(rates) }
}

fn rate(entry: &Map<String, Value>, field: &'static str, max: Decimal) -> Result<Option<Decimal>, PriceProblem> {
    let rate = match entry.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => decimal(&number.to_string()),
        Some(Value::String(text)) => decimal(text.trim()),
        Some(_) => None,
    };
    match rate {
        None => Err(PriceProblem::NotANumber { field }),
        Some(rate) if rate.is_sign_negative() && !rate.is_zero() => Err(PriceProblem::Negative { field }),
        Some(rate) if rate > max => Err(PriceProblem::TooLarge { field, max }),
        Some(rate) => Ok(Some(rate.normalize())),
    }
}

/// Decimal or scientific notation, without loss; `None` for anything else and for more places than a decimal has.
fn decimal(text: &str) -> Option<Decimal> {
    if !text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E')) {
        return None;
    }
    Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input(text: &str) -> Result<Option<Decimal>, PriceProblem> {
        let entry: Value = serde_json::from_str(&format!(r#"{{"input_cost_per_token": {text}}}"#)).unwrap();
        rates_from_json(&entry, Belief::Usual).map(|rates| rates.input)
    }

    #[test]
    fn numbers_are_read_exactly_in_every_notation() {
        let cases = [
            ("3e-6", "0.000003"),
            ("3E-06", "0.000003"),
            ("0.000003", "0.000003"),
            ("1.25e-05", "0.0000125"),
            ("1.5000000000000002e-06", "0.0000015000000000000002"),
            ("0.1", "0.1"),
            ("0", "0"),
            ("0.0", "0"),
            ("1", "1"),
            ("\"0.00000015\"", "0.00000015"),
            ("\" 2e-7 \"", "0.0000002"),
        ];
        for (text, expected) in cases {
            assert_eq!(input(text), Ok(Some(expected.parse().unwrap())), "{text}");
        }
    }

    #[test]
    fn what_is_no_price_is_refused_by_name() {
        let field = "input_cost_per_token";
        let not_a_number = || Err(PriceProblem::NotANumber { field });
        for text in [
            "\"NaN\"",
            "\"Infinity\"",
            "\"-inf\"",
            "\"\"",
            "\"1_000\"",
            "\"1,5\"",
            "true",
            "[1]",
            "{}",
            "5e-324",
            "1e300",
        ] {
            assert_eq!(input(text), not_a_number(), "{text}");
        }
        assert_eq!(input("-1e-6"), Err(PriceProblem::Negative { field }));
        assert_eq!(input("1.0001"), Err(PriceProblem::TooLarge { field, max: Decimal::ONE }));
        let fee = rates_from_json(&json!({"input_cost_per_request": 1_001}), Belief::Usual);
        assert_eq!(fee.unwrap_err().field(), Some("input_cost_per_request"));
    }

    #[test]
    fn an_entry_needs_a_rate() {
        assert_eq!(rates_from_json(&json!(5), Belief::Usual), Err(PriceProblem::NotAnObject));
        assert_eq!(
            rates_from_json(&json!({"mode": "chat", "input_cost_per_token": null}), Belief::Usual),
            Err(PriceProblem::NoRates)
        );
        assert!(
            rates_from_json(&json!({"mode": "chat", "input_cost_per_token": 0}), Belief::Usual).is_ok(),
            "free is a price"
        );
    }

    #[test]
    fn every_field_of_the_public_list_finds_its_rate() {
        let fields = [
            "input_cost_per_token",
            "output_cost_per_token",
            "cache_creation_input_token_cost",
            "cache_creation_input_token_cost_above_1hr",
            "cache_read_input_token_cost",
            "input_cost_per_request",
            "input_cost_per_image_token",
            "output_cost_per_image_token",
            "input_cost_per_token_above_200k_tokens",
            "output_cost_per_token_above_200k_tokens",
            "cache_creation_input_token_cost_above_200k_tokens",
            "cache_creation_input_token_cost_above_1hr_above_200k_tokens",
            "cache_read_input_token_cost_above_200k_tokens",
        ];
        let entry: Map<_, _> =
            fields.iter().zip(1..).map(|(name, n)| ((*name).to_owned(), json!(f64::from(n) / 1e6))).collect();
        let millionths = |n: i64| Some(Decimal::new(n, 6).normalize());
        let read = rates_from_json(&Value::Object(entry), Belief::Usual).unwrap();
        let tier = read.above_200k;
        let found = [
            read.input,
            read.output,
            read.cache_write_5m,
            read.cache_write_1h,
            read.cache_read,
            read.per_request,
            read.image_input,
            read.image_output,
            tier.input,
            tier.output,
            tier.cache_write_5m,
            tier.cache_write_1h,
            tier.cache_read,
        ];
        for (n, rate) in (1..).zip(found) {
            assert_eq!(rate, millionths(n), "field {n}");
        }
    }
}
