//! Gemini's replies.

use serde_json::{Value, json};

use super::{
    AUDIO_INPUT, AUDIO_OUTPUT, AUDIO_READ, Dice, IMAGE_INPUT, IMAGE_OUTPUT, IMAGE_READ, INPUT,
    MAPS, Mode, OUTPUT, READ, REASONING, REQUEST, Reply, SEARCH, counts, femto, tokens,
};

const KINDS: [usize; 10] = [
    INPUT,
    OUTPUT,
    READ,
    REASONING,
    AUDIO_INPUT,
    AUDIO_OUTPUT,
    IMAGE_INPUT,
    IMAGE_OUTPUT,
    AUDIO_READ,
    IMAGE_READ,
];

/// Counts by modality, in any order; a count of 0 may be left out.
fn details(dice: &mut Dice, text: u64, audio: u64, image: u64) -> Value {
    let mut list: Vec<Value> = [("AUDIO", audio), ("TEXT", text), ("IMAGE", image)]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(modality, count)| json!({"modality": modality, "tokenCount": count}))
        .collect();
    let turn = usize::try_from(dice.below(3)).unwrap() % list.len().max(1);
    list.rotate_left(turn);
    json!(list)
}

/// Any tokens of any modality, tiers, and what the answer is based on.
pub(super) fn reply(dice: &mut Dice, entries: &Value) -> Reply {
    let own = &entries["m"];
    let counts = counts(dice, &KINDS);
    let of = |kinds: &[usize]| kinds.iter().map(|kind| counts[*kind]).sum::<u64>();
    let cached = of(&[READ, AUDIO_READ, IMAGE_READ]);
    let candidates = of(&[OUTPUT, AUDIO_OUTPUT, IMAGE_OUTPUT]);
    let thoughts = counts[REASONING];
    // Results of tools are text that the prompt leaves out.
    let tools = dice.below(counts[INPUT]);
    let prompt = of(&[INPUT, AUDIO_INPUT, IMAGE_INPUT]) + cached - tools;
    let text = counts[INPUT] - tools + counts[READ];
    let (audio, image) = (of(&[AUDIO_INPUT, AUDIO_READ]), of(&[IMAGE_INPUT, IMAGE_READ]));
    let total = prompt + tools + candidates + thoughts;
    let mut usage = json!({"promptTokenCount": prompt, "candidatesTokenCount": candidates,
        "thoughtsTokenCount": thoughts, "toolUsePromptTokenCount": tools, "cachedContentTokenCount": cached,
        "totalTokenCount": total, "promptTokensDetails": details(dice, text, audio, image),
        "cacheTokensDetails": details(dice, counts[READ], counts[AUDIO_READ], counts[IMAGE_READ]),
        "candidatesTokensDetails": details(dice, counts[OUTPUT], counts[AUDIO_OUTPUT], counts[IMAGE_OUTPUT])});
    let tier =
        dice.one(&["ON_DEMAND", "ON_DEMAND_PRIORITY", "ON_DEMAND_FLEX", "ON_DEMAND_OFFPEAK"]);
    usage["trafficType"] = json!(tier);
    let queries: Vec<&str> = (0..dice.below(4)).map(|_| dice.one(&["a", "b", "c"])).collect();
    let chunks: Vec<Value> =
        (0..dice.below(3)).map(|_| json!({ dice.one(&["web", "maps"]): {"uri": "u"} })).collect();
    let is_map = chunks.iter().any(|chunk| chunk.get("maps").is_some());
    // The list has no rate for searches for images.
    let grounding = json!({"webSearchQueries": queries, "groundingChunks": chunks,
        "imageSearchQueries": (0..dice.below(2)).map(|_| "i").collect::<Vec<_>>()});
    let part = |text: &str| json!({"role": "model", "parts": [{ "text": text }]});
    let end = |content: Value, usage: &Value| {
        json!({"candidates": [{"index": 0, "finishReason": "STOP", "groundingMetadata": grounding,
            "content": content}], "usageMetadata": usage})
    };
    let mut first = json!({"candidates": [{"index": 0, "content": part("hel")}]});
    if dice.is() {
        // A running total, which the last one replaces.
        first["usageMetadata"] = json!({"promptTokenCount": prompt, "totalTokenCount": prompt});
    }
    let last = end(part("lo"), &usage);
    // Of a model without a number from 3 on, a request with searches is charged once.
    let searches = i128::from(!queries.is_empty());
    let cost = tokens(own, counts, Mode::tier(tier))
        + femto(own, REQUEST)
        + searches * femto(own, SEARCH)
        + i128::from(is_map) * femto(own, MAPS);
    let whole = end(part("hello"), &usage).to_string();
    Reply { bodies: [whole, format!("data: {first}\n\ndata: {last}\n\n")], cost }
}
