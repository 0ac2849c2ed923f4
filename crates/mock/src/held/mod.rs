//! Batches and files, in the exact shapes of Anthropic and OpenAI. Each request of a batch is
//! answered when the batch is made, as it would be alone; the results are given out once some calls
//! have asked for the batch.

mod google;

use std::collections::HashMap;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::ask;
use super::directive::{self, Directive};
use super::path::{self, MockOperation, Route};
use super::stage::{self, StagedAnswer};
use super::wire::{CREATED, WireFault};
use tollgate_formats::domain::endpoint::Unit;
use tollgate_formats::domain::format::WireFormat;
use tollgate_formats::formats::batch::google as google_batches;
use tollgate_formats::formats::form;
use tollgate_formats::formats::route::{Collection, FILES, MESSAGE_BATCHES, NATIVE_FILES};

/// Those of one instance, by their ids.
#[derive(Debug, Default)]
pub(super) struct HeldObjects(Mutex<HashMap<String, Object>>);

#[derive(Debug, Clone)]
struct Object {
    /// As it is described now.
    described: Value,
    /// Of a file its content, of a batch of Anthropic's its results.
    content: Bytes,
    /// Of a batch: as it is described once it has ended, and the calls until then.
    ended: Option<Value>,
    calls: usize,
}

/// One call.
#[derive(Clone, Copy)]
pub(super) struct HeldCall<'a> {
    pub parts: &'a Parts,
    pub bytes: &'a Bytes,
    pub directive: &'a Directive,
    pub serial: u64,
}

impl HeldObjects {
    /// The answer to a call about a batch or a file, or to one that makes it; `None` for any other.
    pub(super) fn answer(&self, route: &Route, call: HeldCall<'_>) -> Option<StagedAnswer> {
        let collection = match &route.operation {
            MockOperation::Held(collection, ..) => collection,
            MockOperation::Endpoint(endpoint) => Collection::made_by(endpoint)?,
            _ => return None,
        };
        let is_native_file =
            *collection == FILES && call.parts.headers.contains_key("anthropic-version");
        let collection = if is_native_file { &NATIVE_FILES } else { collection };
        let format = collection.format;
        if let Some(scripted) = stage::scripted(format, call.directive, false) {
            return Some(scripted);
        }
        let answered = match &route.operation {
            MockOperation::Held(_, id, rest) => self.about(collection, id, rest, call.parts),
            _ if call.parts.method == Method::GET => Ok(self.list(collection)),
            MockOperation::Endpoint(endpoint) if endpoint.is_upload() => self.google_upload(call),
            MockOperation::Endpoint(endpoint) if endpoint.unit == Unit::Free => {
                self.upload(call, is_native_file)
            }
            _ if format == WireFormat::Native => self.message_batch(call),
            MockOperation::Endpoint(endpoint) if format == WireFormat::AltCli => {
                let model = route.model.as_deref().unwrap_or_default();
                self.google_batch(model, google_batches::action_of(endpoint), call)
            }
            _ => self.batch(call),
        };
        Some(answered.unwrap_or_else(|fault| StagedAnswer::fault(format, &fault)))
    }

    fn about(
        &self,
        collection: &'static Collection,
        id: &str,
        rest: &str,
        parts: &Parts,
    ) -> Result<StagedAnswer, WireFault> {
        let format = collection.format;
        let mut all = self.0.lock();
        let object =
            all.get_mut(id).ok_or_else(|| WireFault::new(404, format!("No such object: {id}")))?;
        if let Some(ended) = &object.ended {
            let is_cancelled = rest == "cancel";
            if object.calls == 0 || is_cancelled {
                object.described = ended.clone();
                object.ended = None;
            }
            object.calls = object.calls.saturating_sub(1);
        }
        let object = object.clone();
        if parts.method == Method::DELETE {
            all.remove(id);
        }
        if format == WireFormat::AltCli
            && let Some(done) = Self::google_done(rest, &parts.method)
        {
            return Ok(done);
        }
        if parts.method == Method::DELETE {
            let deleted = match collection.name {
                "files" => json!({"id": id, "object": "file", "deleted": true}),
                "native_files" => json!({"id": id, "type": "file_deleted"}),
                _ => json!({"id": id, "type": "message_batch_deleted"}),
            };
            return Ok(StagedAnswer::json(format, &deleted));
        }
        if matches!(rest, "content" | "results" | "download") {
            if object.ended.is_some() {
                return Err(WireFault::bad("The batch has not ended."));
            }
            let lines = StagedAnswer::whole(format, 200, object.content);
            let content_type = match rest {
                "results" => "application/x-jsonl",
                _ => "application/octet-stream",
            };
            return Ok(StagedAnswer { content_type, ..lines });
        }
        Ok(StagedAnswer::json(format, &object.described))
    }

