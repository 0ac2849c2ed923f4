//! The billed usage of a reply: the final figures if they came, else an estimate from the content.

use super::UsageReader;
use crate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use crate::domain::usage::{ServiceTier, Usage};

/// Reads a stream's events, one JSON line each, as a whole and event by event; the results must
/// agree.
fn stream(format: WireFormat, lines: &str) -> UsageReader {
    let events = || lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut bytes = UsageReader::new(format, true);
    let mut single = UsageReader::of_events(format);
    for event in events() {
        bytes.feed(format!("data: {event}\n\n").as_bytes());
        single.event(event.as_bytes());
    }
    assert_eq!(bytes.estimate(77), single.estimate(77), "{lines}");
    assert_eq!(bytes.final_figures(), single.final_figures(), "{lines}");
    single
}

fn whole(format: WireFormat, body: &str) -> UsageReader {
    let mut reader = UsageReader::new(format, false);
    reader.feed(body.as_bytes());
    reader.finish();
    reader
}

/// The billed usage for an input estimated at 77 tokens: input, output, reasoning, and whether it
/// is final.
fn bill(reader: &UsageReader) -> (u64, u64, u64, bool) {
    let usage = reader.estimate(77);
    (usage.input, usage.output, usage.reasoning, reader.final_figures())
}

const START: &str = r#"{"type":"message_start","message":{"usage":{"input_tokens":1000,"output_tokens":500,"cache_read_input_tokens":9}}}"#;

