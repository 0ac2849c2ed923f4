//! Reads the requests of a batch where they lie: in a body of Anthropic's form, or in the lines of
//! a file of OpenAI's form ([`google`] has Google's). Each is peeked at as a request of its own.

pub mod google;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use bytes::Bytes;
use memchr::memchr_iter;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::bad_request::BadRequest;
use super::peek::{self, Peek, PeekLimits};
use super::route::{self, MESSAGE_BATCHES};
use super::{count, edit};
use crate::domain::batch::{BatchAsk, BatchFeature, BatchGroup};
use crate::domain::endpoint::ApiEndpoint;
use crate::domain::format::WireFormat;
use crate::domain::named_model::NamedModel;

/// The most models of one batch.
const MOST_MODELS: usize = 64;
/// The most groups of one batch.
const MOST_GROUPS: usize = 1_000;
/// At this level groups differ only in the model, and in whether the output has a bound.
const COARSEST: u32 = 4;
/// What names a further model or a feature of a batch.
const MODELS: &str = "a request of the batch";
/// The paths that lines may name, and the form of their bodies.
const PATHS: [(&str, WireFormat); 5] = [
    ("/v1/chat/completions", WireFormat::Chat),
    ("/v1/responses", WireFormat::Responses),
    ("/v1/embeddings", WireFormat::Chat),
    ("/v1/completions", WireFormat::Chat),
    ("/v1/moderations", WireFormat::Chat),
];

/// A batch that was read.
#[derive(Debug)]
pub struct BatchRequests {
    /// What it asks for.
    pub ask: BatchAsk,
    /// The model of the first request, the other models and the features of all, as if one request
    /// had them.
    pub peek: Box<Peek>,
    /// Where each request's own body is.
    pub bodies: Vec<Range<usize>>,
    /// Where the first model's name is, in each request that has it: with its quotes.
    pub names: Vec<Range<usize>>,
}

/// The body of a request for a batch of messages.
#[derive(Deserialize)]
struct MessageBatch<'b> {
    #[serde(borrow)]
    requests: Vec<MessageRequest<'b>>,
}

#[derive(Deserialize)]
struct MessageRequest<'b> {
    #[serde(borrow)]
    custom_id: Cow<'b, str>,
    #[serde(borrow)]
    params: &'b RawValue,
}

/// A line of a file for a batch.
#[derive(Deserialize)]
struct Line<'b> {
    #[serde(borrow)]
    custom_id: Cow<'b, str>,
    #[serde(borrow)]
    url: Cow<'b, str>,
    #[serde(borrow)]
    body: &'b RawValue,
}

/// Reads a batch of messages, given as one piece.
///
/// # Errors
/// When it is no such batch, is empty, or a request of it cannot be read; that one is named.
pub fn of_messages(body: &Bytes, limits: PeekLimits) -> Result<BatchRequests, BadRequest> {
    let batch: MessageBatch<'_> =
        serde_json::from_slice(body).map_err(|e| BadRequest::whole(&e.to_string()))?;
    let mut reading = Reading::new("/v1/messages", WireFormat::Native, limits);
    for MessageRequest { custom_id, params } in batch.requests {
        let at = params.get().as_ptr().addr() - body.as_ptr().addr();
        reading.add(&custom_id, body.slice(at..at + params.get().len()), at)?;
    }
    reading.finish()
}

/// Reads the lines of a file, which is a range of a form given as its chunks.
///
/// # Errors
/// When there is none, when they name different paths or one that has no batches, or one of them
/// cannot be read.
pub fn of_lines(
    chunks: &[Bytes],
    file: Range<usize>,
    limits: PeekLimits,
) -> Result<BatchRequests, BadRequest> {
    let mut reading: Option<Reading> = None;
    each_line(chunks, file, |text, start| line(&mut reading, text, start, limits))?;
    reading.ok_or_else(|| BadRequest::field("file", "it has no requests"))?.finish()
}

