//! Embeddings in OpenAI's form and in Google's: requests and replies, both ways.
//!
//! | OpenAI | Google |
//! |---|---|
//! | `input`: a text or a list of texts | `content`, or `requests[].content`: their parts' texts |
//! | `dimensions` | `outputDimensionality` |
//! | `task_type` (not OpenAI's own) | `taskType` |
//! | `encoding_format`: `float` or `base64` | numbers |
//! | `usage.prompt_tokens` | `usageMetadata.promptTokenCount` |
//!
//! Lists of tokens cannot be converted, nor contents with other parts than texts. Google's `title`
//! is left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::bad_request::BadRequest;
use super::conversation::ReplyProblem;
use crate::domain::endpoint::ApiEndpoint;
use crate::domain::format::WireFormat;

/// A request to embed, in neither form.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    texts: Vec<String>,
    dimensions: Option<u64>,
    task: Option<String>,
}

/// How the reply to a converted request is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingsReply {
    endpoint: &'static ApiEndpoint,
    /// The client's name of the model.
    model: String,
    /// The client wants Base64.
    is_base64: bool,
}

/// A converted request.
#[derive(Debug)]
pub struct EmbeddingsRequest {
    /// The body for the provider.
    pub body: Vec<u8>,
    /// How to convert its reply.
    pub reply: EmbeddingsReply,
}

#[derive(Deserialize)]
struct OpenAiRequest {
    input: Value,
    dimensions: Option<u64>,
    encoding_format: Option<String>,
    task_type: Option<String>,
}

