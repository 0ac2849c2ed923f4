//! The bill against an independent reference: whole numbers of femto-dollars, from the names of the
//! price list's fields alone. It shares no code with the gateway.
//!
//! Each run has a seed of its own; `TOLLGATE_ORACLE_SEED` sets it, as the message of a failure
//! says.

mod alt_cli;
mod chat;
mod native;
mod responses;

use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::parts::{rows, usd};
use crate::proxy::fixture::Fixture;

/// Femto-dollars in a nano-dollar.
const FEMTO: i128 = 1_000_000;
/// Seeds that every run repeats.
const SEEDS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0x0000_0000_2026_1128];
/// Replies of each seed.
const REPLIES: usize = 8;

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

    fn is(&mut self) -> bool {
        self.below(2) == 0
    }
}

const KINDS: [&str; 12] = [
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
    "cache_read_input_token_cost",
    "output_cost_per_reasoning_token",
    "input_cost_per_audio_token",
    "output_cost_per_audio_token",
    "input_cost_per_image_token",
    "output_cost_per_image_token",
    "cache_read_input_audio_token_cost",
    "cache_read_input_image_token_cost",
];
/// Disjoint counts in the order of [`KINDS`].
type Counts = [u64; 12];
const INPUT: usize = 0;
const OUTPUT: usize = 1;
/// Written to a cache of a short and of a long lifetime.
const SHORT: usize = 2;
const LONG: usize = 3;
const READ: usize = 4;
const REASONING: usize = 5;
const AUDIO_INPUT: usize = 6;
const AUDIO_OUTPUT: usize = 7;
const IMAGE_INPUT: usize = 8;
const IMAGE_OUTPUT: usize = 9;
const AUDIO_READ: usize = 10;
const IMAGE_READ: usize = 11;

/// The kinds that are input.
const INPUTS: [usize; 8] =
    [INPUT, SHORT, LONG, READ, AUDIO_INPUT, IMAGE_INPUT, AUDIO_READ, IMAGE_READ];

const SEARCH: &str = "search_context_cost_per_query";
const CONTAINER: &str = "code_interpreter_cost_per_session";
const FILES: &str = "file_search_cost_per_1k_calls";
const MAPS: &str = "google_maps_grounding_cost_per_query";
const REQUEST: &str = "input_cost_per_request";

/// An entry that names every rate, with eleven decimal places.
fn entry(dice: &mut Dice) -> Value {
    let mut entry = Map::new();
    for kind in KINDS {
        for band in ["", "_above_1k_tokens"] {
            for tier in ["", "_priority", "_batches", "_flex", "_ultrafast", "_offpeak"] {
                let rate = format!("0.{:011}", 1 + dice.below(9_999_999));
                entry.insert(format!("{kind}{band}{tier}"), json!(rate));
            }
        }
    }
    for fee in [REQUEST, SEARCH, CONTAINER, FILES, MAPS] {
        entry.insert(fee.to_owned(), json!(format!("0.0{:010}", 1 + dice.below(1_000_000_000))));
    }
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

impl Mode {
    const fn tier(tier: &'static str) -> Self {
        Self(tier, "standard", "global")
    }
}

/// What the list says that the counts cost.
fn tokens(entry: &Value, counts: Counts, Mode(tier, speed, place): Mode) -> i128 {
    let whole: u64 = INPUTS.iter().map(|kind| counts[*kind]).sum();
    let band = if whole > 1000 { "_above_1k_tokens" } else { "" };
    let is_fast = speed == "fast";
    let suffix = match tier.to_ascii_lowercase().trim_start_matches("on_demand_") {
        _ if is_fast => "",
        "priority" | "fast" => "_priority",
        "batch" => "_batches",
        "flex" => "_flex",
        "ultrafast" => "_ultrafast",
        "offpeak" => "_offpeak",
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

/// Counts of these kinds: each may be 0 but those of plain input and output.
fn counts(dice: &mut Dice, kinds: &[usize]) -> Counts {
    let most = dice.one(&[40, 400, 4000]);
    let mut counts = Counts::default();
    for kind in kinds {
        counts[*kind] = if dice.below(4) == 0 { 0 } else { dice.below(most) };
    }
    counts[INPUT] += 1;
    counts[OUTPUT] += 1;
    counts
}

/// Whole and streamed, and the cost in femto-dollars before the multiplier.
struct Reply {
    bodies: [String; 2],
    cost: i128,
}

/// A generator of replies, by the entries of `m`, `served`, `dear` and `drawn`.
type Make = fn(&mut Dice, &Value) -> Reply;

/// The seed of this run alone.
fn own_seed() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a switch of the tests, not of the gateway")]
    let asked = std::env::var("TOLLGATE_ORACLE_SEED").ok();
    asked.map_or_else(|| fastrand::u64(1..), |seed| seed.parse().unwrap())
}

async fn bills_of(provider: &str, make: Make) {
    let fixture = Fixture::bare(&[]).await;
    let multiplied = json!({"cost_multiplier": 1.25});
    fixture.gateway.provider(provider, &fixture.upstream.url, multiplied).await;
    let own = own_seed();
    let mut asked = 0;
    for seed in SEEDS.into_iter().chain([own]) {
        let mut dice = Dice(seed);
        let names = ["m", "served", "dear", "drawn"];
        let entries: Map<String, Value> =
            names.map(|name| (name.to_owned(), entry(&mut dice))).into_iter().collect();
        let entries = Value::Object(entries);
        fixture.gateway.prices(entries.clone()).await;
        for case in 0..REPLIES {
            let Reply { bodies, cost } = make(&mut dice, &entries);
            let nano = (cost * 125 + 50 * FEMTO) / (100 * FEMTO);
            let expected = Decimal::from_i128_with_scale(nano, 9).normalize();
            let found = rows(&fixture, &bodies, asked).await;
            asked += found.len();
            for row in found {
                let got = usd(&row["costUsd"]);
                assert_eq!(
                    got, expected,
                    "{provider}, TOLLGATE_ORACLE_SEED={seed}, reply {case}: {} {row}",
                    bodies[0]
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_mixture_of_passes_tiers_and_lifetimes_costs_what_the_list_says() {
    bills_of("native", native::reply).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_mixture_of_tools_tiers_and_tokens_of_responses_costs_what_the_list_says() {
    bills_of("responses", responses::reply).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_chat_completion_costs_what_the_list_says() {
    bills_of("chat-compatible", chat::reply).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_content_of_gemini_costs_what_the_list_says() {
    bills_of("alt-cli", alt_cli::reply).await;
}
