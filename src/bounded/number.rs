//! Numbers. A body may send each as a string that contains it, too.

use rust_decimal::Decimal;
use schemars::SchemaGenerator;
use serde::Serialize;
use serde_json::{Value, json};

use super::from_json::{FromJson, from_json};
use super::{Fault, Faults, FromText, InYaml, Wrong};
use crate::domain::money::NanoUsd;
use crate::reasons::{Code, Reason};

/// A whole number `MIN` … `MAX`; `OR` is its default where a body gives it one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Whole<N, const MIN: i64, const MAX: i64, const OR: i64 = 0>(pub N);

/// The id of a stored record.
pub type Id = Whole<i64, 1, { i64::MAX }>;

/// 0 … `MAX` with at most `PLACES` digits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fraction<const MAX: i64, const PLACES: u32>(pub Decimal);

/// USD with cents, 0 … `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usd<const MAX: i64>(pub NanoUsd);

impl<N: TryFrom<i64>, const MIN: i64, const MAX: i64, const OR: i64> FromJson
    for Whole<N, MIN, MAX, OR>
{
    fn take(json: &Value) -> Result<Self, Faults> {
        let wrong = || Faults::from(Fault::wrong_type(Reason::MustBeWholeNumber));
        let number = number(json)?;
        if !number.fract().is_zero() {
            return Err(wrong());
        }
        within(number, MIN.into(), MAX.into()).map_err(|beyond| beyond.fault(MIN, MAX))?;
        let whole = i64::try_from(number).map_err(|_| wrong())?;
        N::try_from(whole).map(Self).map_err(|_| wrong())
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        let types = ["integer", "string"];
        match MAX {
            i64::MAX => json!({ "type": types, "minimum": MIN, "pattern": "^[0-9]+$" }),
            _ => json!({ "type": types, "minimum": MIN, "maximum": MAX, "pattern": "^-?[0-9]+$" }),
        }
    }
}

impl<const MAX: i64, const PLACES: u32> FromJson for Fraction<MAX, PLACES> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let number = number(json)?.normalize();
        within(number, Decimal::ZERO, MAX.into()).map_err(|beyond| beyond.fault(0, MAX))?;
        if number.scale() > PLACES {
            return Err(Fault::format(Reason::TooManyPlaces).with("places", PLACES).into());
        }
        Ok(Self(number))
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        let pattern = format!(r"^[0-9]+(\.[0-9]{{1,{PLACES}}})?$");
        json!({ "type": ["number", "string"], "minimum": 0, "maximum": MAX, "pattern": pattern })
    }
}

impl<const MAX: i64> FromJson for Usd<MAX> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let number = Fraction::<MAX, 2>::take(json)?.0;
        let too_much =
            || Faults::from(Fault::new(Code::MAX_VALUE, Reason::AtMost).with("max", MAX));
        NanoUsd::from_decimal(number).map(Self).ok_or_else(too_much)
    }

    fn describe(schemas: &mut SchemaGenerator) -> Value {
        Fraction::<MAX, 2>::describe(schemas)
    }
}

from_json!([N: TryFrom<i64>, const MIN: i64, const MAX: i64, const OR: i64] Whole<N, MIN, MAX, OR> => N);
from_json!([const MAX: i64, const PLACES: u32] Fraction<MAX, PLACES> => Decimal);
from_json!([const MAX: i64] Usd<MAX> => NanoUsd);

impl<N: TryFrom<i64> + Default, const MIN: i64, const MAX: i64, const OR: i64> Default
    for Whole<N, MIN, MAX, OR>
{
    fn default() -> Self {
        Self(N::try_from(OR).unwrap_or_default())
    }
}

impl<N, const MIN: i64, const MAX: i64, const OR: i64> FromText for Whole<N, MIN, MAX, OR>
where
    N: TryFrom<i64> + ToString,
{
    type Out = N;

    const YAML: InYaml = InYaml::Whole;

    /// No setting is negative.
    fn read(text: &str) -> Result<N, Wrong> {
        let number: u64 = text.parse().map_err(|_| "is not a whole number")?;
        let number = within(i64::try_from(number).unwrap_or(i64::MAX), MIN, MAX)?;
        N::try_from(number).map_err(|_| Beyond::Max.into())
    }

    fn text(value: &N) -> String {
        value.to_string()
    }

    fn shape() -> String {
        format!("write a whole number from {MIN} to {MAX}")
    }
}

impl<const MAX: i64, const PLACES: u32> FromText for Fraction<MAX, PLACES> {
    type Out = Decimal;

    const YAML: InYaml = InYaml::Number;

    fn read(text: &str) -> Result<Decimal, Wrong> {
        let number = text.parse::<Decimal>().ok().map(|number| number.normalize());
        let fits = |number: &Decimal| {
            within(*number, Decimal::ZERO, MAX.into()).is_ok() && number.scale() <= PLACES
        };
        number.filter(fits).ok_or_else(|| format!("is not a number from 0 to {MAX}").into())
    }

    fn text(value: &Decimal) -> String {
        value.normalize().to_string()
    }

    fn shape() -> String {
        format!("write a number from 0 to {MAX}, such as 0.01")
    }
}

/// The bound that a number is beyond.
#[derive(Debug, Clone, Copy)]
pub(super) enum Beyond {
    Min,
    Max,
}

impl Beyond {
    fn fault(self, min: i64, max: i64) -> Faults {
        match self {
            Self::Min => Fault::new(Code::MIN_VALUE, Reason::AtLeast).with("min", min).into(),
            Self::Max => Fault::new(Code::MAX_VALUE, Reason::AtMost).with("max", max).into(),
        }
    }
}

impl From<Beyond> for Wrong {
    fn from(_: Beyond) -> Self {
        "is out of range".into()
    }
}

/// The number, if it is within its bounds.
pub(super) fn within<N: PartialOrd>(number: N, min: N, max: N) -> Result<N, Beyond> {
    match number {
        number if number < min => Err(Beyond::Min),
        number if number > max => Err(Beyond::Max),
        number => Ok(number),
    }
}

/// A number, or a string that contains one. A number too large for a decimal becomes the largest
/// of its sign, which no bound allows.
fn number(json: &Value) -> Result<Decimal, Faults> {
    let wrong = || Faults::from(Fault::wrong_type(Reason::MustBeNumber));
    let text = match json {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        _ => return Err(wrong()),
    };
    if !text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) || text.len() > 64 {
        return Err(wrong());
    }
    if let Ok(number) = Decimal::from_str_exact(&text).or_else(|_| Decimal::from_scientific(&text))
    {
        return Ok(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number >= 1.0 => Ok(Decimal::MAX),
        Ok(number) if number <= -1.0 => Ok(Decimal::MIN),
        Ok(_) => Err(Fault::format(Reason::TooFine).into()),
        Err(_) => Err(wrong()),
    }
}
