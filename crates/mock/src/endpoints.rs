//! The endpoints beside the replies, in the exact shapes of the services: embeddings, images, sound,
//! reranking and others.
//!
//! Figures follow the request, unless a directive gives or withholds them. What is made is small and
//! the same each time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::request::Parts;
use serde_json::{Map, Value, json};

use super::ask::letters;
use super::directive::Directive;
use super::stage::StagedAnswer;
use super::wire::{CREATED, WireFault, sse};
use tollgate_formats::domain::endpoint::{ApiEndpoint, EndpointBody};
use tollgate_formats::domain::format::WireFormat;
use tollgate_formats::domain::usage::Usage;
use tollgate_formats::formats::form;

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
/// The head of an MP3 frame, repeated for the length of the sound.
const SOUND: [u8; 4] = [0xff, 0xfb, 0x90, 0x64];
/// Bytes of sound for each character.
const SOUND_PER_CHARACTER: usize = 64;
/// Numbers of an embedding, if the request names no number.
const DIMENSIONS: u64 = 8;
const LETTERS_PER_TOKEN: u64 = 4;

/// The body of a request as JSON: a form's fields, with `true` for each file.
pub(super) fn body(
    endpoint: &ApiEndpoint,
    parts: &Parts,
    bytes: &Bytes,
) -> Result<Value, WireFault> {
    if endpoint.body == EndpointBody::Any {
        return Ok(Value::Null);
    }
    if endpoint.body == EndpointBody::Json {
        let json = serde_json::from_slice(bytes);
        return json
            .map_err(|_| WireFault::bad("We could not parse the JSON body of your request"));
    }
    let kind = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
    let Some(boundary) = kind.and_then(form::boundary) else {
        return Err(WireFault::new(
            415,
            "Unsupported content type: multipart/form-data is expected",
        ));
    };
    let form = form::read(std::slice::from_ref(bytes), &boundary)
        .map_err(|e| WireFault::bad(format!("Could not parse multipart form: {e}")))?;
    let mut fields = form.fields;
    if form.file_bytes > 0 {
        fields.insert("file".to_owned(), form.file_bytes.into());
    }
    Ok(Value::Object(fields))
}

/// The members that a request must have.
fn required(endpoint: &ApiEndpoint) -> &'static [&'static str] {
    match endpoint.name {
        "embeddings" => &["model", "input"],
        "embed_content" => &["content"],
        "batch_embed_contents" => &["requests"],
        "rerank" => &["model", "query", "documents"],
        "moderations" => &["input"],
        "completions" | "image_generation" => &["model", "prompt"],
        "image_edit" => &["model", "prompt", "file"],
        "image_variation" => &["file"],
        "predict" => &["instances"],
        "speech" => &["model", "input", "voice"],
        "transcription" | "translation" => &["model", "file"],
        _ => &["model"],
    }
}

/// The answer to a request with a valid credential.
pub(super) fn answer(
    endpoint: &ApiEndpoint,
    model: &str,
    body: &Value,
    directive: &Directive,
) -> StagedAnswer {
    let format = endpoint.format;
    if let Some(missing) = required(endpoint).iter().find(|name| body[**name].is_null()) {
        let fault = WireFault::bad(format!("Missing required parameter: '{missing}'."));
        return StagedAnswer::fault(format, &fault);
    }
    let told = Told { model, body, usage: usage(body, directive) };
    match endpoint.name {
        "embeddings" => StagedAnswer::json(format, &told.embeddings()),
        "embed_content" => StagedAnswer::json(format, &told.google_embedding()),
        "batch_embed_contents" => StagedAnswer::json(format, &told.google_embeddings()),
        "rerank" => StagedAnswer::json(format, &told.ranks()),
        "moderations" => StagedAnswer::json(format, &told.moderation()),
        "completions" => told.completion(),
        "predict" => {
            let count = body["parameters"]["sampleCount"].as_u64().unwrap_or(1);
            let image = json!({"mimeType": "image/png", "bytesBase64Encoded": PNG});
            let images = vec![image; usize::try_from(count).unwrap_or(1)];
            StagedAnswer::json(format, &json!({"predictions": images}))
        }
        "speech" => told.speech(),
        "transcription" => told.transcription(),
        "translation" => StagedAnswer::json(format, &json!({"text": TRANSCRIPT})),
        "compact" => StagedAnswer::json(format, &told.compaction()),
        name => told.images(name),
    }
}

const TRANSCRIPT: &str = "This is a mock recording.";