    fn list(&self, collection: &Collection) -> StagedAnswer {
        let all = self.0.lock();
        let start = if *collection == FILES { "file-" } else { "batch_" };
        let data: Vec<_> = all.iter().filter(|(id, _)| id.starts_with(start)).collect();
        let data: Vec<_> = data.into_iter().map(|(_, object)| &object.described).collect();
        StagedAnswer::json(collection.format, &json!({"object": "list", "data": data}))
    }

    fn keep(&self, described: Value, content: Bytes) -> StagedAnswer {
        let answer = StagedAnswer::json(WireFormat::Chat, &described);
        let id = described["id"].as_str().unwrap_or_default().to_owned();
        let object = Object { described, content, ended: None, calls: 0 };
        self.0.lock().insert(id, object);
        answer
    }

    fn upload(&self, call: HeldCall<'_>, is_native: bool) -> Result<StagedAnswer, WireFault> {
        let kind = call.parts.headers.get("content-type").and_then(|value| value.to_str().ok());
        let boundary = kind.and_then(form::boundary);
        let boundary = boundary.ok_or_else(|| WireFault::new(415, "a form is expected"))?;
        let read = form::read(std::slice::from_ref(call.bytes), &boundary)
            .map_err(|error| WireFault::bad(error.message))?;
        if is_native {
            let described = json!({
                "id": format!("file_mock{:06}", call.serial), "type": "file", "filename": "a.txt",
                "mime_type": "text/plain", "size_bytes": read.file.len(),
                "created_at": "2026-11-29T10:00:00Z", "downloadable": false,
            });
            return Ok(self.keep(described, call.bytes.slice(read.file)));
        }
        let purpose = read.fields.get("purpose").cloned();
        let purpose = purpose.ok_or_else(|| WireFault::bad("'purpose' is a required property"))?;
        Ok(self.keep(
            file(&format!("file-mock{:06}", call.serial), read.file.len(), &purpose),
            call.bytes.slice(read.file),
        ))
    }

    fn message_batch(&self, call: HeldCall<'_>) -> Result<StagedAnswer, WireFault> {
        let body: Value = serde_json::from_slice(call.bytes)
            .map_err(|error| WireFault::bad(error.to_string()))?;
        let requests = body["requests"].as_array().filter(|all| !all.is_empty());
        let requests = requests.ok_or_else(|| WireFault::bad("requests: Field required"))?;
        let mut counts = json!({
            "processing": 0, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0,
        });
        let mut results = String::new();
        for request in requests {
            let params = &request["params"];
            let (status, reply) = self.alone("/v1/messages", params, call);
            let result = match (call.directive.background_fails, status) {
                (true, _) => json!({"type": "expired"}),
                (_, 200) => {
                    let mut message = reply;
                    message["usage"]["service_tier"] = "batch".into();
                    json!({"type": "succeeded", "message": message})
                }
                _ => json!({"type": "errored", "error": reply}),
            };
            let kind = result["type"].as_str().unwrap_or_default();
            counts[kind] = (counts[kind].as_u64().unwrap_or_default() + 1).into();
            let line = json!({"custom_id": request["custom_id"], "result": result});
            results.push_str(&format!("{line}\n"));
        }
        let id = format!("msgbatch_mock{:06}", call.serial);
        let mut described = json!({
            "id": id, "type": "message_batch", "processing_status": "in_progress",
            "request_counts": {
                "processing": requests.len(), "succeeded": 0, "errored": 0, "canceled": 0,
                "expired": 0,
            },
            "ended_at": null, "created_at": "2026-11-29T10:00:00Z",
            "expires_at": "2026-11-30T10:00:00Z", "archived_at": null,
            "cancel_initiated_at": null, "results_url": null,
        });
        let answer = StagedAnswer::json(WireFormat::Native, &described);
        let begun = described.clone();
        described["processing_status"] = "ended".into();
        described["request_counts"] = counts;
        described["ended_at"] = "2026-11-29T10:05:00Z".into();
        let path = MESSAGE_BATCHES.path;
        described["results_url"] = format!("https://mock.invalid{path}/{id}/results").into();
        self.open(id, begun, described, results.into(), call.directive);
        Ok(answer)
    }

