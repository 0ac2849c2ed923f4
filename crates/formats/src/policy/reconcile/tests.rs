//! Each cause, and whose use counts.

use super::*;
use crate::domain::invoice::TokenKind;

const DAY: Timestamp = Timestamp(0);
const LATER: Timestamp = Timestamp(100 * DAY_MS);

fn tokens(input: i64, output: i64) -> Tokens {
    Tokens { input, output, ..Tokens::default() }
}

fn ledger(day: i64, model: &str, tokens: Tokens, cost: i64) -> LedgerLine {
    LedgerLine {
        day: Timestamp(day * DAY_MS),
        model: "alias".to_owned(),
        upstream_model: model.to_owned(),
        requests: 3,
        failed: 0,
        unpriced: 0,
        tokens,
        cost: NanoUsd(cost),
    }
}

fn used(day: i64, model: &str, key: Option<&str>, tokens: Tokens) -> UsageLine {
    UsageLine {
        day: Timestamp(day * DAY_MS),
        model: model.to_owned(),
        api_key: key.map(str::to_owned),
        variant: "standard".to_owned(),
        tokens,
    }
}

fn charged(day: i64, model: Option<&str>, kind: Option<TokenKind>, amount: i64) -> CostLine {
    CostLine {
        day: Timestamp(day * DAY_MS),
        model: model.map(str::to_owned),
        api_key: None,
        variant: "standard".to_owned(),
        kind,
        what: "Web Search Usage".to_owned(),
        amount: NanoUsd(amount),
    }
}

fn report(usage: Vec<UsageLine>, costs: Vec<CostLine>) -> VendorReport {
    VendorReport { usage, costs, ..VendorReport::default() }
}

const ALL: Scope<'static> = Scope { api_keys: &[], complete_until: LATER };
const USD: i64 = 1_000_000_000;
const OUT: Option<TokenKind> = Some(TokenKind::Output);

fn causes(report: &VendorReport, ledger: &[LedgerLine], scope: Scope<'_>) -> Vec<Option<Cause>> {
    compare(report, ledger, scope).into_iter().map(|row| row.cause).collect()
}

#[test]
fn equal_sides_have_no_cause_and_dates_of_models_do_not_count() {
    let vendor = report(
        vec![used(0, "claude-x-20260101", Some("k"), tokens(10, 5))],
        vec![charged(0, Some("claude-x-20260101"), OUT, USD)],
    );
    let rows = compare(&vendor, &[ledger(0, "claude-x", tokens(10, 5), USD + 4_000_000)], ALL);
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.cause, row.tokens()), (None, Tokens::default()));
    assert!(row.requested.contains("alias") && row.api_keys.contains("k"));
}

#[test]
fn each_difference_has_its_likeliest_cause() {
    let own = |tokens, cost| vec![ledger(0, "m", tokens, cost)];
    let vendor = |tokens, cost| {
        report(vec![used(0, "m", Some("k"), tokens)], vec![charged(0, Some("m"), OUT, cost)])
    };
    let failed = LedgerLine { failed: 1, ..ledger(0, "m", tokens(10, 5), USD) };
    let unpriced = LedgerLine { unpriced: 1, ..ledger(0, "m", tokens(10, 5), 0) };
    let early = Scope { complete_until: DAY, ..ALL };
    let cached = Tokens { cache_read: 2, ..tokens(8, 5) };
    for (vendor, own, scope, cause) in [
        (vendor(tokens(10, 9), USD), own(tokens(10, 5), USD), ALL, Cause::OutsideGateway),
        (vendor(tokens(10, 9), USD), vec![failed], ALL, Cause::FailedAfterSent),
        (vendor(tokens(10, 5), 2 * USD), own(tokens(10, 5), USD), ALL, Cause::PriceChanged),
        (vendor(tokens(10, 5), 2 * USD), vec![unpriced], ALL, Cause::NoPrice),
        (vendor(tokens(1, 1), USD), own(tokens(10, 5), USD), ALL, Cause::NotInReport),
        (vendor(tokens(1, 1), USD), own(tokens(10, 5), USD), early, Cause::ReportNotComplete),
        (report(vec![], vec![]), own(tokens(10, 5), USD), early, Cause::ReportNotComplete),
        (report(vec![], vec![]), own(tokens(10, 5), USD), ALL, Cause::NotInReport),
        (vendor(cached, USD), own(tokens(10, 5), USD), ALL, Cause::OtherKind),
        (vendor(tokens(10, 5), USD), vec![], ALL, Cause::OutsideGateway),
    ] {
        assert_eq!(causes(&vendor, &own, scope), [Some(cause)], "{cause:?}");
    }
}

