//! Each report's form, and what is refused.

use super::*;
use crate::domain::invoice::Tokens;

const DAY: Timestamp = Timestamp(1_793_491_200_000); // 2026-11-01

fn ask(part: ReportKind) -> Ask<'static> {
    let until = DAY.plus_ms(2 * DAY_MS);
    Ask { part, from: DAY, until, by_key: false, page: None }
}

#[test]
fn tokens_are_split_by_kind_and_cents_are_exact() {
    let usage = r#"{"data":[{"starting_at":"2026-11-01T00:00:00Z","ending_at":"2026-11-02T00:00:00Z",
        "results":[{"uncached_input_tokens":10,"cache_read_input_tokens":20,"output_tokens":5,
        "cache_creation":{"ephemeral_1h_input_tokens":4,"ephemeral_5m_input_tokens":3},
        "server_tool_use":{"web_search_requests":1},"api_key_id":null,"model":"m",
        "service_tier":"standard","context_window":"0-200k"}]}],"has_more":true,"next_page":"p2"}"#;
    let page = read(InvoiceKind::Anthropic, ReportKind::Usage, usage).unwrap();
    let [line] = &page.usage[..] else { panic!("{page:?}") };
    let tokens =
        Tokens { input: 10, cache_read: 20, cache_write_5m: 3, cache_write_1h: 4, output: 5 };
    assert_eq!((line.day, &line.api_key, line.tokens), (DAY, &None, tokens));
    assert_eq!(page.next.as_deref(), Some("p2"));

    let costs = r#"{"data":[{"starting_at":"2026-11-01T00:00:00Z","ending_at":"2026-11-02T00:00:00Z",
        "results":[{"currency":"USD","amount":"123.456789","workspace_id":null,"description":
        "Claude Usage - Output","cost_type":"tokens","context_window":"0-200k","model":"m",
        "service_tier":"standard","token_type":"output_tokens"},{"currency":"USD","amount":"1.5",
        "description":"Code Execution Usage","cost_type":"code_execution","model":null,
        "token_type":null,"service_tier":null,"context_window":null}]}],
        "has_more":false,"next_page":null}"#;
    let page = read(InvoiceKind::Anthropic, ReportKind::Costs, costs).unwrap();
    let shown: Vec<_> = page.costs.iter().map(|c| (c.kind, c.amount.0, c.what.as_str())).collect();
    let fee = (None, 15_000_000, "Code Execution Usage");
    assert_eq!(shown, [(Some(TokenKind::Output), 1_234_567_890, "Claude Usage - Output"), fee]);
}

#[test]
fn openai_counts_cached_tokens_within_the_input_and_names_models_in_texts() {
    let usage = r#"{"object":"page","data":[{"object":"bucket","start_time":1793491200,
        "end_time":1793577600,"results":[{"object":"organization.usage.completions.result",
        "input_tokens":100,"input_cached_tokens":60,"input_cache_write_tokens":10,
        "output_tokens":7,"num_model_requests":1,"model":"gpt-5.1","api_key_id":"key_1"}]}],
        "has_more":false,"next_page":null}"#;
    let page = read(InvoiceKind::OpenAi, ReportKind::Usage, usage).unwrap();
    let tokens =
        Tokens { input: 30, cache_read: 60, cache_write_5m: 10, cache_write_1h: 0, output: 7 };
    assert_eq!((page.usage[0].day, page.usage[0].tokens), (DAY, tokens));

    for (item, model, kind) in [
        ("gpt-5.1-2025-11-13, input", Some("gpt-5.1-2025-11-13"), Some(TokenKind::Input)),
        ("gpt-5.1, cached input", Some("gpt-5.1"), Some(TokenKind::CacheRead)),
        ("gpt-image-1 image, output", Some("gpt-image-1"), Some(TokenKind::Output)),
        ("web search tool calls", None, None),
    ] {
        for value in ["0.06", "\"0.06\"", "6e-2"] {
            let costs = format!(
                r#"{{"data":[{{"start_time":1793491200,"results":[{{"amount":{{"value":{value},
                "currency":"usd"}},"line_item":"{item}","project_id":null}}]}}],
                "has_more":false,"next_page":null}}"#
            );
            let page = read(InvoiceKind::OpenAi, ReportKind::Costs, &costs).unwrap();
            let [line] = &page.costs[..] else { panic!("{page:?}") };
            assert_eq!((line.model.as_deref(), line.kind), (model, kind), "{item}");
            assert_eq!((line.amount.0, line.what.as_str()), (60_000_000, item), "{value}");
        }
    }
}