#[derive(Deserialize)]
struct GoogleBatch {
    requests: Vec<GoogleRequest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoogleRequest {
    content: GoogleContent,
    #[serde(alias = "output_dimensionality")]
    output_dimensionality: Option<u64>,
    #[serde(alias = "task_type")]
    task_type: Option<String>,
}

#[derive(Deserialize)]
struct GoogleContent {
    parts: Vec<serde_json::Map<String, Value>>,
}

/// The path of the call that a provider of this format gets instead of `endpoint`.
pub fn path(endpoint: &'static ApiEndpoint, provider: WireFormat) -> &'static str {
    match (endpoint.format, provider) {
        (WireFormat::AltCli, WireFormat::AltCli) => endpoint.path,
        (WireFormat::AltCli, _) => "/v1/embeddings",
        (_, WireFormat::AltCli) => "batchEmbedContents",
        _ => endpoint.path,
    }
}

/// Checks that no request within the body names another model than the path.
///
/// # Errors
/// One does, or the body is not a request.
pub fn check_models(body: &[u8], model: &str) -> Result<(), BadRequest> {
    let wanted = model.trim_start_matches("models/");
    let is_other = |named: &Value| {
        named.as_str().map(|name| name.trim_start_matches("models/")) != Some(wanted)
    };
    match named_models(&mut parse::<Value>(body)?).into_iter().any(|named| is_other(named)) {
        true => Err(BadRequest::field("model", "it differs from the model in the path")),
        false => Ok(()),
    }
}

/// The body with another model wherever it names one; `None` if it names none.
pub fn with_model(body: &[u8], model: &str) -> Option<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let named = named_models(&mut body);
    if named.is_empty() {
        return None;
    }
    named.into_iter().for_each(|named| *named = format!("models/{model}").into());
    Some(body.to_string().into_bytes())
}

fn named_models(body: &mut Value) -> Vec<&mut Value> {
    let Value::Object(members) = body else { return Vec::new() };
    let mut named = Vec::new();
    for (name, value) in members {
        match (name.as_str(), value) {
            ("model", value) => named.push(value),
            ("requests", Value::Array(list)) => {
                named.extend(list.iter_mut().filter_map(|request| request.get_mut("model")));
            }
            _ => {}
        }
    }
    named
}

/// Converts a request. `model`: the client's name of it; `upstream`: the provider's.
///
/// # Errors
/// When it is not a request of its form, or asks for what the other form cannot express.
pub fn request(
    endpoint: &'static ApiEndpoint,
    provider: WireFormat,
    body: &[u8],
    model: &str,
    upstream: &str,
) -> Result<EmbeddingsRequest, BadRequest> {
    let is_base64;
    let wanted = if endpoint.format == WireFormat::AltCli {
        is_base64 = false;
        of_google(endpoint, body)?
    } else {
        let asked: OpenAiRequest = parse(body)?;
        is_base64 = asked.encoding_format.as_deref() == Some("base64");
        Wanted { texts: texts(asked.input)?, dimensions: asked.dimensions, task: asked.task_type }
    };
    let body = match provider {
        WireFormat::AltCli => {
            let name = format!("models/{upstream}");
            let request = |text: String| {
                let mut request = json!({"model": name, "content": {"parts": [{"text": text}]}});
                if let Some(dimensions) = wanted.dimensions {
                    request["outputDimensionality"] = dimensions.into();
                }
                if let Some(task) = &wanted.task {
                    request["taskType"] = task.as_str().into();
                }
                request
            };
            json!({"requests": wanted.texts.into_iter().map(request).collect::<Vec<_>>()})
        }
        _ => {
            let mut request = json!({
                "model": upstream, "input": wanted.texts, "encoding_format": "float",
            });
            if let Some(dimensions) = wanted.dimensions {
                request["dimensions"] = dimensions.into();
            }
            request
        }
    };
    let reply = EmbeddingsReply { endpoint, model: model.to_owned(), is_base64 };
    Ok(EmbeddingsRequest { body: body.to_string().into_bytes(), reply })
}

fn parse<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, BadRequest> {
    serde_json::from_slice(body).map_err(|e| BadRequest::whole(&e.to_string()))
}

fn texts(input: Value) -> Result<Vec<String>, BadRequest> {
    let unfit = || {
        BadRequest::field("input", "for this provider only a text or a list of texts is accepted")
    };
    let texts = match input {
        Value::String(text) => vec![text],
        Value::Array(list) => {
            let text = |item| match item {
                Value::String(text) => Ok(text),
                _ => Err(unfit()),
            };
            list.into_iter().map(text).collect::<Result<_, _>>()?
        }
        _ => return Err(unfit()),
    };
    if texts.is_empty() { Err(BadRequest::field("input", "it is empty")) } else { Ok(texts) }
}

fn of_google(endpoint: &ApiEndpoint, body: &[u8]) -> Result<Wanted, BadRequest> {
    let requests = match endpoint.path {
        "embedContent" => vec![parse::<GoogleRequest>(body)?],
        _ => parse::<GoogleBatch>(body)?.requests,
    };
    let first = requests.first().ok_or_else(|| BadRequest::field("requests", "it is empty"))?;
    let (dimensions, task) = (first.output_dimensionality, first.task_type.clone());
    let text = |request: GoogleRequest| {
        if request.output_dimensionality != dimensions || request.task_type != task {
            let message = "for this provider all must have one dimensionality and one task type";
            return Err(BadRequest::field("requests", message));
        }
        let texts = request.content.parts.iter().map(|part| match part.get("text") {
            Some(Value::String(text)) if part.len() == 1 => Ok(text.as_str()),
            _ => Err(BadRequest::field("content", "for this provider only texts are accepted")),
        });
        texts.collect::<Result<String, _>>()
    };
    let texts = requests.into_iter().map(text).collect::<Result<_, _>>()?;
    Ok(Wanted { texts, dimensions, task })
}

/// One vector of a reply: numbers as they are written, or Base64 of 32-bit floats.
#[derive(Deserialize)]
#[serde(untagged)]
enum Vector<'b> {
    Encoded(std::borrow::Cow<'b, str>),
    Numbers(Vec<f32>),
}

#[derive(Deserialize)]
struct OpenAiItem<'b> {
    #[serde(default)]
    index: usize,
    #[serde(borrow)]
    embedding: Vector<'b>,
}

#[derive(Deserialize)]
struct OpenAiReply<'b> {
    #[serde(borrow)]
    data: Vec<OpenAiItem<'b>>,
}

