//! Writes the neutral conversation as the body of `POST /model/{model}/converse`.

use super::super::bedrock::converse_model;
use super::super::generation::ClaudeGeneration;
use super::super::request_write::{self, JSON_LINE};
use super::model::{CachePlace, ConverseModel};
use super::{ConverseOptions, blocks, fields, tools};
use crate::formats::conversation::json::{self, Array, Object};
use crate::formats::conversation::{
    CacheMark, OutputFormat, Part, Request, Rule, Rules, Str, Target, Unsupported, schema,
};

/// Removes what the model does not take, before the conversation is put into order.
pub fn fit(request: &mut Request<'_>, model: &str, options: &ConverseOptions<'_>) {
    let row = converse_model(model);
    let keeps_reasoning = row.is_claude && !options.without_reasoning;
    let keeps_marks = row.caches(CachePlace::Messages);
    let rules = &mut request.dropped;
    for turn in &mut request.turns {
        turn.parts.retain(|part| match part {
            Part::Thinking(thinking) => {
                let is_kept = keeps_reasoning && blocks::takes_reasoning(thinking);
                rules.note_if(!is_kept, Rule::ForeignReasoning);
                is_kept
            }
            Part::CacheMark(_) => {
                rules.note_if(!keeps_marks, Rule::CacheMarks);
                keeps_marks
            }
            _ => true,
        });
    }
}

/// Writes the body. Turns alternate already.
///
/// # Errors
/// Content for which there is no block, such as an image by its address.
pub fn write(
    request: &Request<'_>,
    target: &Target<'_>,
    options: &ConverseOptions<'_>,
    rules: &mut Rules,
) -> Result<Vec<u8>, Unsupported> {
    blocks::check(request)?;
    request_write::note_losses(request, rules);
    rules.note_if(request.user.is_some(), Rule::User);
    let row = converse_model(target.model);
    let fields = fields::decide(request, target, options, row, rules);
    let takes_prefill = match row.is_claude {
        true => ClaudeGeneration::of(target.model).takes_prefill,
        false => row.takes_prefill,
    };
    let points = CachePoints::of(request, target, row, rules);
    let body = json::document_of(target.size, |o| {
        blocks::write(o, request, (row, takes_prefill), &points, rules);
        write_system(o, request, (row, &points), rules);
        tools::write(o, request, row, points.tools, rules);
        if !options.counts {
            fields.write_common(o);
        }
        fields.write_own(o);
        if !options.counts {
            write_output(o, request, row, fields.effort, rules);
        }
    });
    if !options.counts {
        return Ok(body);
    }
    Ok(json::document_of(body.len() + 32, |o| {
        o.object("input", |o| o.key("converse").extend_from_slice(&body));
    }))
}

/// The cache points outside of messages: as the client marked them, or, if the operator asks for a
/// prompt cache, at the end of each part.
pub(super) struct CachePoints {
    system: Vec<(usize, CacheMark)>,
    tools: Option<CacheMark>,
    /// At the end of the last message.
    pub last: Option<CacheMark>,
    /// The operator's lifetime of every point.
    pub lifetime: Option<CacheMark>,
}

impl CachePoints {
    fn of(
        request: &Request<'_>,
        target: &Target<'_>,
        row: &ConverseModel,
        rules: &mut Rules,
    ) -> Self {
        let marks = &request.marks;
        let lifetime = |ttl: &str| if ttl == "1h" { CacheMark::Hour } else { CacheMark::Short };
        let wanted = target.cache_ttl.map(lifetime);
        let in_turns = || {
            let mut parts = request.turns.iter().flat_map(|turn| &turn.parts);
            parts.any(|part| matches!(part, Part::CacheMark(_)))
        };
        let has_own =
            !marks.system.is_empty() || marks.tools.is_some() || marks.last.is_some() || in_turns();
        let automatic = wanted.filter(|_| !has_own);
        let mut at = |place, mark: Option<CacheMark>| {
            let taken = row.caches(place);
            rules.note_if(!taken && mark.is_some(), Rule::CacheMarks);
            let mark = mark.map(|mark| wanted.unwrap_or(mark));
            mark.or(automatic).filter(|_| taken)
        };
        let (tools, last) =
            (at(CachePlace::Tools, marks.tools), at(CachePlace::Messages, marks.last));
        let end = request.system.len().checked_sub(1);
        let system = match marks.system.as_slice() {
            [] => {
                end.and_then(|end| Some((end, at(CachePlace::System, None)?))).into_iter().collect()
            }
            own => own
                .iter()
                .filter_map(|(index, mark)| Some((*index, at(CachePlace::System, Some(*mark))?)))
                .collect(),
        };
        Self { system, tools, last, lifetime: wanted }
    }
}

/// Writes a cache point.
pub(super) fn write_point(a: &mut Array<'_>, mark: CacheMark, row: &ConverseModel) {
    a.object(|o| {
        o.object("cachePoint", |o| {
            o.word("type", "default");
            if mark == CacheMark::Hour && row.takes_hour {
                o.word("ttl", "1h");
            }
        });
    });
}

fn write_system(
    o: &mut Object<'_>,
    request: &Request<'_>,
    (row, points): (&ConverseModel, &CachePoints),
    rules: &mut Rules,
) {
    let asks_json = request.output == OutputFormat::Json;
    rules.note_if(asks_json, Rule::JsonMode);
    if !asks_json && request.system.iter().all(Str::is_blank) {
        return;
    }
    o.array("system", |a| {
        let mut written = false;
        for (index, text) in request.system.iter().enumerate() {
            if !text.is_blank() {
                a.object(|o| o.text("text", text));
                written = true;
            }
            let mark = points.system.iter().find(|(at, _)| *at == index);
            if let Some((_, mark)) = mark.filter(|_| written) {
                write_point(a, *mark, row);
            }
        }
        if asks_json {
            a.object(|o| o.str("text", JSON_LINE));
        }
    });
}

fn write_output(
    o: &mut Object<'_>,
    request: &Request<'_>,
    row: &ConverseModel,
    effort: Option<&'static str>,
    rules: &mut Rules,
) {
    let format = match &request.output {
        OutputFormat::Schema { name, description, schema, .. } => Some((name, description, schema)),
        _ => None,
    };
    if effort.is_none() && format.is_none() {
        return;
    }
    o.object("outputConfig", |o| {
        o.opt_str("effort", effort);
        let Some((name, description, schema)) = format else { return };
        let (schema, changed) = match row.is_claude {
            true => schema::for_native_output(schema),
            false => (schema.to_string(), false),
        };
        rules.note_if(changed, Rule::SchemaKeywords);
        o.object("textFormat", |o| {
            o.word("type", "json_schema");
            o.object("structure", |o| {
                o.object("jsonSchema", |o| {
                    o.str("schema", &schema);
                    o.opt_str("name", name.as_deref());
                    o.opt_str("description", description.as_deref());
                });
            });
        });
    });
}
