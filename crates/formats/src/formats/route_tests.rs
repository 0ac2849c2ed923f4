//! Paths, and what is requested at them.

use http::Method;

use super::{
    Operation, Route, check_model, check_path, check_redirect, format_near, match_path, methods,
};
use crate::domain::endpoint::ENDPOINTS;
use crate::domain::feature::Sort;
use crate::domain::format::WireFormat;

#[test]
fn the_body_formats_have_one_path_each() {
    for (path, format, operation) in [
        ("/v1/messages", WireFormat::Native, Operation::Generate),
        ("/v1/messages/", WireFormat::Native, Operation::Generate),
        ("/v1/messages/count_tokens", WireFormat::Native, Operation::CountTokens),
        ("/v1/responses/input_tokens", WireFormat::Responses, Operation::CountTokens),
        ("/v1/chat/completions", WireFormat::Chat, Operation::Generate),
        ("/v1/responses", WireFormat::Responses, Operation::Generate),
    ] {
        assert_eq!(
            match_path(&Method::POST, path),
            Some(Route::plain(format, operation)),
            "{path}"
        );
        assert_eq!(match_path(&Method::GET, path), None, "GET {path}");
        assert_eq!(methods(path), Some("POST"), "{path}");
    }
}

#[test]
fn alt_cli_paths_carry_model_and_streaming() {
    for (path, model, operation, stream) in [
        ("/v1beta/models/g-2.5:generateContent", "g-2.5", Operation::Generate, Some(false)),
        ("/v1beta/models/g-2.5:streamGenerateContent", "g-2.5", Operation::Generate, Some(true)),
        ("/v1beta/models/g-2.5:countTokens", "g-2.5", Operation::CountTokens, None),
        ("/v1/models/g:generateContent", "g", Operation::Generate, Some(false)),
        ("/v1beta/models/ft:g:mine:generateContent", "ft:g:mine", Operation::Generate, Some(false)),
        ("/v1beta/models/g%3Alatest:generateContent", "g:latest", Operation::Generate, Some(false)),
        ("/v1beta/models/g%3AgenerateContent", "g", Operation::Generate, Some(false)),
    ] {
        let route = match_path(&Method::POST, path).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(route.format, WireFormat::AltCli, "{path}");
        assert_eq!(
            (route.model_in_path.as_deref(), route.operation),
            (Some(model), operation),
            "{path}"
        );
        assert_eq!((route.stream_in_path, route.internal_wrapper), (stream, false), "{path}");
    }
}

#[test]
fn internal_paths_are_wrapped_and_name_no_model() {
    let route = match_path(&Method::POST, "/v1internal:streamGenerateContent").unwrap();
    assert_eq!(
        (route.model_in_path, route.stream_in_path, route.internal_wrapper),
        (None, Some(true), true)
    );
    assert_eq!(match_path(&Method::POST, "/v1internal:loadSomething"), None);
}

#[test]
fn models_are_listed_and_shown() {
    for (path, format, operation) in [
        ("/v1/models", WireFormat::Chat, Operation::ListModels),
        ("/v1/models/", WireFormat::Chat, Operation::ListModels),
        ("/v1beta/models", WireFormat::AltCli, Operation::ListModels),
        ("/v1/models/a:b", WireFormat::Chat, Operation::GetModel("a:b".to_owned())),
        ("/v1/models/org%2Fa", WireFormat::Chat, Operation::GetModel("org/a".to_owned())),
        ("/v1beta/models/g", WireFormat::AltCli, Operation::GetModel("g".to_owned())),
    ] {
        assert_eq!(match_path(&Method::GET, path), Some(Route::plain(format, operation)), "{path}");
    }
}

#[test]
fn a_stored_reply_has_its_calls() {
    for (method, path, rest, allowed) in [
        (Method::GET, "/v1/responses/resp_1-a", Some(""), "GET, DELETE"),
        (Method::DELETE, "/v1/responses/resp_1", Some(""), "GET, DELETE"),
        (Method::POST, "/v1/responses/resp_1/cancel", Some("/cancel"), "POST"),
        (Method::GET, "/v1/responses/resp_1/input_items", Some("/input_items"), "GET"),
        (Method::POST, "/v1/responses/resp_1", None, "GET, DELETE"),
        (Method::GET, "/v1/responses/compact", None, "POST"),
        (Method::DELETE, "/v1/responses/input_tokens", None, "POST"),
        (Method::GET, "/v1/messages/batches/b_1/results", Some("/results"), "GET"),
        (Method::DELETE, "/v1/messages/batches/b_1", Some(""), "GET, DELETE"),
        (Method::POST, "/v1/batches/batch_1/cancel", Some("/cancel"), "POST"),
        (Method::DELETE, "/v1/batches/batch_1", None, "GET"),
        (Method::GET, "/v1/files/file-1/content", Some("/content"), "GET"),
    ] {
        let route = match_path(&method, path);
        let found = route.map(|route| match route.operation {
            Operation::Stored(call) => (call.path(), call.rest),
            other => panic!("{path}: {other:?}"),
        });
        assert_eq!(found, rest.map(|rest| (path.to_owned(), rest)), "{method} {path}");
        assert_eq!(methods(path), Some(allowed), "{path}");
    }
    for path in
        ["/v1/responses/a%2Fb", "/v1/responses/..", "/v1/responses/a/b", "/v1/responses/a b"]
    {
        assert_eq!(match_path(&Method::GET, path), None, "{path}");
    }
}

