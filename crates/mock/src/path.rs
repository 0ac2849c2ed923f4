//! Maps a path to the format and operation of the real services.

use super::aws::{self, KeyService};
use super::cloud;
use tollgate_formats::domain::endpoint::ApiEndpoint;
use tollgate_formats::domain::format::WireFormat;
use tollgate_formats::formats::route::{
    BATCHES, Collection, FILES, GOOGLE_BATCHES, GOOGLE_FILES, MESSAGE_BATCHES,
};

/// The requested operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MockOperation {
    Generate,
    CountTokens,
    /// An endpoint beside the replies.
    Endpoint(&'static ApiEndpoint),
    /// A call about a stored reply: its id, and what follows it in the path.
    Stored(String, String),
    /// A call about a batch or a file: its id, and what follows it in the path.
    Held(&'static Collection, String, String),
    ListModels,
    GetModel(String),
    /// A cloud's access token.
    Token,
    /// AWS' keys.
    AwsKeys(KeyService),
}

/// Clouds whose requests to Claude have the form's version in place of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MockCloud {
    None,
    Vertex,
    /// `InvokeModel`.
    Bedrock,
    Converse,
}

/// A parsed path. The format of `/v1/models` is a guess until the headers are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub format: WireFormat,
    pub operation: MockOperation,
    /// The model, if the path contains it.
    pub model: Option<String>,
    /// Streaming, if the path decides it.
    pub stream: Option<bool>,
    /// `/v1internal`: the body is wrapped as `{model, request}`, the reply as `{response}`.
    pub wrapped: bool,
    /// The cloud whose form the body has.
    pub cloud: MockCloud,
}

impl Route {
    pub(super) const fn plain(format: WireFormat, operation: MockOperation) -> Self {
        Self {
            format,
            operation,
            model: None,
            stream: None,
            wrapped: false,
            cloud: MockCloud::None,
        }
    }
}

/// The route of `path`, or `None` if the real services would answer 404.
pub(super) fn parse(path: &str) -> Option<Route> {
    cloud::route(path).or_else(|| aws::route(path)).or_else(|| own(path))
}

/// The route of a path of the format's own service.
pub(super) fn own(path: &str) -> Option<Route> {
    use MockOperation::{CountTokens, Generate, GetModel, ListModels};
    let route = match path {
        "/v1/messages" => Route::plain(WireFormat::Native, Generate),
        "/v1/messages/count_tokens" => Route::plain(WireFormat::Native, CountTokens),
        "/v1/responses/input_tokens" => Route::plain(WireFormat::Responses, CountTokens),
        "/v1/chat/completions" => Route::plain(WireFormat::Chat, Generate),
        "/v1/responses" => Route::plain(WireFormat::Responses, Generate),
        "/v1/models" => Route::plain(WireFormat::Chat, ListModels),
        "/v1beta/models" => Route::plain(WireFormat::AltCli, ListModels),
        _ => {
            if let Some(after) = path.strip_prefix("/v1/responses/resp_") {
                let (id, rest) = after.split_once('/').unwrap_or((after, ""));
                let operation = MockOperation::Stored(format!("resp_{id}"), rest.to_owned());
                return Some(Route::plain(WireFormat::Responses, operation));
            }
            let all = [&MESSAGE_BATCHES, &BATCHES, &FILES, &GOOGLE_BATCHES, &GOOGLE_FILES];
            for collection in all {
                let after = path.strip_prefix(collection.path).and_then(|at| at.strip_prefix('/'));
                if let Some(after) = after {
                    let (id, rest) = after.split_once(['/', ':']).unwrap_or((after, ""));
                    let held = MockOperation::Held(collection, id.to_owned(), rest.to_owned());
                    return Some(Route::plain(collection.format, held));
                }
            }
            if let Some(endpoint) = ApiEndpoint::of(path) {
                return Some(Route::plain(endpoint.format, MockOperation::Endpoint(endpoint)));
            }
            if let Some(verb) = path.strip_prefix("/v1internal:") {
                return alt_verb(verb, None).map(|route| Route { wrapped: true, ..route });
            }
            let (beta, rest) = match path.strip_prefix("/v1beta/models/") {
                Some(rest) => (true, rest),
                None => (false, path.strip_prefix("/v1/models/")?),
            };
            if let Some((model, verb)) = rest.rsplit_once(':')
                && let Some(route) = alt_verb(verb, Some(model))
            {
                return Some(route);
            }
            let format = if beta { WireFormat::AltCli } else { WireFormat::Chat };
            (!rest.is_empty()).then(|| Route::plain(format, GetModel(rest.to_owned())))?
        }
    };
    Some(route)
}

fn alt_verb(verb: &str, model: Option<&str>) -> Option<Route> {
    let (operation, stream) = match verb {
        "generateContent" => (MockOperation::Generate, Some(false)),
        "streamGenerateContent" => (MockOperation::Generate, Some(true)),
        "countTokens" => (MockOperation::CountTokens, None),
        _ => {
            let endpoint = ApiEndpoint::of(verb).filter(|endpoint| endpoint.is_action())?;
            (MockOperation::Endpoint(endpoint), None)
        }
    };
    Some(Route {
        format: WireFormat::AltCli,
        operation,
        model: model.map(str::to_owned),
        stream,
        wrapped: false,
        cloud: MockCloud::None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_all_formats() {
        let cases = [
            ("/v1/messages", Some((WireFormat::Native, MockOperation::Generate, None))),
            ("/v1/responses", Some((WireFormat::Responses, MockOperation::Generate, None))),
            (
                "/v1beta/models/m:countTokens",
                Some((WireFormat::AltCli, MockOperation::CountTokens, Some("m"))),
            ),
            (
                "/v1/models/m:streamGenerateContent",
                Some((WireFormat::AltCli, MockOperation::Generate, Some("m"))),
            ),
            (
                "/v1/models/a:b",
                Some((WireFormat::Chat, MockOperation::GetModel("a:b".to_owned()), None)),
            ),
            (
                "/v1internal:generateContent",
                Some((WireFormat::AltCli, MockOperation::Generate, None)),
            ),
            ("/v1/nothing", None),
            ("/v1/models/", None),
        ];
        for (path, want) in cases {
            let got = parse(path);
            let got = got.as_ref().map(|r| (r.format, r.operation.clone(), r.model.as_deref()));
            assert_eq!(got, want, "{path}");
        }
    }
}
