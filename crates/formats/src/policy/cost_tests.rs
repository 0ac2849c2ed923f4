//! Costs calculated by hand, and general properties: more tokens never cost less, nothing is
//! charged twice, and every fall-back is the one in the header's table.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn rates(entry: Value) -> Rates {
    rates_from_json(&entry, Belief::Usual).unwrap()
}

fn full() -> Rates {
    rates(json!({
        "input_cost_per_token": 3e-6, "output_cost_per_token": 1.5e-5,
        "cache_creation_input_token_cost": 3.75e-6, "cache_creation_input_token_cost_above_1hr": 6e-6,
        "cache_read_input_token_cost": 3e-7,
        "input_cost_per_token_above_200k_tokens": 6e-6, "output_cost_per_token_above_200k_tokens": 2.25e-5,
        "cache_creation_input_token_cost_above_200k_tokens": 7.5e-6,
        "cache_read_input_token_cost_above_200k_tokens": 6e-7,
    }))
}

#[test]
fn totals_equal_the_sums_done_by_hand() {
    let plain = || rates(json!({"input_cost_per_token": 3e-6, "output_cost_per_token": 1.5e-5}));
    let image = rates(json!({
        "input_cost_per_token": 5e-6, "input_cost_per_image_token": 1e-5,
        "output_cost_per_token": 2e-5, "output_cost_per_image_token": 4e-5, "input_cost_per_request": 0.005,
    }));
    let usage = |input, output, write_5m, write_1h, read| Usage {
        input,
        output,
        cache_write_5m: write_5m,
        cache_write_1h: write_1h,
        cache_read: read,
        ..Usage::default()
    };
    let picture = Usage { image_input: 40, image_output: 1_000, ..usage(100, 1_200, 0, 0, 0) };
    let cases = [
        ("input and output", plain(), usage(1_000, 500, 0, 0, 0), "1", 10_500_000),
        // 1000 × (1 write, 1 read) at the input rate: 0.003 + 0.003 + 0.003
        ("cache without rates", plain(), usage(0, 0, 1_000, 1_000, 1_000), "1", 9_000_000),
        // 0.003 + 0.0075 + 0.00375 + 0.006 + 0.0003
        ("every kind", full(), usage(1_000, 500, 1_000, 1_000, 1_000), "1", 20_550_000),
        ("exactly 200 000 is not long", full(), usage(200_000, 1, 0, 0, 0), "1", 600_015_000),
        // 100 001 × 6e-6 + 100 000 × 6e-7 + 10 × 2.25e-5
        (
            "cached input counts for the tier",
            full(),
            usage(100_001, 10, 0, 0, 100_000),
            "1",
            660_231_000,
        ),
        // the base names one hour, the threshold does not: 300 000 × 6e-6
        (
            "a threshold falls back to the base",
            full(),
            usage(0, 0, 0, 300_000, 0),
            "1",
            1_800_000_000,
        ),
        // 60 × 5e-6 + 40 × 1e-5 + 200 × 2e-5 + 1000 × 4e-5 + 0.005
        ("images and a fee", image, picture, "1", 49_700_000),
        ("multiplier", plain(), usage(1_000, 500, 0, 0, 0), "0.35", 3_675_000),
        // 1 × 3e-6 × 0.0001 = 3e-10 → 0; 2 × … = 6e-10 → 1
        ("rounded down at the end", plain(), usage(1, 0, 0, 0, 0), "0.0001", 0),
        ("rounded up at the end", plain(), usage(2, 0, 0, 0, 0), "0.0001", 1),
        ("free", plain(), usage(9, 9, 9, 9, 9), "0", 0),
        ("negative multiplier", plain(), usage(9, 9, 9, 9, 9), "-1", 0),
    ];
    for (name, rates, usage, multiplier, nanos) in cases {
        let multiplier: Decimal = multiplier.parse().unwrap();
        assert_eq!(total(&rates, &usage, multiplier), NanoUsd(nanos), "{name}");
        assert_eq!(price(&rates, &usage, multiplier).total, NanoUsd(nanos), "{name}");
    }
}

