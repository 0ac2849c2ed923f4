//! Batches and files of Google's form, and the uploads of files in several calls.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::super::query::query;
use super::super::stage::StagedAnswer;
use super::super::wire::WireFault;
use super::{HeldCall, HeldObjects, Object};
use tollgate_formats::domain::format::WireFormat;
use tollgate_formats::domain::usage::Usage;
use tollgate_formats::formats::batch::google;

const AT: &str = "2026-11-29T10:00:00Z";
const FORMAT: WireFormat = WireFormat::AltCli;

impl HeldObjects {
    /// A call of an upload: its beginning, a piece of it, or all of it.
    pub(super) fn google_upload(&self, call: HeldCall<'_>) -> Result<StagedAnswer, WireFault> {
        let header = |name: &str| {
            let value = call.parts.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default()
        };
        if header("x-goog-upload-protocol") == "multipart" {
            let (meta, content) = related(call.bytes, header("content-type"))?;
            return Ok(self.keep_google(&meta["file"], content, call.serial));
        }
        let commands: Vec<_> = header("x-goog-upload-command").split(',').map(str::trim).collect();
        if commands.contains(&"start") {
            let id = format!("upload{:06}", call.serial);
            let meta = serde_json::from_slice(call.bytes).unwrap_or_default();
            let begun = Object { described: meta, content: Bytes::new(), ended: None, calls: 0 };
            self.0.lock().insert(id.clone(), begun);
            let path = "/upload/v1beta/files";
            let address =
                format!("http://{}{path}?upload_id={id}&upload_protocol=resumable", header("host"));
            return Ok(status("active").with("x-goog-upload-url", address));
        }
        let id = query(call.parts).remove("upload_id").unwrap_or_default();
        let mut all = self.0.lock();
        let unknown = || WireFault::new(404, format!("No such upload: {id}"));
        let upload = all.get_mut(&id).ok_or_else(unknown)?;
        if header("x-goog-upload-offset").parse() != Ok(upload.content.len()) {
            return Err(WireFault::bad("The offset is not where the upload is."));
        }
        upload.content = [&upload.content[..], &call.bytes[..]].concat().into();
        if !commands.contains(&"finalize") {
            return Ok(status("active"));
        }
        let Object { described, content, .. } = all.remove(&id).ok_or_else(unknown)?;
        drop(all);
        Ok(self.keep_google(&described["file"], content, call.serial).with(STATUS, "final".into()))
    }

    fn keep_google(&self, meta: &Value, content: Bytes, serial: u64) -> StagedAnswer {
        let own = meta["name"].as_str().and_then(|name| name.strip_prefix("files/"));
        let id = own.map_or_else(|| format!("f-mock{serial:06}"), str::to_owned);
        let described = file(&id, meta, content.len(), "UPLOADED");
        let answer = StagedAnswer::json(FORMAT, &json!({"file": described}));
        let object = Object { described, content, ended: None, calls: 0 };
        self.0.lock().insert(id, object);
        answer
    }

    /// What a deletion or a cancellation answers.
    pub(super) fn google_done(rest: &str, method: &Method) -> Option<StagedAnswer> {
        let has_answer = rest == "cancel" || *method == Method::DELETE;
        has_answer.then(|| StagedAnswer::json(FORMAT, &json!({})))
    }

    pub(super) fn google_batch(
        &self,
        model: &str,
        action: &str,
        call: HeldCall<'_>,
    ) -> Result<StagedAnswer, WireFault> {
        let body: Value = serde_json::from_slice(call.bytes)
            .map_err(|error| WireFault::bad(error.to_string()))?;
        let batch = &body["batch"];
        let member = |of: &Value, one: &str, other: &str| match &of[one] {
            Value::Null => of[other].clone(),
            value => value.clone(),
        };
        let input = member(batch, "inputConfig", "input_config");
        let file = member(&input, "fileName", "file_name");
        let requests = match file.as_str() {
            None => input["requests"]["requests"].as_array().cloned().unwrap_or_default(),
            Some(name) => self.lines_of(name)?,
        };
        if requests.is_empty() {
            return Err(WireFault::bad("At least one request is required."));
        }
        let results: Vec<_> =
            requests.iter().map(|one| self.google_result((model, action), one, call)).collect();
        let id = format!("b-mock{:06}", call.serial);
        let output = match file.is_string() {
            false => json!({"inlinedResponses": {"inlinedResponses": results}}),
            true => self.results_file(&results, call.serial),
        };
        let count = requests.len().to_string();
        let begun = json!({
            "name": format!("batches/{id}"),
            "metadata": {
                "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
                "name": format!("batches/{id}"), "model": format!("models/{model}"),
                "displayName": member(batch, "displayName", "display_name"),
                "createTime": AT, "updateTime": AT, "state": "BATCH_STATE_PENDING",
                "batchStats": {"requestCount": count, "pendingRequestCount": count},
            },
        });
        let mut ended = begun.clone();
        (ended["done"], ended["metadata"]["endTime"]) = (true.into(), AT.into());
        match call.directive.background_fails {
            true => {
                ended["metadata"]["state"] = "BATCH_STATE_FAILED".into();
                ended["error"] = json!({"code": 13, "message": "The mock failed."});
            }
            false => {
                ended["metadata"]["state"] = "BATCH_STATE_SUCCEEDED".into();
                ended["metadata"]["batchStats"] =
                    json!({"requestCount": count, "successfulRequestCount": count});
                ended["metadata"]["output"] = output.clone();
                ended["response"] = output;
            }
        }
        let answer = StagedAnswer::json(FORMAT, &begun);
        self.open(id, begun, ended, Bytes::new(), call.directive);
        Ok(answer)
    }

