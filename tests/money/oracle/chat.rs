//! Chat completions.

use serde_json::{Value, json};

use super::{
    AUDIO_INPUT, AUDIO_OUTPUT, Dice, IMAGE_INPUT, IMAGE_OUTPUT, INPUT, Mode, OUTPUT, READ,
    REASONING, REQUEST, Reply, SEARCH, SHORT, counts, femto, tokens,
};

const KINDS: [usize; 9] =
    [INPUT, OUTPUT, SHORT, READ, REASONING, AUDIO_INPUT, AUDIO_OUTPUT, IMAGE_INPUT, IMAGE_OUTPUT];

/// The completion, and its stream: with the usage in the last chunk, or in one of its own.
fn bodies(dice: &mut Dice, model: &str, tier: &str, usage: &Value) -> [String; 2] {
    let base = |object: &str| json!({"id": "c", "object": object, "created": 1, "model": model, "service_tier": tier});
    let mut whole = base("chat.completion");
    whole["choices"] = json!([{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]);
    whole["usage"] = usage.clone();
    let chunk = |choices: Value, usage: &Value| {
        let mut chunk = base("chat.completion.chunk");
        (chunk["choices"], chunk["usage"]) = (choices, usage.clone());
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let mut stream =
        chunk(delta(json!({"role": "assistant", "content": "hello"}), Value::Null), &Value::Null);
    if dice.is() {
        stream += &chunk(delta(json!({}), json!("stop")), usage);
    } else {
        stream += &chunk(delta(json!({}), json!("stop")), &Value::Null);
        stream += &chunk(json!([]), usage);
    }
    [whole.to_string(), stream + "data: [DONE]\n\n"]
}

/// Any tokens and tiers, with cached tokens or reasoning within the sums or beside them.
pub(super) fn reply(dice: &mut Dice, entries: &Value) -> Reply {
    let tier = dice.one(&["default", "default", "priority", "flex", "ultrafast"]);
    let served = dice.one(&["m", "m-2026-11-01", "unknown", "served"]);
    let own = &entries[if served == "served" { "served" } else { "m" }];
    let counts = counts(dice, &KINDS);
    let of = |kinds: &[usize]| kinds.iter().map(|kind| counts[*kind]).sum::<u64>();
    let (cached, reasoning) = (of(&[SHORT, READ]), counts[REASONING]);
    let (input, output) =
        (of(&[INPUT, AUDIO_INPUT, IMAGE_INPUT]), of(&[OUTPUT, AUDIO_OUTPUT, IMAGE_OUTPUT]));
    let total = input + cached + output + reasoning;
    // Beside the sums, the total must tell which of them it is.
    let is_clear = ![cached, counts[SHORT], counts[READ]].contains(&reasoning);
    let cached_in = if dice.below(3) == 0 && is_clear { 0 } else { cached };
    let reasoning_in = if dice.below(3) == 0 && is_clear { 0 } else { reasoning };
    let mut usage = json!({"prompt_tokens": input + cached_in, "completion_tokens": output + reasoning_in,
        "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": counts[READ], "cache_write_tokens": counts[SHORT],
            "audio_tokens": counts[AUDIO_INPUT], "image_tokens": counts[IMAGE_INPUT]},
        "completion_tokens_details": {"reasoning_tokens": reasoning,
            "audio_tokens": counts[AUDIO_OUTPUT], "image_tokens": counts[IMAGE_OUTPUT]}});
    let searches = dice.below(3);
    match dice.below(3) {
        0 => usage["num_search_queries"] = json!(searches),
        _ => usage["server_tool_use"] = json!({"web_search_requests": searches}),
    }
    let cost = tokens(own, counts, Mode::tier(tier))
        + femto(own, REQUEST)
        + i128::from(searches) * femto(own, SEARCH);
    Reply { bodies: bodies(dice, served, tier, &usage), cost }
}
