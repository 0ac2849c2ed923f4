//! Error bodies and events in each format, and upstream errors read back.

use serde_json::{Value, json};

use super::{
    ErrorReply, UpstreamError, body, has_shape, kind_for, kind_of_status, read, stream_event,
};
use crate::domain::format::WireFormat;
use crate::formats::sse::Assembler;

fn reply<'a>(extra: &'a [(&'a str, Value)]) -> ErrorReply<'a> {
    ErrorReply {
        status: 429,
        kind: "rate_limit_error",
        message: "the key has used up its day",
        code: Some("rate_limit_exceeded"),
        extra,
    }
}

fn parsed(format: WireFormat, error: &ErrorReply<'_>) -> Value {
    serde_json::from_slice(&body(format, error)).unwrap()
}

fn events(bytes: &[u8]) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    let each = |e: crate::formats::sse::Event<'_>| {
        out.push((e.name.to_owned(), serde_json::from_slice(e.data).unwrap()));
    };
    Assembler::new(1 << 16).feed(bytes, each).unwrap();
    out
}

#[test]
fn a_limit_refusal_has_each_formats_shape() {
    let extra =
        [("limit_type", json!("key_daily")), ("limit", json!(5)), ("request_id", json!("req_1"))];
    let error = reply(&extra);
    assert_eq!(
        parsed(WireFormat::Native, &error),
        json!({"type": "error", "request_id": "req_1", "error": {"type": "rate_limit_error",
            "message": "the key has used up its day", "code": "rate_limit_exceeded",
            "limit_type": "key_daily", "limit": 5}})
    );
    for format in [WireFormat::Chat, WireFormat::Responses] {
        assert_eq!(
            parsed(format, &error),
            json!({"error": {"message": "the key has used up its day", "type": "rate_limit_error", "param": null,
                "code": "rate_limit_exceeded", "limit_type": "key_daily", "limit": 5}})
        );
    }
    let alt = parsed(WireFormat::AltCli, &error);
    assert_eq!(
        (&alt["error"]["code"], &alt["error"]["status"], &alt["error"]["limit_type"]),
        (&json!(429), &json!("RESOURCE_EXHAUSTED"), &json!("key_daily"))
    );
    assert_eq!(alt["error"]["details"][0]["reason"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(alt["error"]["details"][0]["metadata"]["limit"], "5");
}

#[test]
fn a_providers_kind_is_kept_where_the_clients_format_has_such_kinds() {
    for (client, kind, expected) in [
        (WireFormat::Native, "not_found_error", "not_found_error"),
        (WireFormat::Native, "server_error", "invalid_request_error"),
        (WireFormat::Native, "INVALID_ARGUMENT", "invalid_request_error"),
        (WireFormat::Chat, "server_error", "server_error"),
        (WireFormat::Chat, "a_vendors_own", "a_vendors_own"),
        (WireFormat::Chat, "INVALID_ARGUMENT", "invalid_request_error"),
        (WireFormat::Responses, "INVALID_ARGUMENT", "invalid_request_error"),
        (WireFormat::Responses, "400", "invalid_request_error"),
    ] {
        assert_eq!(kind_for(client, Some(kind), 400), expected, "{kind} for {client}");
    }
    assert_eq!(kind_for(WireFormat::Chat, None, 404), "not_found_error");
}

#[test]
fn the_faulty_field_is_named() {
    let extra = [("param", json!("stream"))];
    let error = ErrorReply {
        status: 400,
        kind: "invalid_request_error",
        message: "bad",
        code: None,
        extra: &extra,
    };
    assert_eq!(parsed(WireFormat::Chat, &error)["error"]["param"], "stream");
    assert_eq!(
        parsed(WireFormat::AltCli, &error)["error"]["details"][0]["metadata"]["field"],
        "stream"
    );
    assert_eq!(parsed(WireFormat::AltCli, &error)["error"]["status"], "INVALID_ARGUMENT");
}

#[test]
fn stream_errors_are_whole_events_that_clients_recognise() {
    let extra = [("sequence_number", json!(7)), ("response_id", json!("resp_x"))];
    let error = reply(&extra);
    let native = events(&stream_event(WireFormat::Native, &error));
    assert_eq!((native[0].0.as_str(), &native[0].1["type"]), ("error", &json!("error")));
    for format in [WireFormat::Chat, WireFormat::AltCli] {
        let bytes = stream_event(format, &error);
        assert!(bytes.starts_with(b"data: {\"error\":"), "{format}");
        assert_eq!(events(&bytes).len(), 1, "{format}");
    }
    let responses = events(&stream_event(WireFormat::Responses, &error));
    assert_eq!(responses[0].1["sequence_number"], 7);
    assert_eq!(responses[0].1["message"], responses[0].1["error"]["message"]);
    assert_eq!(
        (responses[1].0.as_str(), &responses[1].1["sequence_number"]),
        ("response.failed", &json!(8))
    );
    assert_eq!(responses[1].1["response"]["id"], "resp_x");
    assert_eq!(responses[1].1["response"]["error"]["code"], "rate_limit_exceeded");
}

#[test]
fn a_message_with_line_breaks_stays_one_event() {
    let error = ErrorReply {
        status: 500,
        kind: "api_error",
        message: "one\n\ntwo\r\n",
        code: None,
        extra: &[],
    };
    for format in WireFormat::ALL {
        let all = events(&stream_event(format, &error));
        assert!(all.iter().all(|(_, v)| v.to_string().contains("one\\n\\ntwo")), "{format}");
    }
}

#[test]
fn a_spent_limit_is_said_in_the_form_that_ends_each_formats_clients() {
    let extra = [
        ("limit_type", json!("key_daily")),
        ("reset_at", json!("2026-11-23T00:00:00.000Z")),
        ("resets_at", json!(17)),
    ];
    let error = ErrorReply { kind: super::SPENT, ..reply(&extra) };
    let of = |format| parsed(format, &error)["error"].clone();
    let native = of(WireFormat::Native);
    assert_eq!(
        (&native["type"], &native["code"]),
        (&json!("rate_limit_error"), &json!("rate_limit_exceeded"))
    );
    let chat = of(WireFormat::Chat);
    assert_eq!(
        (&chat["type"], &chat["code"]),
        (&json!("insufficient_quota"), &json!("insufficient_quota"))
    );
    let responses = of(WireFormat::Responses);
    assert_eq!(
        (&responses["type"], &responses["code"], &responses["resets_at"]),
        (&json!("usage_limit_reached"), &json!("insufficient_quota"), &json!(17))
    );
    let alt = of(WireFormat::AltCli);
    assert!(alt["message"].as_str().unwrap().ends_with("limit: 0."), "{alt}");
    assert!(
        alt["details"][1]["violations"][0]["quotaId"].as_str().unwrap().contains("PerDay"),
        "{alt}"
    );
    for one in [native, chat, responses, alt] {
        assert_eq!((&one["limit_type"], &one["reset_at"]), (&json!("key_daily"), &extra[1].1));
    }
    let headers = super::headers(WireFormat::Responses, &error).unwrap();
    assert_eq!(headers, ("x-codex-promo-message", error.message.to_owned()));
    assert!(WireFormat::ALL.iter().filter(|f| super::headers(**f, &error).is_some()).count() == 1);
}

#[test]
fn a_known_delay_is_said_where_the_format_has_a_place_for_it() {
    let extra = [("limit_type", json!("user_rpm")), ("retry_delay_s", json!(12))];
    let alt = parsed(WireFormat::AltCli, &reply(&extra));
    assert_eq!(alt["error"]["details"][1]["retryDelay"], "12s");
    assert_eq!(alt["error"].get("retry_delay_s"), None);
}

#[test]
fn what_is_written_can_be_read_back() {
    let error = reply(&[]);
    for format in WireFormat::ALL {
        let back = read(format, 429, &body(format, &error));
        assert_eq!(back.message, error.message, "{format}");
        assert!(back.code.unwrap().eq_ignore_ascii_case("rate_limit_exceeded"), "{format}");
        assert!(back.kind.is_some(), "{format}");
    }
}

#[test]
fn every_status_has_a_kind() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (426, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
    ] {
        assert_eq!(kind_of_status(status), kind, "{status}");
    }
}

#[test]
fn a_format_has_the_shape_of_its_own_errors_only() {
    let error = reply(&[]);
    for format in WireFormat::ALL {
        assert!(has_shape(format, &body(format, &error)), "{format}");
        for other in ["", "<html>", "{}", "[]", r#"{"error":"text"}"#, r#"{"detail":"text"}"#] {
            assert!(!has_shape(format, other.as_bytes()), "{format} {other}");
        }
    }
    let of_chat = body(WireFormat::Chat, &error);
    assert!(!has_shape(WireFormat::Native, &of_chat));
    assert!(!has_shape(WireFormat::AltCli, &of_chat));
    let listed = [b"[".as_slice(), &body(WireFormat::AltCli, &error), b"]"].concat();
    assert!(has_shape(WireFormat::AltCli, &listed));
}

#[test]
fn an_error_of_aws_has_the_name_of_its_header() {
    let of = |kind: Option<&str>, header| {
        let kind = kind.map(str::to_owned);
        UpstreamError { kind, ..UpstreamError::default() }.named(header).kind
    };
    let name = "ThrottlingException:http://internal.amazon.com/coral/";
    assert_eq!(of(None, name).as_deref(), Some("ThrottlingException"));
    assert_eq!(of(Some("own"), name).as_deref(), Some("own"));
    assert_eq!(of(None, " "), None);
}
