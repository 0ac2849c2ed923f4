//! What a request to an endpoint asks for: how much, and in which size and quality.

use std::borrow::Cow;

use serde::Deserialize;

use super::form::Form;
use crate::domain::endpoint::{ApiEndpoint, EndpointAsk, Unit};

/// Members that a price depends on. One of another type than usual counts as absent: the provider
/// refuses it.
#[derive(Debug, Default, Deserialize)]
struct Members<'b> {
    #[serde(default, borrow, deserialize_with = "lenient")]
    input: Option<Cow<'b, str>>,
    #[serde(default, deserialize_with = "lenient")]
    n: Option<u64>,
    #[serde(default, borrow, deserialize_with = "lenient")]
    size: Option<Cow<'b, str>>,
    #[serde(default, borrow, deserialize_with = "lenient")]
    quality: Option<Cow<'b, str>>,
    #[serde(default, borrow, deserialize_with = "lenient")]
    stream_format: Option<Cow<'b, str>>,
    #[serde(default, deserialize_with = "lenient")]
    parameters: Option<Parameters>,
}

/// Of Google's `:predict`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameters {
    #[serde(default, deserialize_with = "lenient")]
    sample_count: Option<u64>,
}

/// A value of the expected type, or none.
fn lenient<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    /// One of the two always fits.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either<T> {
        Expected(T),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Option::<Either<T>>::deserialize(deserializer)? {
        Some(Either::Expected(value)) => Some(value),
        Some(Either::Other(_)) | None => None,
    })
}

/// The most images of one request that are believed.
const MOST_IMAGES: u64 = 100;
/// Bytes of a second of sound in a file whose rate is unknown: 32 kbit/s, as of compressed speech.
/// Better ones have more bytes, and cost too much rather than too little, until the provider says
/// how long they are.
const BYTES_PER_SECOND: u64 = 4_000;

/// Reads the request, given as JSON. `form`: what it came as.
pub fn read(endpoint: &'static ApiEndpoint, json: &[u8], form: Option<&Form>) -> EndpointAsk {
    let has_members = matches!(endpoint.unit, Unit::Images | Unit::Characters);
    let members: Members<'_> = if has_members {
        serde_json::from_slice(json).unwrap_or_default()
    } else {
        Members::default()
    };
    let (quantity, is_exact) = match endpoint.unit {
        Unit::Free | Unit::Tokens => (0, true),
        Unit::Searches => (1, false),
        Unit::Characters => (members.input.map_or(0, |text| text.chars().count() as u64), true),
        Unit::Images => {
            let sampled = members.parameters.and_then(|parameters| parameters.sample_count);
            (members.n.or(sampled).unwrap_or(1).clamp(1, MOST_IMAGES), false)
        }
        Unit::Seconds => (form.map_or(0, seconds), false),
    };
    let streams = members.stream_format.as_deref() == Some("sse");
    let size = members.size.as_deref().map(|size| size.replace('x', "-x-"));
    let quality = members.quality.as_deref();
    let mut variants = Vec::new();
    if let (Some(quality), Some(size)) = (quality, &size) {
        variants.push(format!("{quality}/{size}"));
    }
    variants.extend(size);
    variants.extend(quality.map(ToOwned::to_owned));
    EndpointAsk { endpoint, quantity, is_exact, streams, variants }
}

/// How long the form's sound probably is.
fn seconds(form: &Form) -> u64 {
    let rate = wave_rate(&form.file_head).unwrap_or(BYTES_PER_SECOND);
    form.file_bytes.div_ceil(rate)
}

/// Bytes of a second, as the head of a RIFF/WAVE file says.
fn wave_rate(head: &[u8]) -> Option<u64> {
    let is_wave = head.starts_with(b"RIFF") && head.get(8..16) == Some(b"WAVEfmt ");
    let rate = head.get(28..32).filter(|_| is_wave)?;
    let rate = u32::from_le_bytes(rate.try_into().ok()?);
    (rate > 0).then_some(rate.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_how_much_it_asks_for() {
        for (path, json, quantity, variants) in [
            ("/v1/audio/speech", r#"{"input":"h\u00e9llo"}"#, 5, &[][..]),
            ("/v1/audio/speech", r#"{"input":["a"]}"#, 0, &[]),
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
            let ask = read(ApiEndpoint::of(path).unwrap(), json.as_bytes(), None);
            assert_eq!(ask.quantity, quantity, "{path} {json}");
            assert_eq!(ask.variants, variants, "{path} {json}");
        }
    }

    #[test]
    fn the_length_of_sound_follows_from_its_rate_if_the_file_has_one() {
        let endpoint = ApiEndpoint::of("/v1/audio/transcriptions").unwrap();
        let mut head = b"RIFF....WAVEfmt ....".to_vec();
        head.extend([1, 0, 1, 0, 0x80, 0x3e, 0, 0, 0x00, 0x7d, 0, 0]);
        for (file_head, expected) in [(head, 2), (b"ID3".to_vec(), 10)] {
            let form = Form { file_bytes: 40_000, file_head, ..Form::default() };
            assert_eq!(read(endpoint, b"{}", Some(&form)).quantity, expected);
        }
    }
}
