//! A call's arguments as JSON text. Formats have them as a string that contains JSON; some services
//! and clients send the JSON itself.

use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error};

use super::{Str, Text};
use crate::formats::json_read::{self, Json};

/// The text; empty for null.
#[derive(Debug, Clone, Default)]
pub struct Arguments<'a>(Text<'a>);

impl<'a> Arguments<'a> {
    /// The text itself.
    pub fn into_text(self) -> Text<'a> {
        self.0
    }
}

impl Deref for Arguments<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?.get();
        match json.as_bytes() {
            [b'"', ..] => {
                let text = json_read::from_str::<Str<'de>>(json).map_err(D::Error::custom)?;
                Ok(Self(text.into_text()))
            }
            b"null" => Ok(Self::default()),
            _ => Ok(Self(json.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use crate::formats::json_read;

    #[test]
    fn arguments_are_text_or_the_json_itself() {
        for (json, expected) in [
            (r#""{\"a\":1}""#, r#"{"a":1}"#),
            (r#"{"a": [1]}"#, r#"{"a": [1]}"#),
            ("[1]", "[1]"),
            ("null", ""),
            (r#""""#, ""),
        ] {
            let arguments: Arguments<'_> = json_read::from_str(json).unwrap();
            assert_eq!(&*arguments, expected);
        }
        assert!(json_read::from_str::<Arguments<'_>>(r#""\ud83d""#).is_err());
    }
}