/// Gives out each line of a file that is not empty, and where it begins.
fn each_line(
    chunks: &[Bytes],
    file: Range<usize>,
    mut take: impl FnMut(&[u8], usize) -> Result<(), BadRequest>,
) -> Result<(), BadRequest> {
    let mut take = |text: &[u8], start| match text.trim_ascii().is_empty() {
        true => Ok(()),
        false => take(text, start),
    };
    let (mut start, mut begun) = (file.start, Vec::new());
    for slice in edit::slices(chunks, file) {
        let mut from = 0;
        for end in memchr_iter(b'\n', slice) {
            begun.extend_from_slice(&slice[from..end]);
            take(&begun, start)?;
            start += begun.len() + 1;
            begun.clear();
            from = end + 1;
        }
        begun.extend_from_slice(&slice[from..]);
    }
    take(&begun, start)
}

fn line(
    reading: &mut Option<Reading>,
    text: &[u8],
    start: usize,
    limits: PeekLimits,
) -> Result<(), BadRequest> {
    let number = || reading.as_ref().map_or(0, |reading| reading.bodies.len()) + 1;
    let bad = |why: &str| BadRequest::field(&format!("file, request {}", number()), why);
    let Line { custom_id, url, body } =
        serde_json::from_slice(text).map_err(|e| bad(&e.to_string()))?;
    let Some((path, format)) = PATHS.into_iter().find(|(path, _)| *path == url) else {
        return Err(bad("requests of this url have no batches here"));
    };
    if reading.as_ref().is_some_and(|reading| reading.ask.path != path) {
        return Err(bad("the url differs from that of the first request"));
    }
    let at = body.get().as_ptr().addr() - text.as_ptr().addr();
    let reading = reading.get_or_insert_with(|| Reading::new(path, format, limits));
    reading.add(&custom_id, Bytes::copy_from_slice(body.get().as_bytes()), start + at)
}

/// A description of a batch of Anthropic's whose address of the results is the path at this gateway:
/// clients follow it with the credential that they have for the gateway. `None` if it has none.
pub fn with_own_address(described: &[u8]) -> Option<Vec<u8>> {
    let mut described: Value = serde_json::from_slice(described).ok()?;
    described.get("results_url")?.as_str()?;
    let id = described["id"].as_str()?;
    let path = format!("{}/{id}{}", MESSAGE_BATCHES.path, route::RESULTS);
    described["results_url"] = path.into();
    Some(described.to_string().into_bytes())
}

/// The id of a batch or a file that a provider describes.
pub fn id_of(said: &Value) -> Option<&str> {
    said["id"].as_str().or_else(|| google::id_of(said.get("file").unwrap_or(said)))
}

/// A batch that is being read.
struct Reading {
    ask: BatchAsk,
    format: WireFormat,
    /// The model of all requests, if their path names it: a request may name it too.
    model: Option<String>,
    limits: PeekLimits,
    groups: Groups,
    peek: Box<Peek>,
    bodies: Vec<Range<usize>>,
    names: Vec<Range<usize>>,
}

impl Reading {
    fn new(path: &str, format: WireFormat, limits: PeekLimits) -> Self {
        let ask = BatchAsk { path: path.to_owned(), ..BatchAsk::default() };
        let (model, groups, peek, bodies, names) = Default::default();
        Self { ask, format, model, limits, groups, peek, bodies, names }
    }