    fn open(&self, id: String, begun: Value, ended: Value, content: Bytes, directive: &Directive) {
        let calls = directive.background_calls.unwrap_or(2);
        let object = Object { described: begun, content, ended: Some(ended), calls };
        self.0.lock().insert(id, object);
    }

    fn batch(&self, call: HeldCall<'_>) -> Result<StagedAnswer, WireFault> {
        let body: Value = serde_json::from_slice(call.bytes)
            .map_err(|error| WireFault::bad(error.to_string()))?;
        let input = body["input_file_id"].as_str().unwrap_or_default();
        let file_of = self.0.lock().get(input).map(|object| object.content.clone());
        let lines =
            file_of.ok_or_else(|| WireFault::new(404, format!("No such File object: {input}")))?;
        let (mut results, mut errors, mut counts) = (String::new(), String::new(), [0_u64; 2]);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
        {
            let line: Value =
                serde_json::from_slice(line).map_err(|error| WireFault::bad(error.to_string()))?;
            let url = line["url"].as_str().unwrap_or_default();
            let (status, reply) = self.alone(url, &line["body"], call);
            let response = json!({"status_code": status, "request_id": "req", "body": reply});
            let done = json!({
                "id": "batch_req_mock", "custom_id": line["custom_id"], "response": response,
                "error": null,
            });
            let is_done = status == 200;
            counts[usize::from(!is_done)] += 1;
            let out = if is_done { &mut results } else { &mut errors };
            out.push_str(&format!("{done}\n"));
        }
        let id = format!("batch_mock{:06}", call.serial);
        let begun = json!({
            "id": id, "object": "batch", "endpoint": body["endpoint"], "errors": null,
            "input_file_id": input, "completion_window": body["completion_window"],
            "status": "validating", "output_file_id": null, "error_file_id": null,
            "created_at": CREATED, "in_progress_at": null, "expires_at": CREATED + 86_400,
            "finalizing_at": null, "completed_at": null, "failed_at": null, "expired_at": null,
            "cancelling_at": null, "cancelled_at": null, "metadata": body["metadata"],
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
        });
        let mut ended = begun.clone();
        ended["status"] = "failed".into();
        if !call.directive.background_fails {
            ended["status"] = "completed".into();
            ended["completed_at"] = (CREATED + 60).into();
            let [completed, failed] = counts;
            ended["request_counts"] =
                json!({"total": completed + failed, "completed": completed, "failed": failed});
            let files = [("output_file_id", "out", results), ("error_file_id", "err", errors)];
            for (member, name, lines) in files.into_iter().filter(|(.., lines)| !lines.is_empty()) {
                let made = format!("file-{name}{:06}", call.serial);
                ended[member] = (*made).into();
                self.keep(file(&made, lines.len(), &"batch_output".into()), lines.into());
            }
        }
        let answer = StagedAnswer::json(WireFormat::Chat, &begun);
        self.open(id, begun, ended, Bytes::new(), call.directive);
        Ok(answer)
    }

    /// What a request of a batch would be answered with alone: the status, and the JSON.
    fn alone(&self, url: &str, body: &Value, call: HeldCall<'_>) -> (u16, Value) {
        let Some(route) = path::own(url) else { return (404, Value::Null) };
        let mut asked = ask::read(&route, body);
        let own = match directive::from_text(&asked.user_text) {
            Ok((layer, text)) => {
                asked.user_text = text;
                layer.and_then(|layer| directive::merge(vec![layer]).ok())
            }
            Err(_) => None,
        };
        let directive = own.as_ref().unwrap_or(call.directive);
        let (parts, serial) = (call.parts, call.serial);
        let answer = stage::answer(&route, directive, parts, Ok(body.clone()), &asked, serial);
        let text = answer.pieces.concat();
        (answer.status, serde_json::from_slice(&text).unwrap_or_default())
    }
}

fn file(id: &str, bytes: usize, purpose: &Value) -> Value {
    json!({
        "id": id, "object": "file", "bytes": bytes, "created_at": CREATED, "expires_at": null,
        "filename": "requests.jsonl", "purpose": purpose, "status": "processed",
        "status_details": null,
    })
}