/// 1 000 000 times the rate charged for each kind, for a usage of every kind.
fn charged_at(rates: &Rates, tier: ServiceTier, input: u64) -> Vec<(&'static str, String)> {
    let usage = Usage {
        input,
        output: 100,
        cache_write_5m: 1,
        cache_write_1h: 1,
        cache_read: 1,
        reasoning: 10,
        image_input: 1,
        image_output: 1,
        audio_input: 1,
        audio_output: 1,
        web_searches: 2,
        tier,
        ..Usage::default()
    };
    let million = Decimal::from(1_000_000);
    let lines = price(rates, &usage, Decimal::ONE).lines;
    lines
        .iter()
        .map(|line| (line.kind.as_str(), (line.rate.usd * million).normalize().to_string()))
        .collect()
}

type Expected = &'static [(&'static str, &'static str)];

/// An entry that lacks something of each kind.
fn sparse() -> Rates {
    rates(json!({
        "input_cost_per_token": 4e-6, "input_cost_per_token_above_128k_tokens": 6e-6,
        "input_cost_per_token_above_272k_tokens": 8e-6,
        "input_cost_per_token_flex": 2e-6, "input_cost_per_token_above_272k_tokens_flex": 4e-6,
        "input_cost_per_token_priority": 7e-6,
        "output_cost_per_token": 20e-6, "output_cost_per_token_above_128k_tokens": 30e-6,
        "output_cost_per_token_flex": 10e-6, "output_cost_per_token_priority": 40e-6,
        "output_cost_per_reasoning_token": 25e-6,
        "cache_creation_input_token_cost": 5e-6, "cache_creation_input_token_cost_flex": 2.5e-6,
        "cache_read_input_token_cost": 4e-7, "cache_read_input_token_cost_flex": 2e-7,
        "input_cost_per_audio_token": 5e-6, "input_cost_per_audio_token_flex": 3e-6,
        "output_cost_per_audio_token": 50e-6, "input_cost_per_image_token": 1e-6,
        "search_context_cost_per_query": {"search_context_size_medium": 0.01},
    }))
}

/// The charges of [`sparse`] for a short request at the standard tier, in millionths.
const PLAIN: Expected = &[
    ("input", "4"),
    ("image_input", "1"),
    ("audio_input", "5"),
    ("cache_write_5m", "5"),
    ("cache_write_1h", "5"),
    ("cache_read", "0.4"),
    ("output", "20"),
    ("image_output", "20"),
    ("audio_output", "50"),
    ("reasoning", "25"),
    ("web_search", "10000"),
];
/// The differences from that. Images, audio and reasoning cost no less than plain tokens above a
/// threshold.
const LONG: Expected = &[
    ("input", "6"),
    ("image_input", "6"),
    ("audio_input", "6"),
    ("output", "30"),
    ("image_output", "30"),
    ("reasoning", "30"),
];
const LONGER: Expected = &[
    ("input", "8"),
    ("image_input", "8"),
    ("audio_input", "8"),
    ("output", "30"),
    ("image_output", "30"),
    ("reasoning", "30"),
];
/// The tier's own rates; the one-hour write by the five-minute rate; reasoning as the tier's
/// output; images by the more expensive.
const FLEX: Expected = &[
    ("input", "2"),
    ("image_input", "2"),
    ("audio_input", "3"),
    ("cache_write_5m", "2.5"),
    ("cache_write_1h", "2.5"),
    ("cache_read", "0.2"),
    ("output", "10"),
    ("image_output", "10"),
    ("reasoning", "10"),
];
/// The tier has no threshold of 128 000 tokens, so the standard tier's more expensive rates apply.
const FLEX_LONG: Expected = &[
    ("input", "6"),
    ("image_input", "6"),
    ("audio_input", "6"),
    ("cache_write_5m", "2.5"),
    ("cache_write_1h", "2.5"),
    ("cache_read", "0.2"),
    ("output", "30"),
    ("image_output", "30"),
    ("reasoning", "30"),
];
/// It has one of 272 000 tokens for input.
const FLEX_LONGER: Expected = &[
    ("input", "4"),
    ("image_input", "4"),
    ("audio_input", "4"),
    ("cache_write_5m", "2.5"),
    ("cache_write_1h", "2.5"),
    ("cache_read", "0.2"),
    ("output", "30"),
    ("image_output", "30"),
    ("reasoning", "30"),
];
/// More expensive than the standard tier above 128 000 tokens, so these apply there too.
const PRIORITY: Expected = &[
    ("input", "7"),
    ("image_input", "7"),
    ("audio_input", "7"),
    ("output", "40"),
    ("image_output", "40"),
    ("reasoning", "40"),
];