    /// Adds a request: its own body, and where that begins.
    fn add(&mut self, custom_id: &str, body: Bytes, at: usize) -> Result<(), BadRequest> {
        let bad = |why: &str| BadRequest::field(&format!("request {custom_id}"), why);
        let own = peek::peek(&[body], self.limits).map_err(|e| bad(&e.message))?;
        let named = own.model.as_deref();
        let model = match &self.model {
            None => named.ok_or_else(|| bad("model: this field is required"))?,
            Some(model) => match named.map(google::plain_name) {
                Some(named) if named != model => {
                    return Err(bad("model: it differs from that of the path"));
                }
                _ => model,
            },
        };
        let models = &mut self.ask.models;
        let place = models.iter().position(|known| known == model).unwrap_or_else(|| {
            models.push(model.to_owned());
            models.len() - 1
        });
        if models.len() > MOST_MODELS {
            return Err(bad("a batch may name at most 64 models"));
        }
        if let (0, Some(span)) = (place, &own.model_span) {
            self.names.push(span.start + at..span.end + at);
        }
        self.bodies.push(at..at + own.body_len);
        let (max_tokens, choices) = own.output_bound(self.format);
        self.groups.add(BatchGroup {
            model: place,
            count: 1,
            input: count::from_peek(&own),
            input_bound: count::bound_from_peek(&own),
            max_tokens: max_tokens.map(|most| rounded(most, 0)),
            choices: rounded(choices, 0),
        });
        let Peek { named, features, .. } = &mut *self.peek;
        add_new(named, own.named);
        if named.len() > MOST_MODELS {
            return Err(bad("the requests of a batch may name at most 64 further models"));
        }
        // As for an endpoint's own members alone.
        if !ApiEndpoint::of(&self.ask.path).is_some_and(ApiEndpoint::has_units) {
            add_new(features, own.features);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<BatchRequests, BadRequest> {
        let Some((first, others)) = self.ask.models.split_first() else {
            return Err(BadRequest::field("requests", "a batch needs at least one"));
        };
        self.peek.model = Some(first.clone());
        self.ask.features = self.peek.features.iter().map(BatchFeature::from).collect();
        let (choices, named): (Vec<_>, Vec<_>) =
            self.peek.named.iter().partition(|named| named.is_providers_choice());
        self.ask.has_providers_choice = !choices.is_empty();
        self.ask.named = named.into_iter().map(|named| named.name.clone()).collect();
        self.peek.named.extend(others.iter().map(|name| of_batch(name)));
        self.ask.groups = self.groups.by_key.into_values().collect();
        let Self { ask, peek, bodies, names, .. } = self;
        Ok(BatchRequests { ask, peek, bodies, names })
    }
}

/// What is checked of the requests of a file, once a batch is made of it.
pub fn peek_of(ask: &BatchAsk) -> Peek {
    let choice =
        NamedModel { member: NamedModel::FALLBACKS, name: NamedModel::PROVIDERS_CHOICE.to_owned() };
    let named = ask.models.iter().skip(1).chain(&ask.named).map(|name| of_batch(name));
    let mut peek = Peek::default();
    peek.model = ask.models.first().cloned();
    peek.named = named.chain(ask.has_providers_choice.then_some(choice)).collect();
    peek.features = ask.features.iter().filter_map(|one| one.used_by(MODELS)).collect();
    peek
}

fn of_batch(name: &str) -> NamedModel {
    NamedModel { member: MODELS, name: name.to_owned() }
}

fn add_new<T: PartialEq>(all: &mut Vec<T>, new: Vec<T>) {
    for one in new {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// The requests that were read so far, those that cost nearly the same together.
#[derive(Default)]
struct Groups {
    /// By model, bound of the output, answers, and length of the input.
    by_key: BTreeMap<(usize, Option<u64>, u64, u64), BatchGroup>,
    /// How coarse the key is: from 0 to [`COARSEST`].
    level: u32,
}

impl Groups {
    /// Adds requests. Too many groups become fewer: their reservation is then higher.
    fn add(&mut self, group: BatchGroup) {
        self.insert(group);
        while self.by_key.len() > MOST_GROUPS && self.level < COARSEST {
            self.level += 1;
            for group in std::mem::take(&mut self.by_key).into_values() {
                self.insert(group);
            }
        }
    }

    fn insert(&mut self, new: BatchGroup) {
        let at = |number| if self.level < COARSEST { rounded(number, self.level) } else { 0 };
        let each = |group: &BatchGroup| group.input.div_ceil(group.count);
        let key = (new.model, new.max_tokens.map(at), at(new.choices), at(each(&new)));
        match self.by_key.entry(key) {
            Entry::Vacant(place) => {
                place.insert(new);
            }
            Entry::Occupied(old) => {
                let old = old.into_mut();
                let longest = each(old).max(each(&new));
                old.count += new.count;
                // Long inputs may have a rate of their own.
                old.input = match self.level {
                    0 => old.input.saturating_add(new.input),
                    _ => longest.saturating_mul(old.count),
                };
                old.input_bound = old.input_bound.max(new.input_bound);
                old.max_tokens = old.max_tokens.max(new.max_tokens);
                old.choices = old.choices.max(new.choices);
            }
        }
    }
}

/// At least the number, and at most an eighth more: so few groups hold many requests. At each level
/// twice as much more, up to level 3.
const fn rounded(number: u64, level: u32) -> u64 {
    let unit = 1_u64 << (63 - (number | 1).leading_zeros()).saturating_sub(3 - level);
    number.div_ceil(unit).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PeekLimits = PeekLimits { max_depth: 64 };

    #[test]
    fn lines_are_read_however_the_form_is_cut() {
        let line = |id, model, url| {
            format!(
                r#"{{"custom_id":"{id}","method":"POST","url":"{url}","body":{{"model":"{model}","max_tokens":100,"n":2,"messages":[{{"role":"user","content":"hello"}}]}}}}"#
            )
        };
        let url = "/v1/chat/completions";
        let lines = [line("a", "m", url), line("b", "other", url), line("c", "m", url)];
        let text = format!("head{}\r\n\n{}\n{}", lines[0], lines[1], lines[2]);
        for size in 1..text.len() {
            let chunks: Vec<_> = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
            let read = of_lines(&chunks, 4..text.len(), LIMITS).unwrap();
            assert_eq!(read.ask.models, ["m", "other"], "{size}");
            assert_eq!(read.ask.count(), 3);
            let names: Vec<_> = read.names.iter().map(|span| &text[span.clone()]).collect();
            assert_eq!(names, ["\"m\"", "\"m\""]);
            let bodies = read.bodies.iter().map(|span| &text[span.clone()]);
            assert!(bodies.clone().all(|body| body.starts_with("{\"model\"")), "{size}");
            let [first, second] = &*read.ask.groups else { panic!("{:?}", read.ask) };
            assert_eq!((first.model, first.count, second.model, second.count), (0, 2, 1, 1));
            assert_eq!((first.max_tokens, first.choices), (Some(104), 2));
            assert_eq!(read.peek.model.as_deref(), Some("m"));
            assert_eq!(read.peek.named[0].name, "other");
        }
        let other = [lines[0].clone(), line("d", "m", "/v1/responses")].join("\n");
        let image = line("d", "m", "/v1/images/generations");
        for bad in [&*other, &*image, "", "{}", "[]", &lines[0][1..]] {
            let chunks = [Bytes::copy_from_slice(bad.as_bytes())];
            assert!(of_lines(&chunks, 0..bad.len(), LIMITS).is_err(), "{bad}");
        }
    }

    #[test]
    fn messages_are_grouped_and_what_cannot_be_read_is_named() {
        let request = |id: usize, more: &str| {
            format!(r#"{{"custom_id":"r{id}","params":{{"model":"m","messages":[]{more}}}}}"#)
        };
        let all: Vec<_> = (0..1000).map(|id| request(id, ",\"max_tokens\":64")).collect();
        let body = Bytes::from(format!("{{\"requests\":[{}]}}", all.join(",")));
        let read = of_messages(&body, LIMITS).unwrap();
        assert_eq!((read.ask.count(), read.bodies.len(), read.ask.groups.len()), (1000, 1000, 1));
        for (body, named) in [
            (format!("{{\"requests\":[{}]}}", request(7, ",\"model\":\"n\"")), "r7"),
            (r#"{"requests":[{"custom_id":"r8","params":{}}]}"#.to_owned(), "r8"),
            (r#"{"requests":[]}"#.to_owned(), "requests"),
            ("{}".to_owned(), "requests"),
        ] {
            let error = of_messages(&Bytes::from(body), LIMITS).unwrap_err();
            assert!(error.message.contains(named), "{error:?}");
        }
    }

    /// `of`: the members of the request with this number.
    fn batch_of(count: u64, of: impl Fn(u64) -> String) -> Result<BatchRequests, BadRequest> {
        let one = |id| format!(r#"{{"custom_id":"r{id}","params":{{{}}}}}"#, of(id));
        let all: Vec<_> = (0..count).map(one).collect();
        of_messages(&Bytes::from(format!("{{\"requests\":[{}]}}", all.join(","))), LIMITS)
    }

    #[test]
    fn any_batch_has_few_groups_which_reserve_no_less() {
        let bound = |id: u64| (id + 1).pow(1 + u32::try_from(id % 4).unwrap());
        for models in [1, 64] {
            let of = |id| {
                let (model, most) = (id % models, bound(id));
                let text = "x".repeat(usize::try_from(id).unwrap());
                format!(r#""model":"m{model}","max_tokens":{most},"system":"{text}""#)
            };
            let read = batch_of(3_000, of).unwrap();
            let groups = &read.ask.groups;
            assert!(groups.len() <= MOST_GROUPS, "{}", groups.len());
            assert_eq!(read.ask.count(), 3_000);
            let least: u128 = (0..3_000).map(|id| u128::from(bound(id))).sum();
            let most = |group: &BatchGroup| {
                u128::from(group.count) * u128::from(group.max_tokens.unwrap())
            };
            assert!(groups.iter().map(most).sum::<u128>() >= least);
        }
    }

    #[test]
    fn further_models_are_as_few_as_models() {
        let of = |id| format!(r#""model":"m","fallbacks":[{{"model":"n{id}"}}]"#);
        assert_eq!(batch_of(64, of).unwrap().peek.named.len(), 64);
        let error = batch_of(65, of).unwrap_err();
        assert!(error.message.contains("64 further models"), "{error:?}");
    }

    #[test]
    fn what_a_file_asks_for_is_the_same_once_it_is_stored() {
        let of = |_| {
            r#""model":"m","fallbacks":[{"model":"n"}],"tools":[
                {"type":"web_search_20250305","name":"web_search"},
                {"type":"code_execution_20250522","name":"c"},
                {"type":"web_fetch_20250910","name":"web_fetch"}
            ]"#
            .to_owned()
        };
        let BatchRequests { ask, peek, .. } = batch_of(1, of).unwrap();
        let stored: BatchAsk = serde_json::from_value(serde_json::to_value(&ask).unwrap()).unwrap();
        let own = peek_of(&stored);
        let names = |peek: &Peek| peek.named.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!((&own.model, names(&own)), (&peek.model, names(&peek)));
        let uses = |peek: &Peek| {
            peek.features.iter().map(|one| (one.feature, one.fee)).collect::<Vec<_>>()
        };
        assert!(uses(&peek).len() >= 3, "{peek:?}");
        assert_eq!(uses(&own), uses(&peek));
    }

    #[test]
    fn the_results_are_at_the_gateway() {
        let said = br#"{"id":"b_1","results_url":"https://host.example/v1/x","ended_at":null}"#;
        let own =
            r#"{"id":"b_1","results_url":"/v1/messages/batches/b_1/results","ended_at":null}"#;
        assert_eq!(with_own_address(said).as_deref(), Some(own.as_bytes()));
        for other in [&br#"{"id":"b_1","results_url":null}"#[..], br#"{"id":"f"}"#, b"[]", b"{"] {
            assert_eq!(with_own_address(other), None);
        }
    }

    #[test]
    fn numbers_are_rounded_up_by_an_eighth_at_most() {
        for number in [0, 1, 7, 8, 9, 100, 4096, 4097, 1_000_000, u64::MAX] {
            for level in 0..COARSEST {
                let (up, more) = (rounded(number, level), number >> (3 - level));
                assert!(up >= number && up - number <= more, "{number}, {level}: {up}");
            }
        }
    }
}