#[test]
fn what_is_no_report_is_refused() {
    let bucket = r#"{"start_time":1,"results":[{"amount":{"value":1,"currency":"eur"}}]}"#;
    for text in [
        "",
        "{}",
        "<html>",
        r#"{"data":[],"has_more":true,"next_page":null}"#,
        &format!(r#"{{"data":[{bucket}],"has_more":false}}"#),
        &format!(
            r#"{{"data":[{}],"has_more":false}}"#,
            bucket.replace("eur", "usd").replace(":1,\"c", ":1e99,\"c")
        ),
    ] {
        assert!(read(InvoiceKind::OpenAi, ReportKind::Costs, text).is_err(), "{text}");
    }
}

#[test]
fn queries_ask_for_whole_days_grouped() {
    let (path, query) = super::query(InvoiceKind::Anthropic, &ask(ReportKind::Usage));
    assert_eq!(path, "/v1/organizations/usage_report/messages");
    assert!(query.contains(&("starting_at", "2026-11-01T00:00:00Z".to_owned())), "{query:?}");
    let (path, query) = super::query(InvoiceKind::OpenAi, &ask(ReportKind::Costs));
    assert_eq!(path, "/v1/organization/costs");
    assert!(query.contains(&("end_time", "1793664000".to_owned())), "{query:?}");
}

const AWS: &str = "line_item_usage_start_date,line_item_usage_type,line_item_unblended_cost,\
    line_item_usage_amount,line_item_currency_code,line_item_line_item_type,\
    line_item_product_code,pricing_unit\n\
    2026-11-01T03:00:00.000Z,USE1-Claude4.5Sonnet-input-tokens,0.006,2,USD,Usage,AmazonBedrock,1K tokens\n\
    2026-11-01T04:00:00.000Z,USE1-Claude4.5Sonnet-output-tokens,0.015,1000,USD,Usage,AmazonBedrock,Units\n\
    2026-11-01T04:00:00.000Z,BoxUsage:t3,5,1,USD,Usage,AmazonEC2,Hrs\n\
    2026-11-01T04:00:00.000Z,USE1-Claude4.5Sonnet-input-tokens,0.001,0,USD,Tax,AmazonBedrock,\n";

#[test]
fn a_billing_file_is_read_and_reduced() {
    let report = read_file(FileKind::Aws, AWS).unwrap();
    assert_eq!(report.usage.iter().map(|u| u.tokens.total()).collect::<Vec<_>>(), [2_000, 1_000]);
    assert_eq!(report.costs.iter().map(|c| c.amount.0).sum::<i64>(), 22_000_000);
    assert!(report.costs[2].what.starts_with("Tax: ") && report.costs[2].kind.is_none());
    let reduced = reduce(FileKind::Aws, AWS).unwrap();
    assert!(!reduced.contains("BoxUsage"), "{reduced}");
    assert_eq!(read_file(FileKind::Aws, &reduced).unwrap(), report);
    // The older form names its columns otherwise.
    let older = AWS.replacen("line_item_usage_start_date", "lineItem/UsageStartDate", 1).replacen(
        "line_item_usage_type",
        "lineItem/UsageType",
        1,
    );
    assert_eq!(read_file(FileKind::Aws, &older).unwrap(), report);

    let google = "service.description,sku.description,usage_start_time,usage.amount,usage.unit,cost,currency\n\
        Vertex AI,Gemini 2.5 Flash Text Input - Predictions,2026-11-01 07:00:00 UTC,1500,count,0.00045,USD\n\
        Cloud Storage,Standard Storage,2026-11-01 07:00:00 UTC,1,byte,1,USD\n";
    let report = read_file(FileKind::Google, google).unwrap();
    assert_eq!((report.usage.len(), report.usage[0].tokens.input), (1, 1_500));
    assert_eq!(report.costs[0].amount.0, 450_000);
}

#[test]
fn a_damaged_billing_file_names_its_line() {
    let of = |text: &str| read_file(FileKind::Aws, text).unwrap_err().0;
    assert!(of("a,b\n1,2\n").contains("no column line_item_usage_start_date"));
    assert!(of("").contains("no column"));
    for (bad, why) in [
        (AWS.replacen("0.006", "0,006", 1), "line 2 "),
        (AWS.replacen("0.015", "x", 1), "line 3 of the file: the amount x"),
        (AWS.replacen("2026-11-01T03", "1st of May", 1), "line 2 of the file: the time"),
        (AWS.replacen("USD", "EUR", 1), "line 2 of the file: the amounts are in EUR"),
        (AWS.replacen(",2,", ",99999999999999,", 1), "line 2 "),
    ] {
        let found = of(&bad);
        assert!(found.starts_with(why), "{found}");
    }
}