#[test]
fn every_rate_falls_back_as_the_table_says() {
    use ServiceTier::{Batch, Flex, Priority, Standard};
    for (name, tier, input, changes) in [
        ("base", Standard, 100, [].as_slice()),
        ("long", Standard, 150_000, LONG),
        ("longer", Standard, 300_000, LONGER),
        ("flex", Flex, 100, FLEX),
        ("flex, long", Flex, 150_000, FLEX_LONG),
        ("flex, longer", Flex, 300_000, FLEX_LONGER),
        ("priority", Priority, 100, PRIORITY),
        ("priority, long", Priority, 150_000, PRIORITY),
        ("batch, which the entry does not know", Batch, 100, &[]),
    ] {
        let changed =
            |kind: &str| changes.iter().find(|(name, _)| *name == kind).map(|(_, rate)| *rate);
        let expected: Vec<_> = PLAIN
            .iter()
            .map(|(kind, rate)| (*kind, changed(kind).unwrap_or(rate).to_owned()))
            .collect();
        assert_eq!(charged_at(&sparse(), tier, input), expected, "{name}");
    }
    let nothing = rates(json!({"output_cost_per_token": 1e-6}));
    let kinds: Vec<_> =
        charged_at(&nothing, Standard, 100).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(
        kinds,
        ["output", "image_output", "audio_output"],
        "reasoning is inside output; the rest costs nothing"
    );
}

#[test]
fn the_highest_threshold_that_the_whole_input_passes_holds() {
    let entry = rates(json!({
        "input_cost_per_token": 1e-6, "input_cost_per_token_above_100k_tokens": 2e-6,
        "input_cost_per_token_above_512k_tokens": 3e-6, "input_cost_per_token_above_1m_tokens": 4e-6,
    }));
    for (input, read, rate) in [
        (100_000, 0, 1),
        (100_001, 0, 2),
        (1, 100_000, 2),
        (512_000, 0, 2),
        (512_001, 0, 3),
        (1_000_000, 0, 3),
        (900_000, 100_001, 4),
    ] {
        let usage = Usage { input, cache_read: read, ..Usage::default() };
        let nanos = i64::try_from((input + read) * rate * 1_000).unwrap();
        assert_eq!(total(&entry, &usage, Decimal::ONE), NanoUsd(nanos), "{input} + {read}");
    }
}

#[test]
fn one_rounding_for_the_whole_sum() {
    // Each part is 0.4 nano-USD: rounded separately, the sum would be zero.
    let tiny = rates(json!({"input_cost_per_token": 4e-10, "output_cost_per_token": 4e-10}));
    let usage = Usage { input: 1, output: 1, cache_read: 1, ..Usage::default() };
    assert_eq!(total(&tiny, &usage, Decimal::ONE), NanoUsd(1));
}

#[test]
fn lines_show_what_was_charged_and_add_up() {
    let usage = Usage { input: 10, output: 20, cache_read: 30, reasoning: 15, ..Usage::default() };
    let cost = price(&full(), &usage, Decimal::ONE);
    let kinds: Vec<_> = cost.lines.iter().map(|l| (l.kind.as_str(), l.quantity)).collect();
    assert_eq!(
        kinds,
        [("input", 10), ("cache_read", 30), ("output", 20)],
        "reasoning is inside output"
    );
    let sum: Decimal = cost.lines.iter().map(|l| l.amount).sum();
    assert_eq!(NanoUsd::from_decimal(sum), Some(cost.total));
}

#[test]
fn absurd_figures_saturate() {
    let usage =
        Usage { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, ..Usage::default() };
    let dear = rates(json!({"input_cost_per_token": 1, "output_cost_per_token": 1}));
    assert_eq!(total(&dear, &usage, Decimal::MAX), NanoUsd(i64::MAX));
}

const KINDS: [CostKind; 12] = [
    CostKind::Input,
    CostKind::ImageInput,
    CostKind::AudioInput,
    CostKind::CacheWrite5m,
    CostKind::CacheWrite1h,
    CostKind::CacheRead,
    CostKind::Output,
    CostKind::ImageOutput,
    CostKind::AudioOutput,
    CostKind::Reasoning,
    CostKind::WebSearch,
    CostKind::Request,
];