    fn results_file(&self, results: &[Value], serial: u64) -> Value {
        let made = format!("batch-mock{serial:06}");
        let lines: String = results.iter().map(|line| format!("{line}\n")).collect();
        let described = file_made(&made, &json!({"mimeType": "application/jsonl"}), lines.len());
        let object = Object { described, content: lines.into(), ended: None, calls: 0 };
        self.0.lock().insert(made.clone(), object);
        json!({"responsesFile": format!("files/{made}")})
    }

    fn lines_of(&self, name: &str) -> Result<Vec<Value>, WireFault> {
        let id = name.strip_prefix("files/").unwrap_or(name);
        let content = self.0.lock().get(id).map(|object| object.content.clone());
        let content =
            content.ok_or_else(|| WireFault::new(404, format!("No such file: {name}")))?;
        let lines =
            content.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines
            .map(|line| {
                serde_json::from_slice(line).map_err(|error| WireFault::bad(error.to_string()))
            })
            .collect()
    }

    fn google_result(
        &self,
        (model, action): (&str, &str),
        one: &Value,
        call: HeldCall<'_>,
    ) -> Value {
        let mut request = one["request"].clone();
        if let Some(members) = request.as_object_mut() {
            members.remove("model");
        }
        let path = format!("/v1beta/models/{model}:{action}");
        let (status, mut reply) = self.alone(&path, &request, call);
        if let (google::EMBED, Some(usage)) = (action, call.directive.usage) {
            reply["tokenCount"] = Usage::from(usage).total_input().to_string().into();
        }
        let mut result = match status {
            200 => json!({"response": reply}),
            _ => json!({"error": reply["error"]}),
        };
        for member in ["key", "metadata"] {
            if !one[member].is_null() {
                result[member] = one[member].clone();
            }
        }
        result
    }
}

const STATUS: &str = "x-goog-upload-status";

fn status(status: &str) -> StagedAnswer {
    StagedAnswer::whole(FORMAT, 200, Bytes::new()).with(STATUS, status.to_owned())
}

fn file_made(id: &str, meta: &Value, bytes: usize) -> Value {
    let mut made = file(id, meta, bytes, "GENERATED");
    made["downloadUri"] =
        format!("https://mock.invalid/v1beta/files/{id}:download?alt=media").into();
    made
}

fn file(id: &str, meta: &Value, bytes: usize, source: &str) -> Value {
    let own = |one: &str, other: &str| meta.get(one).or_else(|| meta.get(other)).cloned();
    json!({
        "name": format!("files/{id}"), "displayName": own("displayName", "display_name"),
        "mimeType": own("mimeType", "mime_type"), "sizeBytes": bytes.to_string(),
        "createTime": AT, "updateTime": AT, "expirationTime": "2026-12-01T10:00:00Z",
        "sha256Hash": "bW9jaw==", "uri": format!("https://mock.invalid/v1beta/files/{id}"),
        "state": "ACTIVE", "source": source,
    })
}

/// The two parts of a `multipart/related` body: JSON, and the content.
fn related(body: &[u8], content_type: &str) -> Result<(Value, Bytes), WireFault> {
    let bad = || WireFault::bad("a body of two parts is expected");
    let (_, boundary) = content_type.split_once("boundary=").ok_or_else(bad)?;
    let boundary = format!("--{}", boundary.trim_matches('"'));
    let text = String::from_utf8_lossy(body);
    let parts: Vec<_> =
        text.split(&*boundary).filter_map(|part| part.split_once("\r\n\r\n")).collect();
    let [(_, meta), (_, content)] = &parts[..] else { return Err(bad()) };
    let meta = serde_json::from_str(meta.trim()).map_err(|_| bad())?;
    let content = content.strip_suffix("\r\n").unwrap_or(content);
    Ok((meta, Bytes::copy_from_slice(content.as_bytes())))
}
