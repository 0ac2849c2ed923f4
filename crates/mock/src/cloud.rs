//! Paths of clouds: the formats' own services below other paths, and token endpoints.

use serde_json::{Value, json};

use super::aws;
use super::path::{self, MockCloud, MockOperation, Route};
use super::wire::WireFault;
use tollgate_formats::domain::format::WireFormat;

/// What a body for Claude at Vertex AI may have.
const VERSIONS: [&str; 2] = ["vertex-2023-10-16", "2026-10-21"];

/// The route of a path at one of the clouds.
pub(super) fn route(path: &str) -> Option<Route> {
    let is_token = path.ends_with("/oauth2/v2.0/token")
        || ["/google/token", "/sts/token"].contains(&path)
        || is_of_account(path)
        || is_of_machine(path);
    if is_token {
        return Some(Route::plain(WireFormat::Chat, MockOperation::Token));
    }
    if let Some(rest) = path.strip_prefix("/v1/projects/") {
        return vertex(rest.split_once("/publishers/")?.1);
    }
    if let Some(rest) = path.strip_prefix("/openai/deployments/") {
        return path::own(&format!("/v1/{}", rest.split_once('/')?.1));
    }
    let rest = path.strip_prefix("/anthropic").or_else(|| path.strip_prefix("/openai"))?;
    path::own(&if rest.starts_with("/v1/") { rest.to_owned() } else { format!("/v1{rest}") })
}

/// Whether a token of an account is asked for with that of another identity.
fn is_of_account(path: &str) -> bool {
    path.ends_with(":generateAccessToken")
}

/// Whether the path is that of a machine's own metadata service: of Google, Azure, or an app there.
pub(super) fn is_of_machine(path: &str) -> bool {
    path.starts_with("/computeMetadata/v1/instance/service-accounts/") && path.ends_with("/token")
        || ["/metadata/identity/oauth2/token", "/msi/token"].contains(&path)
}

/// The route of `google/models/m:verb` or `anthropic/models/m:verb`.
fn vertex(place: &str) -> Option<Route> {
    if let Some(model) = place.strip_prefix("google/") {
        return path::own(&format!("/v1/{model}"));
    }
    let (model, verb) = place.strip_prefix("anthropic/models/")?.rsplit_once(':')?;
    let stream = match verb {
        "rawPredict" => false,
        "streamRawPredict" => true,
        _ => return None,
    };
    if model == "count-tokens" {
        let counts = Route::plain(WireFormat::Native, MockOperation::CountTokens);
        return (!stream).then_some(Route { cloud: MockCloud::Vertex, ..counts });
    }
    let generates = Route::plain(WireFormat::Native, MockOperation::Generate);
    let (model, stream, cloud) = (Some(model.to_owned()), Some(stream), MockCloud::Vertex);
    Some(Route { model, stream, cloud, ..generates })
}

/// The body of a request to Claude at a cloud, as the format's own service takes it.
pub(super) fn native(route: &Route, mut body: Value) -> Result<Value, WireFault> {
    if matches!(route.cloud, MockCloud::Bedrock | MockCloud::Converse) {
        return aws::native(route, body);
    }
    let is_vertex = route.cloud == MockCloud::Vertex;
    let Some(members) = body.as_object_mut().filter(|_| is_vertex) else { return Ok(body) };
    let version = members.remove("anthropic_version");
    if !VERSIONS.iter().any(|known| version == Some((*known).into())) {
        return Err(WireFault::bad(format!("anthropic_version: must be one of {VERSIONS:?}")));
    }
    if let Some(model) = &route.model
        && members.insert("model".to_owned(), model.as_str().into()).is_some()
    {
        return Err(WireFault::bad("model: Extra inputs are not permitted"));
    }
    Ok(body)
}

/// What a token endpoint answers.
pub(super) fn token(path: &str, serial: u64) -> Value {
    if is_of_account(path) {
        return json!({ "accessToken": format!("mock-token-{serial}"), "expireTime": "2100-01-01T00:00:00Z" });
    }
    if path == "/msi/token" {
        return json!({ "access_token": format!("mock-token-{serial}"), "expires_on": "4102444800" });
    }
    json!({ "access_token": format!("mock-token-{serial}"), "expires_in": 3599, "token_type": "Bearer" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_clouds() {
        use MockOperation::{CountTokens, Generate, Token};
        let vertex = |rest: &str| format!("/v1/projects/p/locations/l/publishers/{rest}");
        for (path, format, operation, stream) in [
            ("/openai/deployments/d/chat/completions".to_owned(), WireFormat::Chat, Generate, None),
            ("/openai/v1/responses".to_owned(), WireFormat::Responses, Generate, None),
            ("/openai/responses".to_owned(), WireFormat::Responses, Generate, None),
            ("/anthropic/v1/messages".to_owned(), WireFormat::Native, Generate, None),
            (vertex("anthropic/models/m@1:rawPredict"), WireFormat::Native, Generate, Some(false)),
            (
                vertex("anthropic/models/m:streamRawPredict"),
                WireFormat::Native,
                Generate,
                Some(true),
            ),
            (
                vertex("anthropic/models/count-tokens:rawPredict"),
                WireFormat::Native,
                CountTokens,
                None,
            ),
            (vertex("google/models/g:generateContent"), WireFormat::AltCli, Generate, Some(false)),
            ("/t/oauth2/v2.0/token".to_owned(), WireFormat::Chat, Token, None),
            ("/msi/token".to_owned(), WireFormat::Chat, Token, None),
            ("/v1/a:generateAccessToken".to_owned(), WireFormat::Chat, Token, None),
        ] {
            let route = path::parse(&path).unwrap();
            assert_eq!(
                (route.format, route.operation, route.stream),
                (format, operation, stream),
                "{path}"
            );
        }
        assert!(path::parse("/openai/nothing").is_none());
        assert!(path::parse(&vertex("anthropic/models/m:generateContent")).is_none());
    }
}
