//! Responses.

use serde_json::{Value, json};

use super::super::tools::response;
use super::{
    AUDIO_INPUT, AUDIO_OUTPUT, CONTAINER, Counts, Dice, FILES, IMAGE_INPUT, IMAGE_OUTPUT,
    IMAGE_READ, INPUT, LONG, Mode, OUTPUT, READ, REASONING, REQUEST, Reply, SEARCH, SHORT, counts,
    femto, tokens,
};

const KINDS: [usize; 10] = [
    INPUT,
    OUTPUT,
    SHORT,
    LONG,
    READ,
    REASONING,
    AUDIO_INPUT,
    AUDIO_OUTPUT,
    IMAGE_INPUT,
    IMAGE_OUTPUT,
];

fn usage(dice: &mut Dice, counts: &Counts) -> Value {
    let of = |kinds: &[usize]| kinds.iter().map(|kind| counts[*kind]).sum::<u64>();
    let input = of(&[INPUT, SHORT, LONG, READ, AUDIO_INPUT, IMAGE_INPUT]);
    let output = of(&[OUTPUT, REASONING, AUDIO_OUTPUT, IMAGE_OUTPUT]);
    // The sum of what was written may be left out.
    let written = if dice.is() { json!(of(&[SHORT, LONG])) } else { Value::Null };
    json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        "input_tokens_details": {"cached_tokens": counts[READ], "cache_write_tokens": written,
            "cache_write_tokens_details": {"ttl_30m_tokens": counts[SHORT], "ttl_12h_tokens": counts[LONG]},
            "audio_tokens": counts[AUDIO_INPUT], "image_tokens": counts[IMAGE_INPUT]},
        "output_tokens_details": {"reasoning_tokens": counts[REASONING],
            "audio_tokens": counts[AUDIO_OUTPUT], "image_tokens": counts[IMAGE_OUTPUT]}})
}

/// Tokens of the model that draws, of which some of the input were cached.
fn drawn(counts: &Counts) -> Value {
    let (text, image) = (counts[INPUT] + counts[READ], counts[IMAGE_INPUT] + counts[IMAGE_READ]);
    json!({"input_tokens": text + image, "input_tokens_details": {"text_tokens": text, "image_tokens": image},
        "cached_tokens": counts[READ] + counts[IMAGE_READ],
        "cached_tokens_details": {"cached_text_tokens": counts[READ], "cached_image_tokens": counts[IMAGE_READ]},
        "output_tokens": counts[OUTPUT] + counts[IMAGE_OUTPUT],
        "output_tokens_details": {"text_tokens": counts[OUTPUT], "image_tokens": counts[IMAGE_OUTPUT]}})
}

/// Items of tools, and how many searches, containers and searches in files they are.
fn items(dice: &mut Dice) -> (Vec<Value>, [u64; 3]) {
    let (mut items, mut used) = (Vec::new(), [0; 3]);
    let mut containers = Vec::new();
    for index in 0..dice.below(6) {
        let id = format!("item_{index}");
        let status = dice.one(&["completed", "completed", "failed"]);
        let ran = u64::from(status == "completed");
        items.push(match dice.below(3) {
            0 => {
                let action = dice.one(&["search", "open_page", "find_in_page"]);
                used[0] += if action == "search" { ran } else { 0 };
                json!({"type": "web_search_call", "id": id, "status": status, "action": {"type": action}})
            }
            1 => {
                let container = dice.one(&["cntr_1", "cntr_2", "cntr_3"]);
                if !containers.contains(&container) {
                    containers.push(container);
                }
                json!({"type": "code_interpreter_call", "id": id, "status": status,
                    "container_id": container, "code": "1", "outputs": []})
            }
            _ => {
                used[2] += ran;
                json!({"type": "file_search_call", "id": id, "status": status, "queries": ["q"]})
            }
        });
    }
    used[1] = containers.len() as u64;
    (items, used)
}

/// Any tokens, lifetimes, tiers, tools, and the model that served.
pub(super) fn reply(dice: &mut Dice, entries: &Value) -> Reply {
    let tier = dice.one(&["default", "default", "priority", "fast", "flex", "ultrafast"]);
    let served = dice.one(&["m", "m-2026-11-01", "unknown", "served"]);
    let own = &entries[if served == "served" { "served" } else { "m" }];
    let counts_of_reply = counts(dice, &KINDS);
    let mut cost = tokens(own, counts_of_reply, Mode::tier(tier)) + femto(own, REQUEST);
    let (items, [mut searches, containers, files]) = items(dice);
    let mut extra =
        json!({"model": served, "service_tier": tier, "usage": usage(dice, &counts_of_reply)});
    let mut tool_usage = json!({});
    if dice.is() {
        // The figure goes before the items.
        searches = dice.below(4);
        tool_usage["web_search"] = json!({"num_requests": searches});
    }
    if dice.is() {
        let images = counts(dice, &[INPUT, OUTPUT, READ, IMAGE_INPUT, IMAGE_OUTPUT, IMAGE_READ]);
        tool_usage["image_gen"] = drawn(&images);
        cost += tokens(&entries["drawn"], images, Mode::tier("default"));
        extra["tools"] = json!([{"type": "function", "name": "f", "model": "dear"},
            {"type": "image_generation", "model": "drawn"}]);
    }
    if dice.is() || !tool_usage.as_object().unwrap().is_empty() {
        extra["tool_usage"] = tool_usage;
    }
    cost += i128::from(searches) * femto(own, SEARCH);
    cost += i128::from(containers) * femto(own, CONTAINER);
    cost += i128::from(files) * femto(own, FILES) / 1000;
    Reply { bodies: response(&json!(items), &extra), cost }
}