/// The tokens: of the directive, none, or by the letters of the request.
fn usage(body: &Value, directive: &Directive) -> Option<Usage> {
    if directive.no_usage {
        return None;
    }
    let input = letters(body).div_ceil(LETTERS_PER_TOKEN).max(1);
    let own = Usage { input, output: 5, ..Usage::default() };
    Some(directive.usage.map_or(own, Usage::from))
}

/// What an answer is made from.
struct Told<'b> {
    model: &'b str,
    body: &'b Value,
    usage: Option<Usage>,
}

impl Told<'_> {
    /// Adds the usage, if it is reported.
    fn with_usage(&self, mut answer: Value, written: impl Fn(Usage) -> Value) -> Value {
        if let (Some(usage), Value::Object(members)) = (self.usage, &mut answer) {
            members.insert("usage".to_owned(), written(usage));
        }
        answer
    }

    fn vector(dimensions: &Value) -> Vec<f32> {
        let count = dimensions.as_u64().unwrap_or(DIMENSIONS);
        (0..u16::try_from(count).unwrap_or(u16::MAX)).map(f32::from).collect()
    }

    fn embeddings(&self) -> Value {
        let input = &self.body["input"];
        // A list of numbers is one text.
        let count = input.as_array().filter(|list| !list.iter().all(Value::is_u64));
        let count = count.map_or(1, Vec::len);
        let vector = Self::vector(&self.body["dimensions"]);
        let embedding = match self.body["encoding_format"].as_str() {
            Some("base64") => {
                let bytes: Vec<u8> =
                    vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                json!(STANDARD.encode(bytes))
            }
            _ => json!(vector),
        };
        let item = |index| json!({"object": "embedding", "index": index, "embedding": embedding});
        let data: Vec<Value> = (0..count).map(item).collect();
        let answer = json!({"object": "list", "data": data, "model": self.model});
        self.with_usage(answer, |usage| {
            let tokens = usage.total_input();
            json!({"prompt_tokens": tokens, "total_tokens": tokens})
        })
    }

    fn google_embedding(&self) -> Value {
        json!({"embedding": {"values": Self::vector(&self.body["outputDimensionality"])}})
    }

    fn google_embeddings(&self) -> Value {
        let requests = self.body["requests"].as_array().map_or(&[][..], Vec::as_slice);
        let one =
            |request: &Value| json!({"values": Self::vector(&request["outputDimensionality"])});
        json!({"embeddings": requests.iter().map(one).collect::<Vec<_>>()})
    }

    fn ranks(&self) -> Value {
        let count = self.body["documents"].as_array().map_or(0, Vec::len);
        let top = self.body["top_n"].as_u64().and_then(|top| usize::try_from(top).ok());
        let score = |index: usize| json!({"index": index, "relevance_score": 0.5});
        let results: Vec<Value> = (0..count.min(top.unwrap_or(count))).map(score).collect();
        let mut answer = json!({"id": "rerank-mock", "results": results});
        if self.usage.is_some() {
            answer["meta"] = json!({
                "api_version": {"version": "2"}, "billed_units": {"search_units": 1},
            });
        }
        answer
    }

    fn moderation(&self) -> Value {
        let result = json!({
            "flagged": false, "categories": {"violence": false},
            "category_scores": {"violence": 0.01},
            "category_applied_input_types": {"violence": ["text"]},
        });
        json!({"id": "modr-mock", "model": self.model, "results": [result]})
    }

    fn completion(&self) -> StagedAnswer {
        let text = format!("This is {}, the mock model.", self.model);
        let chunk = |text: &str, finish: Value| {
            let choice =
                json!({"text": text, "index": 0, "logprobs": null, "finish_reason": finish});
            json!({
                "id": "cmpl-mock", "object": "text_completion", "created": CREATED,
                "model": self.model, "choices": [choice],
            })
        };
        let written = |usage: Usage| {
            let (input, output) = (usage.total_input(), usage.output);
            let total = input + output;
            json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": total})
        };
        if self.body["stream"] != true {
            let whole = self.with_usage(chunk(&text, json!("stop")), written);
            return StagedAnswer::json(WireFormat::Chat, &whole);
        }
        let mut events = vec![chunk(&text, Value::Null), chunk("", json!("stop"))];
        if self.body["stream_options"]["include_usage"] == true {
            let mut last = chunk("", Value::Null);
            last["choices"] = json!([]);
            events.push(self.with_usage(last, written));
        }
        let mut events: Vec<String> =
            events.iter().map(|event| format!("data: {event}\n\n")).collect();
        events.push("data: [DONE]\n\n".to_owned());
        StagedAnswer::stream(WireFormat::Chat, events)
    }

    fn images(&self, name: &str) -> StagedAnswer {
        let count = self.body["n"].as_u64().unwrap_or(1);
        let written = |usage: Usage| {
            let (input, output) = (usage.total_input(), usage.output);
            let images = usage.image_input;
            json!({
                "total_tokens": input + output, "input_tokens": input, "output_tokens": output,
                "input_tokens_details": {"text_tokens": input - images, "image_tokens": images},
            })
        };
        if self.body["stream"] == true {
            let name = if name == "image_edit" { "image_edit" } else { "image_generation" };
            let partial = format!("{name}.partial_image");
            let first = json!({"type": partial, "b64_json": PNG, "partial_image_index": 0});
            let end = format!("{name}.completed");
            let last = self.with_usage(json!({"type": end, "b64_json": PNG}), written);
            let mut events = vec![sse(&partial, &first)];
            events.extend((0..count).map(|_| sse(&end, &last)));
            return StagedAnswer::stream(WireFormat::Chat, events);
        }
        let images = vec![json!({"b64_json": PNG}); usize::try_from(count).unwrap_or(1)];
        let answer = json!({"created": CREATED, "data": images});
        StagedAnswer::json(WireFormat::Chat, &self.with_usage(answer, written))
    }

    fn speech(&self) -> StagedAnswer {
        let spoken = self.body["input"].as_str().unwrap_or_default().chars().count();
        let sound: Vec<u8> =
            SOUND.iter().copied().cycle().take(spoken * SOUND_PER_CHARACTER).collect();
        if self.body["stream_format"] != "sse" {
            let whole = StagedAnswer::whole(WireFormat::Chat, 200, sound);
            return StagedAnswer { content_type: "audio/mpeg", ..whole };
        }
        let delta = json!({"type": "speech.audio.delta", "audio": STANDARD.encode(sound)});
        let done = self.with_usage(json!({"type": "speech.audio.done"}), both);
        let events = [delta, done].iter().map(|event| format!("data: {event}\n\n")).collect();
        StagedAnswer::stream(WireFormat::Chat, events)
    }

    fn transcription(&self) -> StagedAnswer {
        if self.body["response_format"] == "text" {
            let whole = StagedAnswer::whole(WireFormat::Chat, 200, format!("{TRANSCRIPT}\n"));
            return StagedAnswer { content_type: "text/plain; charset=utf-8", ..whole };
        }
        // The oldest model is charged by time.
        let by_time = self.model.starts_with("whisper");
        let written = |usage: Usage| match by_time {
            true => json!({"type": "duration", "seconds": 7}),
            false => both(usage),
        };
        if self.body["stream"] == true {
            let delta = json!({"type": "transcript.text.delta", "delta": TRANSCRIPT});
            let done = json!({"type": "transcript.text.done", "text": TRANSCRIPT});
            let events = [delta, self.with_usage(done, written)];
            let events = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            return StagedAnswer::stream(WireFormat::Chat, events);
        }
        let answer = self.with_usage(json!({"text": TRANSCRIPT}), written);
        StagedAnswer::json(WireFormat::Chat, &answer)
    }

    fn compaction(&self) -> Value {
        let message = json!({
            "id": "msg_mock", "type": "message", "status": "completed", "role": "user",
            "content": [{"type": "input_text", "text": "kept"}],
        });
        let sealed =
            json!({"id": "cmp_mock", "type": "compaction", "encrypted_content": "c2VhbGVk"});
        let answer = json!({
            "id": "resp_mock", "object": "response.compaction", "created_at": CREATED,
            "output": [message, sealed],
        });
        self.with_usage(answer, |usage| {
            let (input, output) = (usage.total_input(), usage.output);
            json!({
                "input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cache_read},
                "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + output,
            })
        })
    }
}

/// Tokens of sound and text.
fn both(usage: Usage) -> Value {
    let (input, output) = (usage.total_input(), usage.output);
    let mut details = Map::new();
    details.insert("text_tokens".to_owned(), (input - usage.audio_input).into());
    details.insert("audio_tokens".to_owned(), usage.audio_input.into());
    json!({
        "type": "tokens", "input_tokens": input, "input_token_details": details,
        "output_tokens": output, "total_tokens": input + output,
    })
}
