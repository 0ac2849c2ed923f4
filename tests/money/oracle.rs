//! The bill against an independent reference: whole numbers of femto-dollars, from the names of the
//! price list's fields alone. It shares no code with the gateway.

use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::parts::{native, rows, usd};
use crate::proxy::fixture::Fixture;

/// Femto-dollars in a nano-dollar.
const FEMTO: i128 = 1_000_000;

/// A reproducible source of numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

const KINDS: [&str; 5] = [
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
    "cache_read_input_token_cost",
];

/// An entry that names every rate, with eleven decimal places.
fn entry(dice: &mut Dice) -> Value {
    let mut entry = Map::new();
    for kind in KINDS {
        for band in ["", "_above_1k_tokens"] {
            for tier in ["", "_priority", "_batches"] {
                let rate = format!("0.{:011}", 1 + dice.below(9_999_999));
                entry.insert(format!("{kind}{band}{tier}"), json!(rate));
            }
        }
    }
    entry.insert(
        "input_cost_per_request".to_owned(),
        json!(format!("0.00{:09}", dice.below(1_000_000))),
    );
    entry.insert("search_context_cost_per_query".to_owned(), json!("0.0123456789"));
    entry.insert("provider_specific_entry".to_owned(), json!({"fast": 2.5, "us": 1.1}));
    Value::Object(entry)
}

/// A field in femto-dollars.
fn femto(entry: &Value, field: &str) -> i128 {
    let text = entry[field].as_str().unwrap_or_else(|| panic!("no {field}"));
    let places = text.strip_prefix("0.").unwrap();
    format!("{places:0<15}").parse().unwrap()
}

/// The mode of a request: service tier, speed and place, as a reply names them.
#[derive(Clone, Copy)]
struct Mode(&'static str, &'static str, &'static str);

/// Five counts in the order of [`KINDS`].
type Counts = [u64; 5];

/// What the list says that the counts cost.
fn tokens(entry: &Value, counts: Counts, Mode(tier, speed, place): Mode) -> i128 {
    let whole = counts[0] + counts[2] + counts[3] + counts[4];
    let band = if whole > 1000 { "_above_1k_tokens" } else { "" };
    let is_fast = speed == "fast";
    let suffix = match tier {
        "priority" if !is_fast => "_priority",
        "batch" if !is_fast => "_batches",
        _ => "",
    };
    // In tenths: 2.5 and 1.1.
    let fast = if is_fast { 25 } else { 10 };
    let us = if place == "us" && suffix.is_empty() { 11 } else { 10 };
    let each = KINDS
        .iter()
        .zip(counts)
        .map(|(kind, count)| i128::from(count) * femto(entry, &format!("{kind}{band}{suffix}")));
    let sum: i128 = each.sum::<i128>() * fast * us;
    assert_eq!(sum % 100, 0, "more than fifteen places");
    sum / 100
}

fn pass(kind: &str, model: &str, counts: Counts) -> Value {
    json!({"type": kind, "model": model, "input_tokens": counts[0], "output_tokens": counts[1],
        "cache_creation_input_tokens": counts[2] + counts[3], "cache_read_input_tokens": counts[4],
        "cache_creation": {"ephemeral_5m_input_tokens": counts[2], "ephemeral_1h_input_tokens": counts[3]}})
}

fn counts(dice: &mut Dice) -> Counts {
    let most = dice.one(&[40, 400, 4000]);
    let mut counts = [0; 5].map(|_: u64| dice.below(most));
    counts[0] += 1;
    counts[1] += 1;
    counts
}

/// A reply, and its cost in femto-dollars before the multiplier.
fn reply(dice: &mut Dice, entries: &Value) -> (&'static str, Value, i128) {
    let mode = Mode(
        dice.one(&["standard", "standard", "priority", "batch"]),
        dice.one(&["standard", "standard", "fast"]),
        dice.one(&["global", "us"]),
    );
    let (mut passes, mut cost, mut sums) = (Vec::new(), 0, [0; 5]);
    let mut served = "m";
    let add = |sums: &mut Counts, counts: Counts| {
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    };
    if dice.below(3) == 0 {
        let mut declined = counts(dice);
        if dice.below(2) == 0 {
            declined[1] = 0;
        } else {
            cost += tokens(&entries["m"], declined, mode);
        }
        passes.push(pass("message", "m", declined));
        served = "served";
    }
    for _ in 0..dice.below(3) {
        let own = counts(dice);
        passes.push(pass("message", served, own));
        cost += tokens(&entries[served], own, mode);
        add(&mut sums, own);
    }
    for _ in 0..dice.below(3) {
        let advice = counts(dice);
        // An adviser has no fast mode of its own.
        cost += tokens(&entries["dear"], advice, Mode(mode.0, "standard", mode.2));
        passes.push(pass("advisor_message", "dear", advice));
    }
    if dice.below(3) == 0 {
        let shortened = counts(dice);
        let mut pass = pass("compaction", "m", shortened);
        pass.as_object_mut().unwrap().remove("model");
        cost += tokens(&entries["m"], shortened, mode);
        passes.insert(0, pass);
    }
    let last = counts(dice);
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
    (served, usage, cost)
}

#[tokio::test(flavor = "multi_thread")]
async fn any_mixture_of_passes_tiers_and_lifetimes_costs_what_the_list_says() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let entries =
        json!({"m": entry(&mut dice), "served": entry(&mut dice), "dear": entry(&mut dice)});
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.prices(entries.clone()).await;
    let multiplied = json!({"cost_multiplier": 1.25});
    fixture.gateway.provider("native", &fixture.upstream.url, multiplied).await;
    for case in 0..24 {
        let (served, usage, femto) = reply(&mut dice, &entries);
        let exact = femto * 125;
        let nano = (exact + 50 * FEMTO) / (100 * FEMTO);
        let expected = Decimal::from_i128_with_scale(nano, 9);
        for row in rows(&fixture, &native(served, "end_turn", &usage), case * 8).await {
            assert_eq!(usd(&row["costUsd"]), expected.normalize(), "case {case}: {usage} {row}");
        }
    }
}
