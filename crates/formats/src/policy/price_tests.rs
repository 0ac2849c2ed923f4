//! Every field of the public price list maps to its exact rate, or is listed as not applied.

use serde_json::json;

use super::*;

fn input(text: &str) -> Result<Option<Decimal>, PriceProblem> {
    let entry: Value =
        serde_json::from_str(&format!(r#"{{"input_cost_per_token": {text}}}"#)).unwrap();
    rates_from_json(&entry, Belief::Usual).map(|rates| rates.base(CostKind::Input))
}

#[test]
fn numbers_are_read_exactly_in_every_notation() {
    let cases = [
        ("3e-6", "0.000003"),
        ("3E-06", "0.000003"),
        ("0.000003", "0.000003"),
        ("1.25e-05", "0.0000125"),
        ("1.5000000000000002e-06", "0.0000015000000000000002"),
        ("0.1", "0.1"),
        ("0", "0"),
        ("0.0", "0"),
        ("1", "1"),
        ("\"0.00000015\"", "0.00000015"),
        ("\" 2e-7 \"", "0.0000002"),
    ];
    for (text, expected) in cases {
        assert_eq!(input(text), Ok(Some(expected.parse().unwrap())), "{text}");
    }
}

#[test]
fn what_is_no_price_is_refused_by_name() {
    let field = || "input_cost_per_token".to_owned();
    let not_a_number = || Err(PriceProblem::NotANumber { field: field() });
    for text in [
        "\"NaN\"",
        "\"Infinity\"",
        "\"-inf\"",
        "\"\"",
        "\"1_000\"",
        "\"1,5\"",
        "true",
        "[1]",
        "{}",
        "5e-324",
        "1e300",
    ] {
        assert_eq!(input(text), not_a_number(), "{text}");
    }
    assert_eq!(input("-1e-6"), Err(PriceProblem::Negative { field: field() }));
    assert_eq!(input("1.0001"), Err(PriceProblem::TooLarge { field: field(), max: Decimal::ONE }));
    let at_fault = |entry: Value| {
        rates_from_json(&entry, Belief::Usual).unwrap_err().field().map(str::to_owned)
    };
    for (entry, field) in [
        (json!({"input_cost_per_request": 1_001}), "input_cost_per_request"),
        (json!({"input_cost_per_token_flex": "free"}), "input_cost_per_token_flex"),
        (
            json!({"output_cost_per_token_above_272k_tokens": -1}),
            "output_cost_per_token_above_272k_tokens",
        ),
        (json!({"search_context_cost_per_query": -1}), "search_context_cost_per_query"),
        (
            json!({"search_context_cost_per_query": {"search_context_size_medium": true}}),
            "search_context_cost_per_query.search_context_size_medium",
        ),
    ] {
        assert_eq!(at_fault(entry).as_deref(), Some(field));
    }
}

#[test]
fn an_entry_needs_a_rate() {
    let read = |entry: Value| rates_from_json(&entry, Belief::Usual);
    assert_eq!(read(json!(5)), Err(PriceProblem::NotAnObject));
    assert_eq!(
        read(json!({"mode": "chat", "input_cost_per_token": null})),
        Err(PriceProblem::NoRates)
    );
    assert_eq!(
        read(json!({"mode": "video", "output_cost_per_second": 0.1})),
        Err(PriceProblem::NoRates)
    );
    assert!(read(json!({"mode": "chat", "input_cost_per_token": 0})).is_ok(), "free is a price");
}

#[test]
fn every_field_of_the_public_list_finds_its_rate() {
    use CostKind::*;
    use ServiceTier::*;
    let names = [
        ("input_cost_per_token", Input, Standard, 0),
        ("output_cost_per_token", Output, Standard, 0),
        ("cache_creation_input_token_cost", CacheWrite5m, Standard, 0),
        ("cache_creation_input_token_cost_above_1hr", CacheWrite1h, Standard, 0),
        ("cache_read_input_token_cost", CacheRead, Standard, 0),
        ("input_cost_per_request", Request, Standard, 0),
        ("input_cost_per_image_token", ImageInput, Standard, 0),
        ("output_cost_per_image_token", ImageOutput, Standard, 0),
        ("input_cost_per_audio_token", AudioInput, Standard, 0),
        ("output_cost_per_audio_token", AudioOutput, Standard, 0),
        ("output_cost_per_reasoning_token", Reasoning, Standard, 0),
        ("input_cost_per_token_above_128k_tokens", Input, Standard, 128_000),
        ("input_cost_per_token_above_200k_tokens", Input, Standard, 200_000),
        ("output_cost_per_token_above_272k_tokens", Output, Standard, 272_000),
        ("output_cost_per_token_above_1m_tokens", Output, Standard, 1_000_000),
        ("cache_creation_input_token_cost_above_200k_tokens", CacheWrite5m, Standard, 200_000),
        (
            "cache_creation_input_token_cost_above_1hr_above_200k_tokens",
            CacheWrite1h,
            Standard,
            200_000,
        ),
        ("cache_read_input_token_cost_above_200k_tokens", CacheRead, Standard, 200_000),
        ("input_cost_per_token_priority", Input, Priority, 0),
        ("input_cost_per_token_above_200k_tokens_priority", Input, Priority, 200_000),
        ("input_cost_per_token_priority_above_272k_tokens", Input, Priority, 272_000),
        ("cache_read_input_token_cost_flex", CacheRead, Flex, 0),
        (
            "cache_creation_input_token_cost_above_1hr_above_100k_tokens_batches",
            CacheWrite1h,
            Batch,
            100_000,
        ),
        ("output_cost_per_image_token_batches", ImageOutput, Batch, 0),
        ("input_cost_per_audio_token_flex", AudioInput, Flex, 0),
    ];
    let entry: Map<_, _> = names
        .iter()
        .zip(1..)
        .map(|(name, n)| (name.0.to_owned(), json!(f64::from(n) / 1e6)))
        .collect();
    let read = rates_from_json(&Value::Object(entry.clone()), Belief::Usual).unwrap();
    assert_eq!(read.iter().count(), names.len());
    for ((name, kind, tier, above), n) in names.into_iter().zip(1..) {
        let rate = Rate { kind, tier, above, usd: Decimal::new(n, 6).normalize() };
        assert!(read.iter().any(|found| *found == rate), "{name}: {rate:?} is not in {read:?}");
    }
    assert_eq!(unapplied(&Value::Object(entry)), Vec::<String>::new());
}

#[test]
fn a_rate_under_two_names_counts_once() {
    let entry =
        json!({"input_cost_per_token_cache_hit": 1e-7, "cache_read_input_token_cost": 2e-7});
    let read = rates_from_json(&entry, Belief::Usual).unwrap();
    assert_eq!(
        (read.iter().count(), read.base(CostKind::CacheRead)),
        (1, Some(Decimal::new(2, 7)))
    );
    let entry = json!({"input_cost_per_token_cache_hit": 1e-7});
    let read = rates_from_json(&entry, Belief::Usual).unwrap();
    assert_eq!(read.base(CostKind::CacheRead), Some(Decimal::new(1, 7)));
    // Writes for half a day count as those for an hour.
    let entry = json!({"cache_creation_input_token_cost": 5e-6,
        "cache_creation_input_token_cost_above_12hr": 1e-5});
    let read = rates_from_json(&entry, Belief::Usual).unwrap();
    assert_eq!(read.base(CostKind::CacheWrite1h), Some(Decimal::new(1, 5)));
}

#[test]
fn a_web_search_costs_the_medium_size_or_else_the_dearest() {
    let fee = |fee: Value| {
        let entry = json!({"input_cost_per_token": 1e-6, "search_context_cost_per_query": fee});
        rates_from_json(&entry, Belief::Usual).unwrap().base(CostKind::WebSearch)
    };
    let sizes = json!({
        "search_context_size_low": 0.03, "search_context_size_medium": 0.035, "search_context_size_high": 0.05,
    });
    assert_eq!(fee(sizes), Some(Decimal::new(35, 3)));
    let ends = json!({"search_context_size_low": 0.03, "search_context_size_high": "0.05"});
    assert_eq!(fee(ends), Some(Decimal::new(5, 2)));
    assert_eq!(fee(json!(0.01)), Some(Decimal::new(1, 2)));
    assert_eq!(fee(json!({})), None);
    assert_eq!(fee(json!(null)), None);
}

#[test]
fn the_factors_of_fast_mode_and_place_make_their_rates() {
    let entry = json!({
        "input_cost_per_token": 5e-6, "input_cost_per_token_above_200k_tokens": 1e-5,
        "input_cost_per_token_priority": 7e-6,
        "output_cost_per_token": "2.5e-5", "input_cost_per_request": 0.01,
        "provider_specific_entry": {"fast": 6.0, "us": 1.1, "eu": 1.2},
    });
    let of = |entry: &Value, tier| {
        let read = rates_from_json(entry, Belief::Usual).unwrap();
        let rates = read.iter().filter(|rate| rate.tier == tier);
        rates.map(|rate| (rate.kind, rate.above, rate.usd.to_string())).collect::<Vec<_>>()
    };
    let expected = [
        (CostKind::Input, 0, "0.00003".to_owned()),
        (CostKind::Input, 200_000, "0.00006".to_owned()),
        (CostKind::Output, 0, "0.00015".to_owned()),
    ];
    assert_eq!(of(&entry, ServiceTier::Fast), expected);
    let input = |tier| of(&entry, tier).remove(0).2;
    assert_eq!(
        (of(&entry, ServiceTier::Us).len(), input(ServiceTier::Us)),
        (3, "0.0000055".into())
    );
    assert_eq!(input(ServiceTier::FastUs), "0.000033");
    let mut only = entry.clone();
    for (left_out, [us, both]) in [("fast", [3, 3]), ("us", [0, 3])] {
        only["provider_specific_entry"] = entry["provider_specific_entry"].clone();
        only["provider_specific_entry"][left_out] = Value::Null;
        let found = [ServiceTier::Us, ServiceTier::FastUs].map(|tier| of(&only, tier).len());
        assert_eq!(found, [us, both], "without {left_out}");
    }
    let own = [(CostKind::Input, 0, "0.000007".to_owned())];
    assert_eq!(of(&entry, ServiceTier::Priority), own, "another tier");
    assert_eq!(stored_rates(&entry), rates_from_json(&entry, Belief::Usual).unwrap());
    assert_eq!(unapplied(&entry), ["provider_specific_entry.eu"]);
    // No factor.
    for factor in [json!("six"), json!(-1), json!(0), json!(101), json!([6])] {
        let mut entry = entry.clone();
        entry["provider_specific_entry"]["fast"] = factor.clone();
        assert!(of(&entry, ServiceTier::Fast).is_empty(), "{factor}");
        let is_named = unapplied(&entry).contains(&"provider_specific_entry.fast".to_owned());
        assert_eq!(is_named, factor != "six" && factor != 0, "{factor}");
    }
}

#[test]
fn prices_that_are_not_applied_are_named() {
    let entry = json!({
        "input_cost_per_token": 1e-6, "mode": "chat", "source": "https://a.example/pricing", "max_tokens": 5,
        "output_cost_per_second": 0.1, "input_cost_per_token_decisions": 1e-6, "input_cost_per_image": 0.0,
        "cache_creation_input_token_cost_above_12hr": "1e-6", "tiered_pricing": [{"range": [0, 1]}],
        "off_peak_pricing": {}, "input_cost_per_character": null,
        "input_cost_per_token_above_0k_tokens": 1e-6, "input_cost_per_token_flex_priority": 1e-6,
        "search_context_cost_per_query": {
            "search_context_size_low": 0.01, "search_context_size_medium": 0.01, "search_context_size_high": 0.02,
        },
    });
    let expected = [
        "output_cost_per_second",
        "input_cost_per_token_decisions",
        "tiered_pricing",
        "input_cost_per_token_above_0k_tokens",
        "input_cost_per_token_flex_priority",
        "search_context_cost_per_query.search_context_size_high",
    ];
    assert_eq!(unapplied(&entry), expected);
    assert!(unapplied(&json!("free")).is_empty());
}

#[test]
fn a_stored_entry_keeps_the_rates_that_can_be_read() {
    let entry = json!({"input_cost_per_token": 7, "output_cost_per_audio_token": "dear", "input_cost_per_token_flex": -1});
    let read = stored_rates(&entry);
    assert_eq!((read.iter().count(), read.base(CostKind::Input)), (1, Some(Decimal::from(7))));
    assert!(stored_rates(&json!([])).is_empty());
}
