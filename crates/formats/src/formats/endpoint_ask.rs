//! What a request to an endpoint asks for: how much, and in which size and quality.
//!
//! A member is known by its name in any case of its letters, as some services know it. One that
//! occurs twice is refused, as for the members that `formats::peek` reads.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::bad_request::BadRequest;
use super::form::Form;
use crate::domain::endpoint::{ApiEndpoint, EndpointAsk, ReplyFigures, Unit};

/// Members that a price depends on, each in its smallest form: a value of another type than usual
/// is refused by the provider.
#[derive(Debug, Default)]
struct Members {
    /// Characters of `input`.
    characters: Option<u64>,
    /// Texts of `prompt`.
    prompts: Option<u64>,
    n: Option<u64>,
    best_of: Option<u64>,
    size: Option<String>,
    quality: Option<String>,
    stream_format: Option<String>,
    sample_count: Option<u64>,
}

/// Names of the members, in lower case.
const NAMES: [&str; 8] =
    ["input", "prompt", "n", "best_of", "size", "quality", "stream_format", "parameters"];

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let (mut members, mut seen) = (Members::default(), Vec::new());
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let Some(known) = NAMES.into_iter().find(|known| name.eq_ignore_ascii_case(known))
            else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&known) {
                return Err(A::Error::custom(format_args!("{known}: this field occurs twice")));
            }
            seen.push(known);
            match known {
                "input" => members.characters = map.next_value::<Texts>()?.characters,
                "prompt" => members.prompts = Some(map.next_value::<Texts>()?.count),
                _ => members.note(known, &map.next_value()?),
            }
        }
        Ok(members)
    }
}

impl Members {
    fn note(&mut self, name: &str, value: &Value) {
        let (number, text) = (value.as_u64(), value.as_str().map(ToOwned::to_owned));
        match name {
            "n" => self.n = number,
            "best_of" => self.best_of = number,
            "size" => self.size = text,
            "quality" => self.quality = text,
            "stream_format" => self.stream_format = text,
            _ => {
                let counts = ["sampleCount", "sample_count"];
                self.sample_count = counts.iter().filter_map(|name| value[*name].as_u64()).max();
            }
        }
    }
}

/// A text, or a list of texts or of tokens.
struct Texts {
    /// Of a text alone.
    characters: Option<u64>,
    count: u64,
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts { characters: Some(text.chars().count() as u64), count: 1 })
    }

    fn visit_unit<E: Error>(self) -> Result<Texts, E> {
        Ok(Texts { characters: None, count: 1 })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Texts { characters: None, count: 1 })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
        let mut count = 0;
        while let Some(item) = list.next_element::<Value>()? {
            // Tokens of one text are numbers.
            count += u64::from(!item.is_number());
        }
        Ok(Texts { characters: None, count: count.max(1) })
    }
}

/// The most images of one request that are believed.
const MOST_IMAGES: u64 = 100;
/// Bytes of a second of sound in a file whose rate is unknown: 16 kbit/s, as of speech that is
/// compressed well.
const BYTES_PER_SECOND: u64 = 2_000;
/// The highest rate that a file's own head is believed: two channels of 16 bits at 48 kHz.
const MOST_PER_SECOND: u64 = 192_000;

/// Reads the request, given as JSON. `form`: what it came as.
///
/// # Errors
/// When what its price depends on cannot be read, or stands there twice; when there is no sound.
pub fn read(
    endpoint: &'static ApiEndpoint,
    json: &[u8],
    form: Option<&Form>,
) -> Result<EndpointAsk, BadRequest> {
    let members = if endpoint.reads_members() {
        serde_json::from_slice(json).map_err(|e| BadRequest::whole(&e.to_string()))?
    } else {
        Members::default()
    };
    let (quantity, is_exact) = match endpoint.unit {
        Unit::Tokens | Unit::Batch | Unit::Free => (0, true),
        Unit::Searches => (1, false),
        // What is not a text may be spoken all the same.
        Unit::Characters => {
            let all = (json.len() as u64, false);
            members.characters.map_or(all, |characters| (characters, true))
        }
        Unit::Images => {
            let asked = if endpoint.is_action() { members.sample_count } else { members.n };
            (asked.unwrap_or(1).clamp(1, MOST_IMAGES), false)
        }
        Unit::Seconds => (seconds(form)?, false),
    };
    let streams = members.stream_format.as_deref() == Some("sse");
    let size = members.size.map(|size| size.replace('x', "-x-"));
    let mut variants = Vec::new();
    if let (Some(quality), Some(size)) = (&members.quality, &size) {
        variants.push(format!("{quality}/{size}"));
    }
    variants.extend(size);
    variants.extend(members.quality);
    let each = members.n.max(members.best_of).unwrap_or(1).max(1);
    let answers = members.prompts.unwrap_or(1).saturating_mul(each);
    Ok(EndpointAsk { endpoint, quantity, is_exact, streams, answers, variants, batch: None })
}

impl ApiEndpoint {
    /// Whether members of the request decide about the price.
    fn reads_members(&self) -> bool {
        matches!(self.unit, Unit::Images | Unit::Characters)
            || self.figures == ReplyFigures::OfFormat(self.format) && !self.is_action()
    }
}

