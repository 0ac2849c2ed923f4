//! Batches and files of Google's form: the requests of a batch, which do not name their model, and
//! what the service says of a batch or a file.

use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{BatchRequests, Reading, each_line};
use crate::domain::endpoint::ApiEndpoint;
use crate::domain::format::WireFormat;
use crate::formats::bad_request::BadRequest;
use crate::formats::peek::PeekLimits;

/// In place of a path in [`BatchAsk::path`](crate::domain::batch::BatchAsk): the action that each
/// request would have alone. It is also that of the requests of a file, whatever batch they are for.
pub const ACTION: &str = "generateContent";
/// The same for a batch of embeddings.
pub const EMBED: &str = "embedContent";
/// States of a batch that has ended.
const ENDED: [&str; 4] = ["SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"];

/// The requests of a batch.
#[derive(Debug)]
pub enum GoogleBatch {
    /// The body has them.
    Requests(Box<BatchRequests>),
    /// The file of this id has them.
    File(String),
}

#[derive(Deserialize)]
struct GoogleBody<'b> {
    #[serde(borrow)]
    batch: NamedBatch<'b>,
}

#[derive(Deserialize)]
struct NamedBatch<'b> {
    model: Option<String>,
    #[serde(borrow, rename = "inputConfig", alias = "input_config")]
    input: GoogleInput<'b>,
}

#[derive(Deserialize)]
struct GoogleInput<'b> {
    #[serde(rename = "fileName", alias = "file_name")]
    file: Option<String>,
    #[serde(borrow)]
    requests: Option<GoogleRequests<'b>>,
}

#[derive(Deserialize)]
struct GoogleRequests<'b> {
    #[serde(borrow)]
    requests: Vec<GoogleRequest<'b>>,
}

#[derive(Deserialize)]
struct GoogleRequest<'b> {
    #[serde(borrow)]
    request: &'b RawValue,
}

/// A line of a file.
#[derive(Deserialize)]
struct GoogleLine<'b> {
    key: Option<String>,
    #[serde(borrow)]
    request: &'b RawValue,
}

/// Whether the requests of a batch have Google's form.
pub fn is_googles(path: &str) -> bool {
    [ACTION, EMBED].contains(&path)
}

/// The action of the requests of a batch that this endpoint makes.
pub fn action_of(endpoint: &ApiEndpoint) -> &'static str {
    match endpoint.path {
        "asyncBatchEmbedContent" => EMBED,
        _ => ACTION,
    }
}

/// Reads the body of a request for a batch, given as one piece. `model`: that of the path.
///
/// # Errors
/// When it is no such body, has no requests or two places of them, or a request of it cannot be
/// read or names another model.
pub fn of_body(
    body: &Bytes,
    (model, action): (&str, &str),
    limits: PeekLimits,
) -> Result<GoogleBatch, BadRequest> {
    let read: GoogleBody<'_> =
        serde_json::from_slice(body).map_err(|e| BadRequest::whole(&e.to_string()))?;
    if read.batch.model.is_some_and(|named| plain_name(&named) != plain_name(model)) {
        return Err(BadRequest::field("batch.model", "must be the model of the path"));
    }
    let requests = match read.batch.input {
        GoogleInput { file: Some(file), requests: None } => {
            return Ok(GoogleBatch::File(file.strip_prefix("files/").unwrap_or(&file).to_owned()));
        }
        GoogleInput { file: None, requests: Some(requests) } => requests.requests,
        _ => {
            let why = "either `requests` or `fileName` is required";
            return Err(BadRequest::field("batch.inputConfig", why));
        }
    };
    let mut reading = reading(action, plain_name(model), limits);
    for (number, GoogleRequest { request }) in requests.into_iter().enumerate() {
        let at = request.get().as_ptr().addr() - body.as_ptr().addr();
        let own = body.slice(at..at + request.get().len());
        reading.add(&(number + 1).to_string(), own, at)?;
    }
    reading.finish().map(|read| GoogleBatch::Requests(Box::new(read)))
}