#[test]
fn batches_and_files_are_listed_where_they_are_made() {
    for (path, format) in [
        ("/v1/messages/batches", WireFormat::Native),
        ("/v1/batches", WireFormat::Chat),
        ("/v1/files", WireFormat::Chat),
    ] {
        let route = match_path(&Method::GET, path).unwrap();
        let Operation::ListStored(collection) = route.operation else { panic!("{route:?}") };
        assert_eq!((collection.path, route.format), (path, format));
        assert_eq!(methods(path), Some("GET, POST"));
    }
}

#[test]
fn each_endpoint_has_its_path() {
    for endpoint in &ENDPOINTS {
        let path = match endpoint.is_action() {
            true => format!("/v1beta/models/m:{}", endpoint.path),
            false => endpoint.path.to_owned(),
        };
        let route = match_path(&Method::POST, &path).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(route.operation, Operation::Endpoint(endpoint), "{path}");
        assert_eq!(route.format, endpoint.format, "{path}");
        assert_eq!(route.model_in_path.is_some(), endpoint.is_action(), "{path}");
        assert_eq!(endpoint.feature.row().sort, Sort::Endpoint, "{path}");
        assert!(match_path(&Method::GET, &path).is_none_or(|r| r.model_in_path.is_none()));
    }
}

#[test]
fn anything_else_is_no_route() {
    for path in [
        "",
        "/",
        "/v1",
        "/v1/modelsx",
        "/v1/messages/nothing",
        "/v1/embeddingsx",
        "/v1/models/embedContent",
        "/v1beta/models/:generateContent",
        "/v1beta/models/g:embedContents",
        "/v1beta/models/g:/v1/embeddings",
        "/v1beta/models/g%2:generateContent",
        "/v1beta/models/g%ff:generateContent",
        "/v1beta/models/g%0a:generateContent",
    ] {
        assert_eq!(match_path(&Method::POST, path), None, "{path}");
    }
    assert_eq!(match_path(&Method::DELETE, "/v1/messages"), None);
    assert_eq!(methods("/v1/embedding"), None);
    assert_eq!(methods("/v1/models/g:generateContent"), Some("GET, HEAD, POST"));
    assert_eq!(format_near("/v1beta/models/g:embedContents"), Some(WireFormat::AltCli));
    assert_eq!(format_near("/v1/messages/batches"), Some(WireFormat::Native));
    assert_eq!(format_near("/v1/embedding"), None);
}

#[test]
fn a_model_in_a_path_stays_one_segment() {
    for model in [
        "org/g",
        "org%2Fg",
        "g%2F..%2Fother",
        "g/../other",
        "g%5Cother",
        "g%5c..%5cother",
        "..",
        ".",
        "%2e%2e",
        "g..pro",
        "g%252Fother",
        "g%25",
        "g%3Fkey=1",
        "g%23x",
        "g%3bx=1",
        "g%0a",
        "g%00",
        "g%ff",
        "g%2",
        "g%c0%af",
        "g%EF%BC%8Fother",
    ] {
        for path in [
            format!("/v1beta/models/{model}:generateContent"),
            format!("/v1/models/{model}:countTokens/"),
        ] {
            let refused = check_path(&Method::POST, &path).expect_err(&path);
            assert_eq!(refused.field.as_deref(), Some("model"), "{path}");
            assert_eq!(match_path(&Method::POST, &path), None, "{path}");
        }
    }
    for path in [
        "/v1beta/models/g-2.5:generateContent",
        "/v1beta/models/gr%C3%B6%C3%9Fe%20x:streamGenerateContent",
        "/v1beta/models/ft:g:mine:countTokens",
        "/v1beta/models/a/b:embedContents",
        "/v1internal:generateContent",
        "/v1/messages",
    ] {
        assert_eq!(check_path(&Method::POST, path), Ok(()), "{path}");
    }
    assert_eq!(check_path(&Method::GET, "/v1/models/org%2Fg"), Ok(()), "no call is made of it");
    for (model, named, redirected) in [
        ("gemini-2.5-pro", true, true),
        ("a b", true, true),
        ("vendor/model", false, true),
        ("a/../b", false, false),
        ("a//b", false, false),
        ("a%2Fb", false, false),
        ("", false, false),
    ] {
        assert_eq!(
            (check_model(model).is_ok(), check_redirect(model).is_ok()),
            (named, redirected),
            "{model}"
        );
    }
}