#[derive(Deserialize)]
struct GoogleReply<'b> {
    #[serde(borrow)]
    embeddings: Vec<GoogleVector<'b>>,
}

#[derive(Deserialize, Serialize)]
struct GoogleVector<'b> {
    #[serde(borrow)]
    values: &'b RawValue,
}

/// Converts a reply. `tokens`: of the request, as billed.
///
/// # Errors
/// What is wrong with it.
pub fn reply(
    reply: &EmbeddingsReply,
    provider: WireFormat,
    body: &[u8],
    tokens: u64,
) -> Result<Vec<u8>, ReplyProblem> {
    let written = match provider {
        WireFormat::AltCli => to_openai(reply, body, tokens),
        _ => to_google(reply, body, tokens),
    };
    written.map_err(|e| ReplyProblem::NotAReply {
        format: provider.as_str(),
        message: format!("the embeddings cannot be read: {e}"),
    })
}

fn to_openai(
    reply: &EmbeddingsReply,
    body: &[u8],
    tokens: u64,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Item<'v, V> {
        object: &'v str,
        index: usize,
        embedding: V,
    }
    let vectors: GoogleReply<'_> = serde_json::from_slice(body)?;
    let mut data = Vec::with_capacity(vectors.embeddings.len());
    for (index, vector) in vectors.embeddings.iter().enumerate() {
        let embedding = if reply.is_base64 {
            let numbers: Vec<f32> = serde_json::from_str(vector.values.get())?;
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            serde_json::value::to_raw_value(&STANDARD.encode(bytes))?
        } else {
            vector.values.to_owned()
        };
        data.push(Item { object: "embedding", index, embedding });
    }
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    #[derive(Serialize)]
    struct Written<'v, V> {
        object: &'v str,
        data: Vec<Item<'v, V>>,
        model: &'v str,
        usage: Value,
    }
    serde_json::to_vec(&Written { object: "list", data, model: &reply.model, usage })
}

fn to_google(
    reply: &EmbeddingsReply,
    body: &[u8],
    tokens: u64,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut list: OpenAiReply<'_> = serde_json::from_slice(body)?;
    list.data.sort_by_key(|item| item.index);
    let mut vectors = Vec::with_capacity(list.data.len());
    for item in list.data {
        vectors.push(json!({"values": numbers(item.embedding)?}));
    }
    let usage = json!({"promptTokenCount": tokens, "totalTokenCount": tokens});
    let written = match reply.endpoint.path {
        "embedContent" => {
            let only = vectors.into_iter().next();
            json!({"embedding": only, "usageMetadata": usage})
        }
        _ => json!({"embeddings": vectors, "usageMetadata": usage}),
    };
    serde_json::to_vec(&written)
}

