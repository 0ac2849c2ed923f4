//! OpenAI's batches in the playground: the body may have the `requests`. They are uploaded as the
//! lines of a file, and the batch is made of that file.

use axum::http::Method;
use serde_json::{Map, Value};

use super::{Ask, NextAsk, form_with};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::formats::route::{BATCHES, FILES};

const REQUESTS: &str = "requests";

/// The upload of the file, and the batch of it; `None` if `ask` is no batch that has its requests.
///
/// # Errors
/// What it has is no list of objects.
pub(super) fn of_batch(ask: &Ask) -> Result<Option<(Ask, NextAsk)>, ApiError> {
    if ask.path != BATCHES.path {
        return Ok(None);
    }
    // What cannot be read is the proxy's to refuse.
    let Ok(mut body) = serde_json::from_slice::<Map<String, Value>>(&ask.body) else {
        return Ok(None);
    };
    let Some(requests) = body.remove(REQUESTS) else { return Ok(None) };
    let requests = requests.as_array().filter(|all| all.iter().all(Value::is_object));
    let lines: String = requests
        .ok_or_else(|| ApiError::because(Code::INVALID_FORMAT, Reason::MustBeList).field("body"))?
        .iter()
        .map(|request| format!("{request}\n"))
        .collect();
    let purpose = Map::from_iter([("purpose".to_owned(), Value::from("batch"))]);
    let file = ("file", "requests.jsonl", lines.as_bytes());
    let (content_type, form) = form_with(purpose, Some(file));
    let upload = Ask {
        method: Method::POST,
        format: ask.format,
        path: FILES.path.to_owned(),
        content_type,
        body: form,
    };
    let (format, content_type) = (ask.format, ask.content_type.clone());
    let make = move |reply: &[u8]| {
        let file: Value = serde_json::from_slice(reply).ok()?;
        body.insert("input_file_id".to_owned(), file["id"].as_str()?.into());
        let body = serde_json::to_vec(&body).ok()?;
        Some(Ask {
            method: Method::POST,
            format,
            path: BATCHES.path.to_owned(),
            content_type,
            body,
        })
    };
    Ok(Some((upload, NextAsk { path: BATCHES.path, make: Box::new(make) })))
}