#[test]
fn the_last_figures_of_a_native_stream_win() {
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":10,"input_tokens":900}}"#;
    let reader = stream(Native, &format!("{START}\n{delta}"));
    assert_eq!(bill(&reader), (900, 10, 0, true));
    assert_eq!(reader.usage().unwrap().cache_read, 9);
    let reader = stream(Native, &format!("{START}\n{delta}\n{}", r#"{"type":"message_stop"}"#));
    assert_eq!(bill(&reader), (900, 10, 0, true));
}

#[test]
fn a_native_stream_without_its_last_figures_is_estimated_even_if_it_ends() {
    let text = format!(
        r#"{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{}"}}}}"#,
        "x".repeat(3600)
    );
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}
        {"type":"message_stop"}"#;
    assert_eq!(bill(&stream(Native, &format!("{START}\n{text}\n{end}"))), (1000, 1000, 0, false));
    assert_eq!(
        bill(&stream(Native, START)),
        (1000, 500, 0, false),
        "never less than what was reported"
    );
}

#[test]
fn hidden_reasoning_is_in_the_estimate() {
    let block = |inner: &str| {
        format!(r#"{{"type":"content_block_start","index":0,"content_block":{inner}}}"#)
    };
    let delta =
        |inner: &str| format!(r#"{{"type":"content_block_delta","index":0,"delta":{inner}}}"#);
    let begun = block(r#"{"type":"thinking","thinking":"","signature":""}"#);
    let thought =
        delta(&format!(r#"{{"type":"thinking_delta","thinking":"{}"}}"#, "x".repeat(36_000)));
    let signed =
        delta(&format!(r#"{{"type":"signature_delta","signature":"{}"}}"#, "A".repeat(32_000)));
    let redacted =
        block(&format!(r#"{{"type":"redacted_thinking","data":"{}"}}"#, "A".repeat(16_000)));
    for (lines, reasoning) in [
        (vec![&begun], 1024),
        (vec![&begun, &thought], 10_000),
        (vec![&begun, &signed], 6_000),
        (vec![&begun, &thought, &signed], 10_000),
        (vec![&redacted], 3_000),
    ] {
        let lines: Vec<&str> =
            std::iter::once(START).chain(lines.into_iter().map(String::as_str)).collect();
        let reader = stream(Native, &lines.join("\n"));
        assert_eq!(bill(&reader), (1000, reasoning, reasoning, false), "{reasoning}");
    }
    let item = r#"{"type":"response.output_item.added","item":{"type":"reasoning","summary":[]}}"#;
    let summary = r#"{"type":"response.reasoning_summary_text.delta","delta":"a few words"}"#;
    let sealed = format!(
        r#"{{"type":"response.output_item.done","item":{{"encrypted_content":"{}","type":"reasoning"}}}}"#,
        "A".repeat(48_000)
    );
    let call = format!(
        r#"{{"type":"response.function_call_arguments.delta","delta":"{}"}}"#,
        "y".repeat(360)
    );
    assert_eq!(bill(&stream(Responses, item)), (77, 1024, 1024, false));
    assert_eq!(bill(&stream(Responses, &format!("{item}\n{summary}"))), (77, 1024, 1024, false));
    assert_eq!(
        bill(&stream(Responses, &format!("{item}\n{summary}\n{sealed}\n{call}"))),
        (77, 9_100, 9_000, false)
    );
    let chat = format!(
        r#"{{"choices":[{{"index":0,"delta":{{"reasoning_content":"{}"}}}}]}}"#,
        "x".repeat(3600)
    );
    assert_eq!(bill(&stream(Chat, &chat)), (77, 1000, 1000, false));
    let thought = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{}","thought":true}}]}}}}]}}"#,
        "x".repeat(3600)
    );
    assert_eq!(bill(&stream(AltCli, &thought)), (77, 1000, 1000, false));
}

#[test]
fn running_totals_of_a_cut_stream_are_the_least() {
    let lines = r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}],"usageMetadata":{"promptTokenCount":40,"thoughtsTokenCount":700,"totalTokenCount":740}}
        {"candidates":[{"content":{"parts":[{"text":"hello"}]}}]}"#;
    assert_eq!(bill(&stream(AltCli, lines)), (40, 702, 700, false));
    let lines = r#"{"choices":[{"delta":{"content":"hello"}}],"usage":{"prompt_tokens":40,"completion_tokens":300}}"#;
    assert_eq!(bill(&stream(Chat, lines)), (40, 300, 0, false));
}

#[test]
fn a_reason_that_says_nothing_and_the_first_of_several_answers_are_no_end() {
    for reason in [r#""""#, r#""FINISH_REASON_UNSPECIFIED""#, "null"] {
        let lines = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"a"}}]}},"finishReason":{reason}}}],"usageMetadata":{{"promptTokenCount":40,"candidatesTokenCount":1}}}}"#
        );
        let mut reader = stream(AltCli, &lines);
        assert!(!reader.final_figures(), "{reason}");
        reader.finish();
        assert!(!reader.seen_end(), "{reason}");
        let lines = format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"a"}},"finish_reason":{reason}}}]}}"#
        );
        let mut reader = stream(Chat, &lines);
        reader.finish();
        assert!(!reader.seen_end(), "{reason}");
    }
    let first = r#"{"candidates":[{"index":0,"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"b"}]}}],"usageMetadata":{"promptTokenCount":40,"candidatesTokenCount":5}}"#;
    let last = r#"{"candidates":[{"index":1,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":40,"candidatesTokenCount":500}}"#;
    let mut reader = stream(AltCli, first);
    assert!(!reader.final_figures());
    reader.finish();
    assert!(!reader.seen_end());
    let mut reader = stream(AltCli, &format!("{first}\n{last}"));
    assert!(!reader.seen_end(), "another answer, or the usage, may come");
    assert_eq!(bill(&reader), (40, 500, 0, true));
    reader.finish();
    assert!(reader.seen_end());
    let late = r#"{"usageMetadata":{"promptTokenCount":40,"candidatesTokenCount":800}}"#;
    assert_eq!(bill(&stream(AltCli, &format!("{first}\n{last}\n{late}"))), (40, 800, 0, true));
    let chat = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{"content":"b"}}]}"#;
    let mut reader = stream(Chat, chat);
    reader.finish();
    assert!(!reader.seen_end());
}

#[test]
fn usage_behind_the_finish_is_final_and_before_it_is_not() {
    let finish = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":300}}"#;
    assert!(!stream(Chat, finish).final_figures());
    assert_eq!(bill(&stream(Chat, &format!("{finish}\n{usage}"))), (40, 300, 0, true));
    assert!(!stream(Chat, &format!("{usage}\n{finish}")).final_figures());
    assert_eq!(bill(&stream(Chat, &format!("{usage}\n{finish}\n[DONE]"))), (40, 300, 0, true));
    let masked = r#"{"candidates":[{"content":{"parts":[{"text":"abcdefgh"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":40}}"#;
    assert_eq!(
        bill(&whole(AltCli, masked)),
        (40, 3, 0, false),
        "figures without output are not a bill"
    );
}

