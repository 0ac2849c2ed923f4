//! Base addresses as vendors print them, and the paths of their calls.

use super::*;

const GENERATE: ProviderCall<'_> = ProviderCall::Generate { model: "m", stream: false };

#[test]
fn a_list_of_models_is_asked_for_in_large_pages() {
    let endpoint = Endpoint::parse("https://api.example").unwrap();
    for (format, first, next) in [
        (WireFormat::Native, "/v1/models?limit=1000", "/v1/models?limit=1000&after_id=a%2Fb%26"),
        (
            WireFormat::AltCli,
            "/v1beta/models?pageSize=1000",
            "/v1beta/models?pageSize=1000&pageToken=a%2Fb%26",
        ),
        (WireFormat::Chat, "/v1/models", "/v1/models"),
        (WireFormat::Responses, "/v1/models", "/v1/models"),
    ] {
        assert_eq!(endpoint.path(format, ProviderCall::ListModels), first);
        assert_eq!(endpoint.path(format, ProviderCall::ListModelsAfter("a/b&")), next);
    }
}

/// Base address, format, and the path of a request.
const BASES: [(&str, WireFormat, &str); 34] = [
    ("https://api.example", WireFormat::Native, "/v1/messages"),
    ("https://api.example/", WireFormat::Native, "/v1/messages"),
    ("https://api.example/v1", WireFormat::Native, "/v1/messages"),
    ("https://api.example/v1/messages", WireFormat::Native, "/v1/messages"),
    ("https://api.example/anthropic", WireFormat::Native, "/anthropic/v1/messages"),
    ("https://api.example/anthropic/v1/", WireFormat::Native, "/anthropic/v1/messages"),
    ("https://api.example/v1", WireFormat::Responses, "/v1/responses"),
    ("https://api.example/openai/v1", WireFormat::Chat, "/openai/v1/chat/completions"),
    ("https://api.example/api/v3", WireFormat::Chat, "/api/v3/chat/completions"),
    (
        "https://api.example/api/paas/v4/chat/completions",
        WireFormat::Chat,
        "/api/paas/v4/chat/completions",
    ),
    ("https://api.example", WireFormat::AltCli, "/v1beta/models/m:generateContent"),
    ("https://api.example/v1beta", WireFormat::AltCli, "/v1beta/models/m:generateContent"),
    ("https://api.example/gw/v1", WireFormat::AltCli, "/gw/v1/models/m:generateContent"),
    ("https://api.example/v1beta/openai/", WireFormat::Chat, "/v1beta/openai/chat/completions"),
    ("https://api.example/v1beta/openai/", WireFormat::Responses, "/v1beta/openai/responses"),
    (
        "https://api.example/v1beta/openai/chat/completions",
        WireFormat::Chat,
        "/v1beta/openai/chat/completions",
    ),
    ("https://api.example/v1/team/a", WireFormat::Native, "/v1/team/a/messages"),
    ("https://api.example/v2ray", WireFormat::Chat, "/v2ray/v1/chat/completions"),
    ("https://api.example/models", WireFormat::Chat, "/v1/chat/completions"),
    ("https://api.example/chat/completions", WireFormat::Chat, "/chat/completions"),
    ("https://api.example/openai", WireFormat::Chat, "/openai/v1/chat/completions"),
    ("https://api.perplexity.ai", WireFormat::Chat, "/chat/completions"),
    ("https://api.perplexity.ai", WireFormat::Responses, "/v1/responses"),
    ("https://api.githubcopilot.com", WireFormat::Chat, "/chat/completions"),
    ("https://api.business.githubcopilot.com/", WireFormat::Responses, "/responses"),
    ("https://api.githubcopilot.com", WireFormat::Native, "/v1/messages"),
    ("https://notgithubcopilot.com", WireFormat::Chat, "/v1/chat/completions"),
    ("https://models.github.ai/inference", WireFormat::Chat, "/inference/chat/completions"),
    (
        "https://gateway.ai.cloudflare.com/v1/acc/gw/compat",
        WireFormat::Chat,
        "/v1/acc/gw/compat/chat/completions",
    ),
    (
        "https://gateway.ai.cloudflare.com/v1/acc/gw/anthropic",
        WireFormat::Native,
        "/v1/acc/gw/anthropic/v1/messages",
    ),
    ("https://relay.example/compat", WireFormat::Chat, "/compat/chat/completions"),
    (
        "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi",
        WireFormat::Chat,
        "/v1/projects/p/locations/l/endpoints/openapi/chat/completions",
    ),
    (
        "https://relay.example/endpoints/openapi",
        WireFormat::Chat,
        "/endpoints/openapi/chat/completions",
    ),
    (
        "https://api.example/v1beta/models/m:generateContent",
        WireFormat::AltCli,
        "/v1beta/models/m:generateContent",
    ),
];

#[test]
fn each_usual_base_address_gives_the_right_path() {
    for (url, format, path) in BASES {
        assert_eq!(Endpoint::parse(url).unwrap().path(format, GENERATE), path, "{url}");
    }
}

#[test]
fn hosts_ports_and_faults() {
    let e = Endpoint::parse("http://[::1]:9100/v1").unwrap();
    assert_eq!(
        (e.tls, e.host.as_str(), e.port, e.authority.as_str()),
        (false, "::1", 9100, "[::1]:9100")
    );
    let e = Endpoint::parse("https://api.example:443").unwrap();
    assert_eq!((e.authority.as_str(), e.port), ("api.example", 443));
    for bad in ["", "api.example", "ftp://x", "http://", "/v1", "https:///v1"] {
        assert_eq!(Endpoint::parse(bad), Err(EndpointError::NotAbsolute), "{bad}");
    }
    assert_eq!(Endpoint::parse("https://u:p@x"), Err(EndpointError::Credentials));
    assert_eq!(Endpoint::parse("https://x/v1?key=1"), Err(EndpointError::Query));
}

#[test]
fn a_model_name_stays_inside_its_segment() {
    let e = Endpoint::parse("https://x").unwrap();
    let path =
        e.path(WireFormat::AltCli, ProviderCall::Generate { model: "a b?c#d:e", stream: true });
    assert_eq!(path, "/v1beta/models/a%20b%3Fc%23d%3Ae:streamGenerateContent");
    let path =
        e.path(WireFormat::AltCli, ProviderCall::Generate { model: "a/../b", stream: false });
    assert_eq!(path, "/v1beta/models/a%2F..%2Fb:generateContent");
}
