//! What the vendors' models accept: the rows of `conf/models.json`, as data. A price entry may say
//! otherwise of its model (`model_facts.rs`).
//!
//! Each section has the rows of one reader, which also reads the line and the number out of a
//! model's name: `models` are lines, `from` and `to` the first and the last number, `with` parts of
//! the name. The first row that fits a model decides, so that exceptions go before the rule.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const SHIPPED: &str = include_str!("../../../../conf/models.json");

/// A model's major and minor number, in a row as `5` or `5.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct ModelNumber(pub u8, pub u8);

impl ModelNumber {
    /// In a row `latest`: a name without a number that ends with `-latest`.
    pub const LATEST: Self = Self(u8::MAX, u8::MAX);

    const fn latest() -> Self {
        Self::LATEST
    }
}

impl TryFrom<String> for ModelNumber {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == "latest" {
            return Ok(Self::LATEST);
        }
        let (major, minor) = text.split_once('.').unwrap_or((&text, "0"));
        Ok(Self(major.parse()?, minor.parse()?))
    }
}

/// The name in lower case, without an allocation if it already is.
pub fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|letter| letter.is_ascii_uppercase()) {
        name.to_ascii_lowercase().into()
    } else {
        name.into()
    }
}

/// Which models, and what they accept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, bound = "F: Deserialize<'de>")]
struct Row<F> {
    /// Lines of models.
    models: Vec<Box<str>>,
    /// The first number.
    #[serde(default)]
    from: ModelNumber,
    /// The last number.
    #[serde(default = "ModelNumber::latest")]
    to: ModelNumber,
    /// What the name must contain.
    #[serde(default)]
    with: Vec<Box<str>>,
    accepts: F,
}

/// The rows of one section, by line.
#[derive(Debug)]
pub struct ModelRows<F>(Vec<(Box<str>, Vec<Row<F>>)>);

impl<F: DeserializeOwned + Clone> ModelRows<F> {
    /// The rows of a section of the shipped file; none if that cannot be read. Each call parses the
    /// file: keep the result.
    pub fn shipped(section: &str) -> Self {
        let sections: Value = serde_json::from_str(SHIPPED).unwrap_or_default();
        let rows = sections.get(section).and_then(|rows| Vec::deserialize(rows).ok());
        Self::new(rows.unwrap_or_default())
    }
}

impl<F: Clone> ModelRows<F> {
    fn new(rows: Vec<Row<F>>) -> Self {
        let mut lines: Vec<(Box<str>, Vec<Row<F>>)> = Vec::new();
        for row in rows {
            for line in &row.models {
                match lines.iter_mut().find(|(known, _)| known == line) {
                    Some((_, rows)) => rows.push(row.clone()),
                    None => lines.push((line.clone(), vec![row.clone()])),
                }
            }
        }
        Self(lines)
    }

    fn of(&self, line: &str) -> Option<&[Row<F>]> {
        self.0.iter().find(|(known, _)| **known == *line).map(|(_, rows)| &**rows)
    }

    /// Whether a row names this line.
    pub fn has_line(&self, line: &str) -> bool {
        self.of(line).is_some()
    }

    /// What a model accepts; `None` if no row fits. `name`: what rows look into, in lower
    /// case.
    pub fn find(&self, line: &str, number: ModelNumber, name: &str) -> Option<&F> {
        // Names are short: comparing at each place is faster than a searcher.
        let has = |part: &str| {
            let Some(first) = part.as_bytes().first() else { return true };
            name.as_bytes().windows(part.len()).any(|at| at[0] == *first && at == part.as_bytes())
        };
        let fits = |row: &&Row<F>| {
            (row.from..=row.to).contains(&number) && row.with.iter().all(|part| has(part))
        };
        self.of(line)?.iter().find(fits).map(|row| &row.accepts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_decides() {
        let row = |from, to, with: &[&str], accepts| Row {
            models: vec!["m".into()],
            from,
            to,
            with: with.iter().map(|part| (*part).into()).collect(),
            accepts,
        };
        let (two, three) = (ModelNumber(2, 0), ModelNumber(3, 5));
        let latest = ModelNumber::LATEST;
        let rows = ModelRows::new(vec![
            row(latest, latest, &[], "latest"),
            row(three, three, &["a", "b"], "both"),
            row(two, three, &[], "two to three"),
        ]);
        for (line, number, name, found) in [
            ("m", latest, "m-latest", Some("latest")),
            ("m", three, "m-3.5-b-a", Some("both")),
            ("m", three, "m-3.5-b", Some("two to three")),
            ("m", ModelNumber(2, 9), "m-2.9", Some("two to three")),
            ("m", ModelNumber(1, 9), "m-1.9", None),
            ("m", ModelNumber(3, 6), "m-3.6", None),
            ("n", two, "m", None),
        ] {
            assert_eq!(rows.find(line, number, name), found.as_ref(), "{name}");
        }
        assert!(rows.has_line("m") && !rows.has_line("n"));
    }

    #[test]
    fn numbers_are_read() {
        let read = |text: &str| ModelNumber::try_from(text.to_owned()).ok();
        assert_eq!(read("5"), Some(ModelNumber(5, 0)));
        assert_eq!(read("4.7"), Some(ModelNumber(4, 7)));
        assert_eq!(read("latest"), Some(ModelNumber::LATEST));
        assert!(read("").is_none() && read("4.x").is_none() && read("256").is_none());
    }
}