/// Parts larger than their wholes occur too.
fn usages() -> impl Strategy<Value = Usage> {
    (any::<[u32; 5]>(), any::<[u32; 5]>(), any::<u16>(), 0..4_usize).prop_map(
        |(whole, part, searches, tier)| {
            let ([whole, part], tier) =
                ([whole, part].map(|n| n.map(|n| u64::from(n) % 400_000)), ServiceTier::ALL[tier]);
            Usage {
                input: whole[0],
                output: whole[1],
                cache_write_5m: whole[2],
                cache_write_1h: whole[3],
                cache_read: whole[4],
                reasoning: part[0],
                image_input: part[1],
                image_output: part[2],
                audio_input: part[3],
                audio_output: part[4],
                web_searches: searches.into(),
                tier,
                ..Usage::default()
            }
        },
    )
}

/// Realistic entries: each has some kinds, and some tiers and thresholds of these. Rates rise with
/// each threshold (a tier's is at least the standard tier's one threshold below). Special tokens
/// cost at least as much as plain ones (reasoning at most half as much more).
fn entries() -> impl Strategy<Value = Rates> {
    let base =
        proptest::collection::vec(proptest::option::weighted(0.7, 1..1_000_i64), KINDS.len());
    let more = proptest::collection::vec((0..KINDS.len(), 0..4_usize, 0..4_i64), 0..30);
    (base, more).prop_map(|(mut base, more)| {
        let (input, output) = (base[0].unwrap_or(0), base[6].unwrap_or(0));
        for (part, whole) in [(1, input), (2, input), (7, output), (8, output)] {
            base[part] = base[part].map(|extra| whole + extra);
        }
        base[9] = base[9].map(|extra| output + extra % (output / 2 + 1));
        let rate = |kind: usize, tier: usize, step: i64| {
            let usd = Decimal::new(base[kind]? * ([2, 1, 4, 1][tier] + step), 8);
            let above = u64::try_from(step).unwrap() * 100_000;
            Some(Rate { kind: KINDS[kind], tier: ServiceTier::ALL[tier], above, usd })
        };
        let bases = (0..KINDS.len()).filter_map(|kind| rate(kind, 0, 0));
        let more = more.into_iter().filter_map(|(kind, tier, step)| rate(kind, tier, step));
        Rates::new(bases.chain(more).collect())
    })
}

proptest! {
    #[test]
    fn more_tokens_never_cost_less(rates in entries(), usage in usages(), more in any::<[u16; 6]>()) {
        let less = total(&rates, &usage, Decimal::ONE);
        let mut grown = usage;
        let fields = [
            &mut grown.input, &mut grown.output, &mut grown.cache_write_5m, &mut grown.cache_write_1h,
            &mut grown.cache_read, &mut grown.web_searches,
        ];
        for (field, more) in fields.into_iter().zip(more) {
            *field += u64::from(more);
        }
        // The additional tokens are plain text: parts that were cut off at their whole stay as they
        // were.
        grown.image_input = usage.image_input.min(usage.input);
        grown.audio_input = usage.audio_input.min(usage.input - grown.image_input);
        grown.image_output = usage.image_output.min(usage.output);
        grown.audio_output = usage.audio_output.min(usage.output - grown.image_output);
        grown.reasoning = usage.reasoning.min(usage.output - grown.image_output - grown.audio_output);
        prop_assert!(less >= NanoUsd::ZERO);
        let more = total(&rates, &grown, Decimal::ONE);
        prop_assert!(more >= less, "{grown:?} costs {more:?}, and {usage:?} {less:?}");
    }

    #[test]
    fn no_token_is_charged_twice_and_none_is_left_out(usage in usages(), named in any::<[bool; 11]>()) {
        let one = |kind| Rate { kind, tier: ServiceTier::Standard, above: 0, usd: Decimal::new(1, 3) };
        let named = |kind: &CostKind| matches!(kind, CostKind::Input | CostKind::Output) || named[*kind as usize];
        let rates = Rates::new(KINDS.into_iter().take(10).filter(named).map(one).collect());
        let tokens = usage.input + usage.cache_write_5m + usage.cache_write_1h + usage.cache_read + usage.output;
        let expected = NanoUsd(i64::try_from(tokens).unwrap() * 1_000_000);
        prop_assert_eq!(total(&rates, &usage, Decimal::ONE), expected);
    }

    #[test]
    fn the_lines_are_the_total(rates in entries(), usage in usages()) {
        let cost = price(&rates, &usage, Decimal::new(15, 1));
        let sum: Decimal = cost.lines.iter().map(|line| line.amount).sum();
        prop_assert_eq!(NanoUsd::from_decimal(sum * Decimal::new(15, 1)), Some(cost.total));
        prop_assert_eq!(cost.total, total(&rates, &usage, Decimal::new(15, 1)));
    }
}