/// Reads the lines of a file. Their model is that of the batch, which is not known yet: `""`.
///
/// # Errors
/// When there is none, or one of them cannot be read or names a model.
pub fn of_lines(
    chunks: &[Bytes],
    file: Range<usize>,
    limits: PeekLimits,
) -> Result<BatchRequests, BadRequest> {
    let mut reading = reading(ACTION, "", limits);
    each_line(chunks, file, |text, start| {
        let bad = |e: serde_json::Error| BadRequest::field("file", &e.to_string());
        let GoogleLine { key, request } = serde_json::from_slice(text).map_err(bad)?;
        let at = request.get().as_ptr().addr() - text.as_ptr().addr();
        let own = Bytes::copy_from_slice(request.get().as_bytes());
        reading.add(&key.unwrap_or_default(), own, start + at)
    })?;
    reading.finish()
}

fn reading(action: &str, model: &str, limits: PeekLimits) -> Reading {
    let mut reading = Reading::new(action, WireFormat::AltCli, limits);
    reading.model = Some(model.to_owned());
    reading
}

/// A model's name without what precedes it within bodies.
pub fn plain_name(name: &str) -> &str {
    name.strip_prefix("models/").unwrap_or(name)
}

/// The tokens of a result of [`EMBED`], in the form of other embeddings' usage; `None` if it has no
/// count.
pub fn embedded(reply: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Embedded {
        #[serde(rename = "tokenCount")]
        tokens: Option<Value>,
    }
    let tokens = serde_json::from_slice::<Embedded>(reply).ok()?.tokens?;
    let tokens = tokens.as_u64().or_else(|| tokens.as_str()?.parse().ok())?;
    Some(format!(r#"{{"usage":{{"prompt_tokens":{tokens}}}}}"#))
}

/// The description of a file or of a batch, without the results of the batch: they may be long.
pub fn described(said: &Value) -> Value {
    // An upload's end has the file within a member.
    let mut own = said.get("file").unwrap_or(said).clone();
    if let Some(output) = own.pointer_mut("/metadata/output").and_then(Value::as_object_mut) {
        output.remove("inlinedResponses");
    }
    if let Some(response) = own.get_mut("response").and_then(Value::as_object_mut) {
        response.remove("inlinedResponses");
    }
    own
}

/// The id of what is described: the last segment of its name.
pub fn id_of(described: &Value) -> Option<&str> {
    described["name"].as_str()?.rsplit('/').next()
}

/// Whether a batch has ended.
pub fn has_ended(said: &Value) -> bool {
    let state = said["metadata"]["state"].as_str().unwrap_or_default();
    said["done"] == true || ENDED.iter().any(|ended| state.ends_with(&format!("_{ended}")))
}

/// The id of the file that has the results of a batch.
pub fn results_file(said: &Value) -> Option<&str> {
    let file = outputs(said).find_map(|output| output["responsesFile"].as_str())?;
    Some(file.strip_prefix("files/").unwrap_or(file))
}

/// The results that a batch has itself.
pub fn results(said: &Value) -> &[Value] {
    let lists = outputs(said).filter_map(|output| {
        output["inlinedResponses"]["inlinedResponses"].as_array().filter(|all| !all.is_empty())
    });
    lists.map(Vec::as_slice).next().unwrap_or_default()
}

/// Whether a batch has succeeded, and has no results yet.
pub fn lacks_results(said: &Value) -> bool {
    let state = said["metadata"]["state"].as_str().unwrap_or_default();
    state.ends_with("_SUCCEEDED") && results(said).is_empty() && results_file(said).is_none()
}

/// Services describe the output in both places, or in one of them.
fn outputs(said: &Value) -> impl Iterator<Item = &Value> {
    [&said["response"], &said["metadata"]["output"]].into_iter()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: PeekLimits = PeekLimits { max_depth: 64 };

    fn read(body: &Value) -> Result<GoogleBatch, BadRequest> {
        of_body(&Bytes::from(body.to_string()), ("m", ACTION), LIMITS)
    }

    #[test]
    fn a_body_has_requests_for_the_model_of_its_path_or_names_a_file() {
        let contents = json!([{"parts": [{"text": "hello"}]}]);
        let bound = json!({"maxOutputTokens": 100, "candidateCount": 2});
        for (input, requests) in [("inputConfig", "requests"), ("input_config", "requests")] {
            let body = json!({"batch": {"displayName": "b", input: {requests: {"requests": [
                {"request": {"contents": contents, "generationConfig": bound}},
                {"request": {"contents": contents, "model": "models/m", "generation_config": bound}},
            ]}}}});
            let GoogleBatch::Requests(read) = read(&body).unwrap() else { panic!() };
            assert_eq!((read.ask.count(), &*read.ask.models), (2, &["m".to_owned()][..]));
            let group = read.ask.groups[0];
            assert_eq!((group.max_tokens, group.choices), (Some(104), 2), "{:?}", read.ask);
            let text = body.to_string();
            let names: Vec<_> = read.names.iter().map(|at| &text[at.clone()]).collect();
            assert_eq!(names, ["\"models/m\""]);
        }
        for member in ["fileName", "file_name"] {
            let body = json!({"batch": {"input_config": {member: "files/f-1"}}});
            assert!(matches!(read(&body), Ok(GoogleBatch::File(file)) if file == "f-1"));
        }
    }

    #[test]
    fn what_is_not_one_batch_is_refused() {
        let request = json!({"request": {"contents": []}});
        let input = |input: Value| json!({"batch": {"inputConfig": input}});
        let requests = json!({"requests": [request]});
        for (body, words) in [
            (json!({}), "batch"),
            (input(json!({})), "either"),
            (input(json!({"fileName": "files/f", "requests": requests})), "either"),
            (input(json!({"requests": {"requests": []}})), "at least one"),
            (input(json!({"fileName": "a", "file_name": "b"})), "duplicate"),
            (
                input(json!({"requests": {"requests": [request, {"request": {"model": "n"}}]}})),
                "request 2",
            ),
        ] {
            let error = read(&body).unwrap_err();
            assert!(error.message.contains(words), "{body}: {error:?}");
        }
    }

    #[test]
    fn embeddings_have_their_tokens_as_a_number_or_as_text() {
        for (reply, tokens) in [
            (json!({"embedding": {"values": [0.5]}, "tokenCount": "12"}), Some(12)),
            (json!({"tokenCount": 12}), Some(12)),
            (json!({"tokenCount": "many"}), None),
            (json!({"embedding": {}}), None),
        ] {
            let figures = embedded(reply.to_string().as_bytes());
            let expected = tokens.map(|n: u64| json!({"usage": {"prompt_tokens": n}}).to_string());
            assert_eq!(figures, expected, "{reply}");
        }
    }

    #[test]
    fn lines_name_no_model() {
        let line = r#"{"key":"a","request":{"contents":[{"parts":[{"text":"hello"}]}]}}"#;
        let text = Bytes::from(format!("{line}\n\n{line}\n"));
        let of = |text: Bytes| of_lines(std::slice::from_ref(&text), 0..text.len(), LIMITS);
        let read = of(text).unwrap();
        assert_eq!(
            (read.ask.count(), &*read.ask.models, &*read.ask.path),
            (2, &[String::new()][..], ACTION)
        );
        for bad in ["", "{}", "hello", r#"{"request":{"model":"models/m","contents":[]}}"#] {
            assert!(of(Bytes::from(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn descriptions_have_an_id_a_state_and_results() {
        let results_of = json!({"inlinedResponses": {"inlinedResponses": [{"response": {}}]}});
        let said = json!({
            "name": "batches/b1", "done": true, "response": results_of,
            "metadata": {"state": "BATCH_STATE_SUCCEEDED", "output": results_of},
        });
        assert_eq!((id_of(&said), has_ended(&said), results(&said).len()), (Some("b1"), true, 1));
        assert!(!described(&said).to_string().contains("inlinedResponses"));
        let file = json!({"response": {"responsesFile": "files/batch-b1"}});
        assert_eq!((results_file(&file), results(&file).len()), (Some("batch-b1"), 0));
        for (state, ended) in [("BATCH_STATE_RUNNING", false), ("JOB_STATE_EXPIRED", true)] {
            assert_eq!(has_ended(&json!({"metadata": {"state": state}})), ended, "{state}");
        }
        let uploaded = json!({"file": {"name": "files/f"}});
        assert_eq!(id_of(&described(&uploaded)), Some("f"));
    }
}