/// How long the form's sound probably is.
fn seconds(form: Option<&Form>) -> Result<u64, BadRequest> {
    let missing = || BadRequest::field("file", "this field is required");
    let form = form.filter(|form| form.file_bytes > 0).ok_or_else(missing)?;
    if form.fields.keys().any(|name| name.eq_ignore_ascii_case("url")) {
        return Err(BadRequest::field("url", "send the sound itself, as `file`"));
    }
    let rate = wave_rate(&form.file_head).unwrap_or(BYTES_PER_SECOND);
    Ok(form.file_bytes.div_ceil(rate))
}

/// Bytes of a second, as the head of a RIFF/WAVE file says, if its figures agree.
fn wave_rate(head: &[u8]) -> Option<u64> {
    let is_wave = head.starts_with(b"RIFF") && head.get(8..16) == Some(b"WAVEfmt ");
    let figure = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let align = u16::from_le_bytes(head.get(32..34)?.try_into().ok()?);
    let (samples, rate) = (u64::from(figure(24)?), u64::from(figure(28)?));
    let agrees = rate == samples.saturating_mul(align.into());
    (is_wave && agrees && (1..=MOST_PER_SECOND).contains(&rate)).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_how_much_it_asks_for() {
        for (path, json, quantity, variants) in [
            ("/v1/audio/speech", r#"{"input":"h\u00e9llo"}"#, 5, &[][..]),
            ("/v1/audio/speech", r#"{"input":["a"]}"#, 15, &[]),
            ("/v1/audio/speech", r#"{"Input":"long"}"#, 4, &[]),
            ("/v1/images/generations", r#"{"prompt":"a"}"#, 1, &[]),
            (
                "/v1/images/generations",
                r#"{"n":3,"size":"1024x1024","quality":"hd"}"#,
                3,
                &["hd/1024-x-1024", "1024-x-1024", "hd"],
            ),
            ("/v1/images/generations", r#"{"n":"3","quality":1,"size":"auto"}"#, 1, &["auto"]),
            ("predict", r#"{"parameters":{"sampleCount":4}}"#, 4, &[]),
            ("/v1/rerank", "{}", 1, &[]),
            ("/v1/embeddings", r#"{"input":["a"]}"#, 0, &[]),
        ] {
            let ask = read(ApiEndpoint::of(path).unwrap(), json.as_bytes(), None).unwrap();
            assert_eq!(ask.quantity, quantity, "{path} {json}");
            assert_eq!(ask.variants, variants, "{path} {json}");
        }
    }

    #[test]
    fn the_length_of_sound_follows_from_its_rate_if_the_file_has_one() {
        let endpoint = ApiEndpoint::of("/v1/audio/transcriptions").unwrap();
        let mut head = b"RIFF....WAVEfmt ....".to_vec();
        head.extend([1, 0, 1, 0, 0x80, 0x3e, 0, 0, 0x00, 0x7d, 0, 0, 2, 0, 16, 0]);
        let mut forged = head.clone();
        forged[28..32].copy_from_slice(&[0xff; 4]);
        for (file_head, expected) in [(head, 2), (forged, 20), (b"ID3".to_vec(), 20)] {
            let form = Form { file_bytes: 40_000, file_head, ..Form::default() };
            assert_eq!(read(endpoint, b"{}", Some(&form)).unwrap().quantity, expected);
        }
    }

    #[test]
    fn what_a_price_depends_on_is_read_or_refused() {
        for (path, json) in [
            ("/v1/audio/speech", r#"{"input":"a","quality":1,"quality":1}"#),
            ("/v1/audio/speech", r#"{"input":"a","Input":"long"}"#),
            ("/v1/audio/speech", r#"{"input":"a","size":1e999}"#),
            ("/v1/audio/speech", r#"{"input":"\ud800"}"#),
            ("/v1/images/generations", r#"{"n":1,"N":9}"#),
        ] {
            assert!(read(ApiEndpoint::of(path).unwrap(), json.as_bytes(), None).is_err(), "{json}");
        }
        let sound = ApiEndpoint::of("/v1/audio/transcriptions").unwrap();
        assert!(read(sound, b"{}", Some(&Form::default())).is_err());
        let mut form = Form { file_bytes: 9, ..Form::default() };
        form.fields.insert("url".to_owned(), "https://x.example/a.mp3".into());
        assert!(read(sound, b"{}", Some(&form)).is_err());
    }

    #[test]
    fn answers_are_those_of_all_prompts() {
        let completions = ApiEndpoint::of("/v1/completions").unwrap();
        for (json, answers) in [
            (r#"{"prompt":"a"}"#, 1),
            (r#"{"prompt":["a","b"],"n":2,"best_of":5}"#, 10),
            (r#"{"prompt":[1,2,3],"n":2}"#, 2),
            (r#"{"prompt":[[1],[2]]}"#, 2),
        ] {
            assert_eq!(
                read(completions, json.as_bytes(), None).unwrap().answers,
                answers,
                "{json}"
            );
        }
    }
}
