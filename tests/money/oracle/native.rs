//! Native replies.

use serde_json::{Value, json};

use super::super::parts::native;
use super::{Counts, Dice, INPUT, LONG, Mode, OUTPUT, READ, Reply, SHORT, counts, femto, tokens};

fn pass(kind: &str, model: &str, counts: Counts) -> Value {
    let written = counts[SHORT] + counts[LONG];
    json!({"type": kind, "model": model, "input_tokens": counts[INPUT], "output_tokens": counts[OUTPUT],
        "cache_creation_input_tokens": written, "cache_read_input_tokens": counts[READ],
        "cache_creation": {"ephemeral_5m_input_tokens": counts[SHORT], "ephemeral_1h_input_tokens": counts[LONG]}})
}

/// Any passes over models, with advice, fallbacks and compaction.
pub(super) fn reply(dice: &mut Dice, entries: &Value) -> Reply {
    let mode = Mode(
        dice.one(&["standard", "standard", "priority", "batch"]),
        dice.one(&["standard", "standard", "fast"]),
        dice.one(&["global", "us"]),
    );
    let (mut passes, mut cost, mut sums) = (Vec::new(), 0, Counts::default());
    let mut served = "m";
    let add = |sums: &mut Counts, counts: Counts| {
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    };
    if dice.below(3) == 0 {
        let mut declined = counts(dice, &[INPUT, OUTPUT, SHORT, LONG, READ]);
        if dice.below(2) == 0 {
            declined[OUTPUT] = 0;
        } else {
            cost += tokens(&entries["m"], declined, mode);
        }
        passes.push(pass("message", "m", declined));
        served = "served";
    }
    for _ in 0..dice.below(3) {
        let own = counts(dice, &[INPUT, OUTPUT, SHORT, LONG, READ]);
        passes.push(pass("message", served, own));
        cost += tokens(&entries[served], own, mode);
        add(&mut sums, own);
    }
    for _ in 0..dice.below(3) {
        let advice = counts(dice, &[INPUT, OUTPUT, SHORT, LONG, READ]);
        // An adviser has no fast mode of its own.
        cost += tokens(&entries["dear"], advice, Mode(mode.0, "standard", mode.2));
        passes.push(pass("advisor_message", "dear", advice));
    }
    if dice.below(3) == 0 {
        let shortened = counts(dice, &[INPUT, OUTPUT, SHORT, LONG, READ]);
        let mut pass = pass("compaction", "m", shortened);
        pass.as_object_mut().unwrap().remove("model");
        cost += tokens(&entries["m"], shortened, mode);
        passes.insert(0, pass);
    }
    let last = counts(dice, &[INPUT, OUTPUT, SHORT, LONG, READ]);
    passes.push(pass(if served == "m" { "message" } else { "fallback_message" }, served, last));
    cost += tokens(&entries[served], last, mode);
    add(&mut sums, last);
    let searches = dice.below(3);
    cost += femto(&entries["m"], "input_cost_per_request");
    cost += i128::from(searches) * femto(&entries["m"], "search_context_cost_per_query");
    let mut usage = pass("", "", sums);
    for name in ["type", "model"] {
        usage.as_object_mut().unwrap().remove(name);
    }
    usage["iterations"] = json!(passes);
    usage["server_tool_use"] = json!({"web_search_requests": searches});
    (usage["service_tier"], usage["speed"], usage["inference_geo"]) =
        (json!(mode.0), json!(mode.1), json!(mode.2));
    Reply { bodies: native(served, "end_turn", &usage), cost }
}