#[test]
fn audio_searches_and_the_tier_are_read_in_every_format() {
    let usage = |reader: UsageReader| reader.usage().unwrap();
    let native = usage(whole(
        Native,
        r#"{"type":"message","content":[],"usage":{"input_tokens":1,"output_tokens":1,"service_tier":"priority","server_tool_use":{"web_search_requests":3,"web_fetch_requests":2}}}"#,
    ));
    assert_eq!((native.web_searches, native.tier), (3, ServiceTier::Priority));
    let chat = usage(whole(
        Chat,
        r#"{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"service_tier":"flex","usage":{"prompt_tokens":100,"completion_tokens":50,"prompt_tokens_details":{"audio_tokens":60,"image_tokens":30,"cached_tokens":20},"completion_tokens_details":{"audio_tokens":48,"reasoning_tokens":10}}}"#,
    ));
    let expected = Usage {
        input: 80,
        output: 50,
        cache_read: 20,
        reasoning: 10,
        image_input: 30,
        audio_input: 50,
        audio_output: 40,
        tier: ServiceTier::Flex,
        ..Usage::default()
    };
    assert_eq!(chat, expected, "parts overlap neither with the cache nor with each other");
    let alt = usage(whole(
        AltCli,
        r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b"]}}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":20,"cachedContentTokenCount":30,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":50},{"modality":"TEXT","tokenCount":50}],"cacheTokensDetails":[{"tokenCount":30,"modality":"AUDIO"}],"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":15}],"trafficType":"ON_DEMAND_PRIORITY"}}"#,
    ));
    assert_eq!((alt.input, alt.audio_input, alt.audio_output), (70, 20, 15));
    assert_eq!((alt.web_searches, alt.tier), (2, ServiceTier::Priority));
}