fn numbers(vector: Vector<'_>) -> Result<Vec<f32>, serde_json::Error> {
    let text = match vector {
        Vector::Numbers(numbers) => return Ok(numbers),
        Vector::Encoded(text) => text,
    };
    let bytes = STANDARD.decode(text.as_bytes()).map_err(serde::de::Error::custom)?;
    let (floats, _) = bytes.as_chunks::<4>();
    Ok(floats.iter().copied().map(f32::from_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(path: &str) -> &'static ApiEndpoint {
        ApiEndpoint::of(path).unwrap()
    }

    fn converted(path: &str, to: WireFormat, body: &Value) -> Result<EmbeddingsRequest, String> {
        request(endpoint(path), to, body.to_string().as_bytes(), "m", "up").map_err(|e| e.message)
    }

    #[test]
    fn a_request_is_converted_both_ways() {
        let asked = json!({
            "model": "m", "input": ["a", "b"], "dimensions": 8, "encoding_format": "base64",
            "task_type": "CLUSTERING", "user": "u",
        });
        let request = converted("/v1/embeddings", WireFormat::AltCli, &asked).unwrap();
        let one = |text: &str| {
            json!({
                "model": "models/up", "content": {"parts": [{"text": text}]},
                "outputDimensionality": 8, "taskType": "CLUSTERING",
            })
        };
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body, json!({"requests": [one("a"), one("b")]}));
        assert_eq!(path(request.reply.endpoint, WireFormat::AltCli), "batchEmbedContents");
        let back = converted("batchEmbedContents", WireFormat::Chat, &body).unwrap();
        let body: Value = serde_json::from_slice(&back.body).unwrap();
        assert_eq!(
            body,
            json!({
                "model": "up", "input": ["a", "b"], "encoding_format": "float", "dimensions": 8,
            })
        );
        assert_eq!(path(back.reply.endpoint, WireFormat::Responses), "/v1/embeddings");
    }

    #[test]
    fn every_model_that_a_body_names_is_that_of_the_path() {
        let batch = |name: &str| {
            json!({"requests": [{"model": "models/m"}, {"model": name}], "model": "m"}).to_string()
        };
        assert_eq!(check_models(batch("m").as_bytes(), "m"), Ok(()));
        assert!(check_models(batch("dear").as_bytes(), "m").is_err());
        let renamed = with_model(batch("m").as_bytes(), "up").unwrap();
        assert_eq!(check_models(&renamed, "up"), Ok(()));
        assert_eq!(with_model(br#"{"content":{}}"#, "up"), None);
    }

    #[test]
    fn what_the_other_form_cannot_express_is_refused() {
        let image = json!({"content": {"parts": [{"inlineData": {}}]}});
        let differ = json!({"requests": [
            {"content": {"parts": [{"text": "a"}]}},
            {"content": {"parts": [{"text": "b"}]}, "taskType": "CLUSTERING"},
        ]});
        for (path, to, body, message) in [
            ("/v1/embeddings", WireFormat::AltCli, json!({"input": [1, 2]}), "input: for this"),
            ("/v1/embeddings", WireFormat::AltCli, json!({"input": []}), "input: it is empty"),
            ("embedContent", WireFormat::Chat, image, "content: for this provider only texts"),
            ("batchEmbedContents", WireFormat::Chat, differ, "requests: for this provider all"),
            ("batchEmbedContents", WireFormat::Chat, json!({"requests": []}), "it is empty"),
        ] {
            let refused = converted(path, to, &body).unwrap_err();
            assert!(refused.contains(message), "{body}: {refused}");
        }
    }

    #[test]
    fn a_reply_is_converted_both_ways_and_numbers_stay_as_they_are() {
        let of_google = r#"{"embeddings":[{"values":[0.1,-2.50]},{"values":[1e-3]}]}"#;
        let reply_of = |path, is_base64| EmbeddingsReply {
            endpoint: endpoint(path),
            model: "m".to_owned(),
            is_base64,
        };
        let written = |is_base64| {
            let form = reply_of("/v1/embeddings", is_base64);
            reply(&form, WireFormat::AltCli, of_google.as_bytes(), 7).unwrap()
        };
        let plain = String::from_utf8(written(false)).unwrap();
        assert_eq!(
            plain,
            r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2.50]},{"object":"embedding","index":1,"embedding":[1e-3]}],"model":"m","usage":{"prompt_tokens":7,"total_tokens":7}}"#
        );
        for of_openai in [written(false), written(true)] {
            let batch = reply_of("batchEmbedContents", false);
            let back = reply(&batch, WireFormat::Chat, &of_openai, 7).unwrap();
            let back: Value = serde_json::from_slice(&back).unwrap();
            assert_eq!(back["embeddings"][0]["values"].as_array().unwrap().len(), 2);
            assert_eq!(back["usageMetadata"]["promptTokenCount"], 7);
        }
        let one = reply_of("embedContent", false);
        let back = reply(&one, WireFormat::Chat, &written(true), 7).unwrap();
        let back: Value = serde_json::from_slice(&back).unwrap();
        assert_eq!(back["embedding"]["values"].as_array().unwrap().len(), 2);
        assert!(reply(&one, WireFormat::Chat, b"{}", 7).is_err());
    }
}
