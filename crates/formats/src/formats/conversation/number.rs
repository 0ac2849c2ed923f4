//! Whole numbers, also if they are written with a point or an exponent (`100.0`, `1e3`), as some
//! clients do. For `deserialize_with`, together with `default`.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde_json::Number;

/// Above this, a number with a point does not stand for one whole number.
const MOST: f64 = 9.0e15;

/// An optional whole number.
///
/// # Errors
/// Another type or number.
pub fn whole<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64> + TryFrom<i64>,
{
    Ok(Option::<WholeNumber<T>>::deserialize(deserializer)?.map(|whole| whole.0))
}

/// An optional number; one that is whole loses its point.
///
/// # Errors
/// Another type.
pub fn counted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Number>, D::Error> {
    let number = Option::<Number>::deserialize(deserializer)?;
    Ok(number.map(|number| match number.as_f64().and_then(integer) {
        Some(whole) if number.is_f64() => whole.into(),
        _ => number,
    }))
}

/// A number's text as a whole number.
pub fn parse(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| u64::try_from(integer(text.parse().ok()?)?).ok())
}

fn integer(value: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
    (value.fract() == 0.0 && value.abs() < MOST).then_some(value as i64)
}

struct WholeNumber<T>(T);

impl<'de, T: TryFrom<u64> + TryFrom<i64>> Deserialize<'de> for WholeNumber<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeVisitor(PhantomData)).map(WholeNumber)
    }
}

struct WholeVisitor<T>(PhantomData<T>);

impl<T: TryFrom<u64> + TryFrom<i64>> Visitor<'_> for WholeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        match integer(number) {
            Some(whole) => self.visit_i64(whole),
            None => Err(E::invalid_type(Unexpected::Float(number), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::formats::json_read;

    #[derive(Deserialize)]
    struct Fields {
        #[serde(default, deserialize_with = "whole")]
        count: Option<u64>,
        #[serde(default, deserialize_with = "whole")]
        budget: Option<i64>,
        #[serde(default, deserialize_with = "counted")]
        seed: Option<Number>,
    }

    #[test]
    fn whole_numbers_may_have_a_point() {
        for (json, expected) in
            [("100", 100), ("100.0", 100), ("1e3", 1000), ("0.0", 0), ("-0.0", 0), ("12.50e1", 125)]
        {
            let text = format!(r#"{{"count":{json},"budget":{json},"seed":{json}}}"#);
            let fields: Fields = json_read::from_str(&text).unwrap();
            assert_eq!(fields.count, Some(expected), "{json}");
            assert_eq!(fields.budget.map(i64::unsigned_abs), Some(expected), "{json}");
            assert_eq!(fields.seed.map(|seed| seed.to_string()), Some(expected.to_string()));
            assert_eq!(parse(json), Some(expected), "{json}");
        }
        for json in ["1.5", "-1", "-1.0", "1e30", "\"1\"", "[]", "true"] {
            assert!(
                json_read::from_str::<Fields>(&format!(r#"{{"count":{json}}}"#)).is_err(),
                "{json}"
            );
            assert_eq!(parse(json), None, "{json}");
        }
        let fields: Fields =
            json_read::from_str(r#"{"count":null,"budget":-1.0,"seed":0.5}"#).unwrap();
        assert_eq!((fields.count, fields.budget), (None, Some(-1)));
        assert_eq!(fields.seed.map(|seed| seed.to_string()).as_deref(), Some("0.5"));
    }
}