#[test]
fn requests_around_midnight_and_fees_explain_each_other() {
    let vendor = report(
        vec![used(0, "m", Some("k"), tokens(10, 5)), used(1, "m", Some("k"), tokens(20, 6))],
        vec![],
    );
    let own = [ledger(0, "m", tokens(11, 7), 0), ledger(1, "m", tokens(19, 4), 0)];
    assert_eq!(causes(&vendor, &own, ALL), [Some(Cause::OtherDay); 2]);

    let vendor = report(
        vec![used(0, "m", Some("k"), tokens(10, 5))],
        vec![charged(0, Some("m"), OUT, USD), charged(0, None, None, USD / 2)],
    );
    let both = [Some(Cause::CountedWithModel); 2];
    assert_eq!(causes(&vendor, &[ledger(0, "m", tokens(10, 5), USD * 3 / 2)], ALL), both);
    let rows = compare(&vendor, &[ledger(0, "m", tokens(10, 5), USD)], ALL);
    assert_eq!(rows.iter().map(|r| r.cause).collect::<Vec<_>>(), [None, Some(Cause::UnknownFee)]);
    let total = day_totals(&rows, LATER);
    let fee = DayTotal { day: DAY, money: NanoUsd(USD / 2), cause: Some(Cause::UnknownFee) };
    assert_eq!(total, [fee]);
    assert_eq!(day_totals(&rows, DAY), [], "a day that is not complete raises no alarm");
}

#[test]
fn other_keys_are_left_out_with_their_share_of_the_money() {
    let vendor = report(
        vec![
            used(0, "m", Some("own"), tokens(0, 30)),
            used(0, "m", Some("other"), tokens(0, 60)),
            used(0, "m", None, tokens(0, 10)),
        ],
        vec![charged(0, Some("m"), OUT, USD)],
    );
    let own = [ledger(0, "m", tokens(0, 30), USD * 3 / 10)];
    let keys = ["own".to_owned()];
    let rows = compare(&vendor, &own, Scope { api_keys: &keys, ..ALL });
    assert_eq!(rows.iter().map(|row| row.cause).collect::<Vec<_>>(), [None], "{rows:?}");
    // Without a list of keys, all of them count, and the use without a key is a row of its own.
    let rows = compare(&vendor, &own, ALL);
    let money: Vec<_> = rows.iter().map(|row| (row.part, row.vendor.cost, row.cause)).collect();
    let outside = Some(Cause::OutsideGateway);
    let of = |part, tenths| (part, Some(NanoUsd(USD / 10 * tenths)), outside);
    assert_eq!(money, [of(UsedBy::Provider, 9), of(UsedBy::NoKey, 1)]);
}

#[test]
fn a_description_names_the_model_with_the_most_of_its_words() {
    let models = [
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "anthropic.claude-sonnet-4-20250514-v1:0",
        "gemini-2.5-flash",
        "gemini-2.5-flash-lite",
        "gpt-4o",
    ];
    let lines: Vec<_> = models.iter().map(|model| ledger(0, model, tokens(1, 1), 1)).collect();
    let names = VendorNames::new(&lines, true);
    for (text, expected) in [
        ("USE1-Claude4.5Sonnet-input-tokens", Some(models[0])),
        ("Claude Sonnet 4 (Amazon Bedrock Edition) · Input", Some(models[1])),
        ("Claude Sonnet 4.5 (Amazon Bedrock Edition) · 5m cache write", Some(models[0])),
        ("Gemini 2.5 Flash Text Input - Predictions", Some(models[2])),
        ("Gemini 2.5 Flash Lite GA Text Output", Some(models[3])),
        ("Gemini 3.5 Flash Text Input", None),
        ("GPT-4o mini input", Some(models[4])),
        ("Claude Opus 4.5 output", None),
    ] {
        assert_eq!(names.of(text), expected.unwrap_or(text), "{text}");
    }
    let only_4 = VendorNames::new(&lines[1..2], true);
    assert_eq!(only_4.of("Claude Sonnet 4.5 output"), "Claude Sonnet 4.5 output");
}