/// What is billed of a body that ends after its first `x`s.
#[test]
fn the_unfinished_part_of_a_cut_body_counts() {
    let text = "x".repeat(36_000);
    let cases = [
        (Native, r#"{"type":"message","content":[{"type":"text","text":"@"#, (10_000, 0)),
        (
            Native,
            r#"{"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use","name":"w","input":{"path":"b","content":"@"#,
            (10_008, 0),
        ),
        (
            Native,
            r#"{"type":"message","content":[{"type":"thinking","thinking":"@"#,
            (10_000, 10_000),
        ),
        (Chat, r#"{"choices":[{"message":{"content":"@"#, (10_000, 0)),
        (
            Chat,
            r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"w","arguments":"@"#,
            (10_001, 0),
        ),
        (Responses, r#"{"output":[{"type":"message","content":[{"text":"@"#, (10_000, 0)),
        (
            Responses,
            r#"{"output":[{"type":"message","content":[{"text":"abc"}]},{"type":"function_call","arguments":"@"#,
            (10_001, 0),
        ),
        (AltCli, r#"{"candidates":[{"content":{"parts":[{"text":"@"#, (10_000, 0)),
        (
            AltCli,
            r#"{"candidates":[{"content":{"parts":[{"thought":true,"text":"@"#,
            (10_000, 10_000),
        ),
        // Media are not a measure of tokens, nor is what is not read.
        (AltCli, r#"{"candidates":[{"content":{"parts":[{"inlineData":{"data":"@"#, (0, 0)),
        (Chat, r#"{"id":"@"#, (0, 0)),
    ];
    for (format, beginning, (output, reasoning)) in cases {
        let mut reader = UsageReader::new(format, false);
        let body = beginning.replace('@', &text);
        for piece in body.as_bytes().chunks(1000) {
            reader.feed(piece);
        }
        assert!(!reader.is_whole());
        reader.finish();
        assert_eq!(bill(&reader), (77, output, reasoning, false), "{format} {beginning}");
    }
}

#[test]
fn compaction_is_added_to_the_sums_that_leave_it_out() {
    let usage = r#"{"input_tokens":23000,"output_tokens":1000,"cache_read_input_tokens":5,"output_tokens_details":{"thinking_tokens":400},"iterations":[
        {"type":"compaction","input_tokens":180000,"output_tokens":3500,"cache_read_input_tokens":7,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_1h_input_tokens":20}},
        {"type":"message","input_tokens":23000,"output_tokens":1000,"cache_read_input_tokens":5},
        {"output_tokens":2,"type":"compaction"},
        {"type":"advisor_message","model":"m","input_tokens":9,"output_tokens":9}]}"#.replace('\n', "");
    let expected = Usage {
        input: 203_000,
        output: 4502,
        cache_read: 12,
        cache_write_5m: 10,
        cache_write_1h: 20,
        reasoning: 400,
        ..Usage::default()
    };
    let body =
        format!(r#"{{"type":"message","content":[],"stop_reason":"end_turn","usage":{usage}}}"#);
    assert_eq!(whole(Native, &body).usage(), Some(expected));
    // Repeated at the end of a stream it counts once.
    let lines = format!(
        "{{\"type\":\"message_start\",\"message\":{{\"usage\":{usage}}}}}\n\
         {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{usage}}}"
    );
    assert_eq!(stream(Native, &lines).usage(), Some(expected));
}

#[test]
fn the_fast_mode_is_a_tier_of_its_own() {
    let tier = |words: &str| {
        let body = format!(
            r#"{{"type":"message","content":[],"stop_reason":"end_turn","usage":{{"input_tokens":1,"output_tokens":1,{words}}}}}"#
        );
        whole(Native, &body).usage().unwrap().tier
    };
    assert_eq!(tier(r#""speed":"fast","service_tier":"priority""#), ServiceTier::Fast);
    assert_eq!(tier(r#""service_tier":"priority","speed":"standard""#), ServiceTier::Priority);
    assert_eq!(tier(r#""service_tier":"standard","speed":null"#), ServiceTier::Standard);
    assert_eq!(tier(r#""service_tier":"standard","inference_geo":"us""#), ServiceTier::Us);
    assert_eq!(tier(r#""inference_geo":"us","speed":"fast""#), ServiceTier::FastUs);
    assert_eq!(tier(r#""inference_geo":"us","service_tier":"batch""#), ServiceTier::Batch);
    for other in ["\"global\"", "\"not_available\"", "null"] {
        assert_eq!(tier(&format!(r#""inference_geo":{other}"#)), ServiceTier::Standard, "{other}");
    }
}

#[test]
fn reasoning_or_cached_tokens_that_only_the_total_has_are_billed() {
    let chat = |usage: &str| {
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"x"}},"finish_reason":"stop"}}],"usage":{{{usage}}}}}"#
        );
        let usage = whole(Chat, &body).usage().unwrap();
        (usage.input, usage.cache_read, usage.output, usage.reasoning)
    };
    let only_total = r#""prompt_tokens":20,"completion_tokens":198,"total_tokens":623"#;
    assert_eq!(chat(only_total), (20, 0, 603, 405));
    let no_completion = r#""prompt_tokens":20,"total_tokens":623"#;
    assert_eq!(chat(no_completion), (20, 0, 603, 0));
    let apart = r#""prompt_tokens":20,"completion_tokens":10,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":100}"#;
    assert_eq!(chat(apart), (20, 100, 10, 0));
    let both = r#""prompt_tokens":20,"completion_tokens":10,"total_tokens":135,"cache_read_input_tokens":100,"completion_tokens_details":{"reasoning_tokens":5}"#;
    assert_eq!(chat(both), (20, 100, 15, 5));
    let within = r#""prompt_tokens":120,"completion_tokens":10,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":100}"#;
    assert_eq!(chat(within), (20, 100, 10, 0));
    let no_prompt = r#""completion_tokens":300,"total_tokens":1300"#;
    assert_eq!(chat(no_prompt), (1000, 0, 300, 0));
    assert_eq!(chat(&format!(r#""prompt_tokens":0,{no_prompt}"#)), (1000, 0, 300, 0));
    let read_beside =
        r#""prompt_tokens":20,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":100}"#;
    assert_eq!(chat(read_beside), (20, 100, 10, 0));
    let writes_beside = r#""prompt_tokens":1100,"completion_tokens":10,"total_tokens":6110,"cache_creation_input_tokens":5000,"prompt_tokens_details":{"cached_tokens":1000}"#;
    assert_eq!(chat(writes_beside), (100, 1000, 10, 0));
    let hidden = r#""prompt_tokens":20,"completion_tokens":10,"total_tokens":135,"prompt_tokens_details":{"cached_tokens":100}"#;
    assert_eq!(chat(hidden), (20, 100, 15, 5));
    let small = r#""prompt_tokens":20,"completion_tokens":198,"total_tokens":7"#;
    assert_eq!(chat(small), (20, 0, 198, 0));
    let body = r#"{"status":"completed","output":[{"type":"reasoning"}],"usage":{"input_tokens":21,"output_tokens":0,"output_tokens_details":{"reasoning_tokens":60},"total_tokens":81}}"#;
    assert_eq!(bill(&whole(Responses, body)), (21, 60, 60, true));
}

#[test]
fn searches_of_an_alt_cli_reply_are_its_different_queries() {
    let event = r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"groundingMetadata":{"webSearchQueries":["a"]}}]}"#;
    let last = r#"{"candidates":[{"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b","","c","b",null]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2}}"#;
    assert_eq!(stream(AltCli, &format!("{event}\n{last}")).estimate(7).web_searches, 3);
}

#[test]
fn figures_whose_input_is_missing_or_of_zeros_are_not_final() {
    let text = "a text of some forty characters, more or less";
    let chat = |usage: &str| {
        let lines = format!(
            "{{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}],\"usage\":{usage}}}"
        );
        bill(&stream(Chat, &lines))
    };
    let (input, output, _, is_final) =
        chat(r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#);
    assert_eq!((input, is_final), (77, false));
    assert!(output > 5, "{output}");
    assert_eq!(chat(r#"{"completion_tokens":300}"#), (77, 300, 0, false));
    assert_eq!(chat(r#"{"prompt_tokens":3,"completion_tokens":0}"#), (3, 0, 0, true));
    // What a provider reports counts, though it claims an empty prompt.
    assert_eq!(chat(r#"{"prompt_tokens":0,"completion_tokens":300}"#), (0, 300, 0, true));
    // A total of other sums says nothing of later ones.
    let lines = format!(
        "{{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}],\"usage\":{{\"prompt_tokens\":1000,\"completion_tokens\":1,\"total_tokens\":1001}}}}\n\
         {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":200,\"completion_tokens\":9}}}}"
    );
    assert_eq!(bill(&stream(Chat, &lines)), (200, 9, 0, true));
    // Nor do those of the start count beside an output that comes later.
    let lines = format!(
        "{{\"type\":\"message_start\",\"message\":{{\"usage\":{{\"input_tokens\":0,\"output_tokens\":0}}}}}}\n\
         {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\
         {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{{\"output_tokens\":300}}}}\n\
         {{\"type\":\"message_stop\"}}"
    );
    assert_eq!(bill(&stream(Native, &lines)), (77, 300, 0, false));
    // Zeros at the end are not the figures that replace those of the start.
    let lines = format!(
        "{{\"type\":\"message_start\",\"message\":{{\"usage\":{{\"input_tokens\":25,\"output_tokens\":1}}}}}}\n\
         {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\
         {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{{\"input_tokens\":0,\"output_tokens\":0}}}}\n\
         {{\"type\":\"message_stop\"}}"
    );
    let (input, output, _, is_final) = bill(&stream(Native, &lines));
    assert_eq!((input, is_final), (25, false));
    assert!(output > 5, "{output}");
}

#[test]
fn searches_of_a_response_are_its_items_in_a_stream_and_whole() {
    let item = |action: &str| {
        format!(
            r#"{{"type":"web_search_call","status":"completed","action":{{"type":"{action}"}}}}"#
        )
    };
    let items = ["search", "open_page", "search", "find_in_page"].map(item);
    let body = format!(
        r#"{{"status":"completed","service_tier":"default","output":[{}],"usage":{{"input_tokens":4,"output_tokens":2}}}}"#,
        items.join(",")
    );
    assert_eq!(whole(Responses, &body).usage().unwrap().web_searches, 2);
    let mut lines: Vec<String> = items
        .iter()
        .map(|item| format!(r#"{{"type":"response.output_item.done","item":{item}}}"#))
        .collect();
    assert_eq!(
        stream(Responses, &lines.join("\n")).estimate(7).web_searches,
        2,
        "of a stream that is cut, too"
    );
    lines.push(format!(r#"{{"type":"response.completed","response":{body}}}"#));
    let reported = body.replace(
        r#""usage":"#,
        r#""tool_usage":{"image_gen":{"input_tokens":0},"web_search":{"num_requests":1}},"usage":"#,
    );
    assert_eq!(
        whole(Responses, &reported).usage().unwrap().web_searches,
        1,
        "what the service counts itself wins"
    );
    let reader = stream(Responses, &lines.join("\n"));
    assert_eq!((reader.usage().unwrap().web_searches, reader.final_figures()), (2, true));
}

/// As if it had not been reported.
#[test]
fn an_absurd_figure_is_none() {
    for absurd in ["18446744073709551615", "1000000000001", "1e12", "8999999999999999"] {
        let body = |input: &str, output: &str| {
            let usage = format!(r#""usage":{{"input_tokens":{input},"output_tokens":{output}}}"#);
            let text = "x".repeat(36);
            let content = format!(r#""content":[{{"type":"text","text":"{text}"}}]"#);
            format!(r#"{{"type":"message",{content},{usage}}}"#)
        };
        assert_eq!(bill(&whole(Native, &body(absurd, "5"))), (77, 10, 0, false), "{absurd}");
        assert_eq!(bill(&whole(Native, &body("9", absurd))), (9, 10, 0, false), "{absurd}");
        assert_eq!(bill(&whole(Native, &body("9", "1000000"))), (9, 1_000_000, 0, true));
    }
}

#[test]
fn the_services_own_estimate_of_hidden_reasoning_counts() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;
    let delta = |tokens: &str| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"thinking_delta","thinking":"","estimated_tokens":{tokens}}}}}"#
        )
    };
    let cut = |tokens: &[&str]| {
        let deltas: Vec<String> = tokens.iter().map(|tokens| delta(tokens)).collect();
        bill(&stream(Native, &format!("{START}\n{start}\n{}", deltas.join("\n"))))
    };
    // The same figure twice, as an increment.
    assert_eq!(cut(&["2000", "null", "2000", "500"]), (1000, 4500, 4500, false));
    assert_eq!(cut(&["null", "null"]), (1000, 1024, 1024, false));
}

#[test]
fn what_became_of_earlier_reasoning_is_told() {
    let told = |reader: &UsageReader| super::describe_changes(&reader.bill(77).changes);
    let dropped = r#"{"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"}"#;
    let allowed = r#"{"type":"thinking_mismatch_allowed","path":"messages.3.content.0","reason":"prefix_binding_mismatch"}"#;
    let start = |list: &str| {
        format!(
            r#"{{"type":"message_start","message":{{"usage":{{"input_tokens":1}},"input_transformations":[{list}]}}}}"#
        )
    };
    let reader = stream(Native, &start(&format!("{dropped},{allowed},{dropped}")));
    assert_eq!(
        told(&reader).as_deref(),
        Some(
            "the provider left out reasoning of earlier turns: prefix_binding_mismatch (2); the \
             provider kept reasoning of earlier turns that does not fit: prefix_binding_mismatch \
             (1)"
        )
    );
    // After a fallback the list comes again.
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"input_transformations":[{"type":"thinking_dropped","reason":"model_binding_mismatch"}],"usage":{"output_tokens":1}}"#;
    let reader = stream(Native, &format!("{}\n{delta}", start(dropped)));
    let model = "the provider left out reasoning of earlier turns: model_binding_mismatch (1)";
    assert_eq!(told(&reader).as_deref(), Some(model));
    assert_eq!(told(&stream(Native, &start(""))), None);

    let removed = r#"{"type":"reasoning","action":"removed","reason":"organization_mismatch"}"#;
    let body = format!(
        r#"{{"status":"completed","output":[{{"type":"message"}}],"input_transformations":[{removed}]}}"#
    );
    let organization =
        "the provider left out reasoning of earlier turns: organization_mismatch (1)";
    assert_eq!(told(&whole(Responses, &body)).as_deref(), Some(organization));
    let event = format!(r#"{{"type":"response.completed","response":{body}}}"#);
    assert_eq!(told(&stream(Responses, &event)).as_deref(), Some(organization));
}
