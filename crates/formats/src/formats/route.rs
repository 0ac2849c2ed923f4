//! Maps a path to its format and operation, and a model to an alt-cli path.
//!
//! Only the path and the method are read. The caller checks whether the body on the chat-compatible
//! path is a responses body, or a models call carries a native version header. alt-cli paths can
//! contain the model, percent-encoded or not; a name may contain colons, so the action follows the
//! last one.
//!
//! A model's name that goes into a path must stay one segment of it, however often it is decoded on
//! the way: the model that runs must be the one that was allowed and priced. So [`check_model`]
//! refuses names with slashes, dot segments and escapes, in a client's path and in a body that is
//! converted for an alt-cli provider. In a provider's redirects [`check_redirect`] allows slashes,
//! which are encoded. Elsewhere a name like `vendor/model` is valid.

use http::Method;
use percent_encoding::percent_decode_str;

use super::bad_request::BadRequest;
use crate::domain::endpoint::{ApiEndpoint, Unit};
use crate::domain::format::WireFormat;
use crate::domain::named_model::MAX_MODEL_NAME;

/// The requested operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A reply from a model, streaming or not.
    Generate,
    /// The number of a request's input tokens, without a reply.
    CountTokens,
    /// What another endpoint makes.
    Endpoint(&'static ApiEndpoint),
    /// A call about a reply that its provider stores.
    Stored(StoredCall),
    /// The list of the models that the caller may use.
    ListModels,
    /// One model's record, by its decoded id.
    GetModel(String),
}

/// A call about a stored reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCall {
    /// The method: `GET`, `DELETE` or `POST`.
    pub method: Method,
    /// The reply's id, which is a path's segment as it is.
    pub reply: String,
    /// What follows it in the path: nothing, `/cancel` or `/input_items`.
    pub rest: &'static str,
}

impl StoredCall {
    /// Bytes of the longest id.
    const MAX_ID: usize = 256;

    /// The call of this method at this path.
    fn of(method: &Method, path: &str) -> Option<Self> {
        const CALLS: [(Method, &str); 4] = [
            (Method::GET, ""),
            (Method::DELETE, ""),
            (Method::POST, "/cancel"),
            (Method::GET, "/input_items"),
        ];
        let after = path.strip_prefix("/v1/responses/")?;
        let (id, rest) = after.find('/').map_or((after, ""), |at| after.split_at(at));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_id = (1..=Self::MAX_ID).contains(&id.len()) && id.chars().all(is_plain);
        let known = CALLS.iter().find(|(of, end)| of == method && *end == rest);
        let (_, rest) = known.filter(|_| is_id && !matches!(id, "compact" | "input_tokens"))?;
        Some(Self { method: method.clone(), reply: id.to_owned(), rest })
    }

    /// The path at the provider, with the version.
    pub fn path(&self) -> String {
        format!("/v1/responses/{}{}", self.reply, self.rest)
    }
}

impl Operation {
    /// Whether a request counts against limits, and its reply has a price unless it is free.
    pub const fn is_metered(&self) -> bool {
        matches!(self, Self::Generate | Self::Endpoint(_))
    }

    /// Whether its reply may cost something.
    pub fn is_billed(&self) -> bool {
        match self {
            Self::Generate => true,
            Self::Endpoint(endpoint) => endpoint.unit != Unit::Free,
            _ => false,
        }
    }

    /// The endpoint, if it is none of the formats' own.
    pub const fn endpoint(&self) -> Option<&'static ApiEndpoint> {
        match self {
            Self::Endpoint(endpoint) => Some(endpoint),
            _ => None,
        }
    }
}

/// The facts of a request's path and method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// For the models calls under `/v1` this is chat-compatible, unless a native header says
    /// otherwise.
    pub format: WireFormat,
    /// What is requested.
    pub operation: Operation,
    /// alt-cli only: the model named by the path, decoded.
    pub model_in_path: Option<String>,
    /// alt-cli only: whether to stream, as the path decides it, not the body.
    pub stream_in_path: Option<bool>,
    /// The `/v1internal:` paths: the body is `{model, request: {…}}`, and the reply is wrapped in
    /// `{response: …}`.
    pub internal_wrapper: bool,
}

impl Route {
    const fn plain(format: WireFormat, operation: Operation) -> Self {
        Self {
            format,
            operation,
            model_in_path: None,
            stream_in_path: None,
            internal_wrapper: false,
        }
    }
}

/// The route of a request; `None` if it is not a model call (then [`methods`] distinguishes a wrong
/// method from a wrong path).
///
/// `path` is without its query. One slash at the end is ignored.
pub fn match_path(method: &Method, path: &str) -> Option<Route> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if let Some(call) = StoredCall::of(method, path) {
        return Some(Route::plain(WireFormat::Responses, Operation::Stored(call)));
    }
    if *method == Method::POST {
        return match path {
            "/v1/messages" => Some(Route::plain(WireFormat::Native, Operation::Generate)),
            "/v1/chat/completions" => Some(Route::plain(WireFormat::Chat, Operation::Generate)),
            "/v1/responses" => Some(Route::plain(WireFormat::Responses, Operation::Generate)),
            "/v1/messages/count_tokens" => {
                Some(Route::plain(WireFormat::Native, Operation::CountTokens))
            }
            "/v1/responses/input_tokens" => {
                Some(Route::plain(WireFormat::Responses, Operation::CountTokens))
            }
            _ => endpoint(path).or_else(|| alt_cli(path)),
        };
    }
    if *method == Method::GET || *method == Method::HEAD {
        return models(path);
    }
    None
}

/// The methods that a known path answers to, for an `Allow` header; `None` for an unknown path.
pub fn methods(path: &str) -> Option<&'static str> {
    let takes = |method: Method| match_path(&method, path).is_some();
    match [Method::GET, Method::HEAD, Method::DELETE, Method::POST].map(takes) {
        [true, true, false, true] => Some("GET, HEAD, POST"),
        [true, true, false, false] => Some("GET, HEAD"),
        [true, false, true, false] => Some("GET, DELETE"),
        [true, ..] => Some("GET"),
        [.., true] => Some("POST"),
        _ => None,
    }
}

/// The format of the clients that ask for an unknown path, by its beginning.
pub fn format_near(path: &str) -> Option<WireFormat> {
    const NEAR: [(&str, WireFormat); 4] = [
        ("/v1beta/", WireFormat::AltCli),
        ("/v1internal", WireFormat::AltCli),
        ("/v1/messages/", WireFormat::Native),
        ("/v1/responses/", WireFormat::Responses),
    ];
    NEAR.into_iter().find(|(start, _)| path.starts_with(start)).map(|(_, format)| format)
}

/// The route of an endpoint with a path of its own.
fn endpoint(path: &str) -> Option<Route> {
    let endpoint = ApiEndpoint::of(path).filter(|endpoint| !endpoint.is_action())?;
    Some(Route::plain(endpoint.format, Operation::Endpoint(endpoint)))
}

fn models(path: &str) -> Option<Route> {
    let (rest, format) = match path.strip_prefix("/v1beta/models") {
        Some(rest) => (rest, WireFormat::AltCli),
        None => (path.strip_prefix("/v1/models")?, WireFormat::Chat),
    };
    if rest.is_empty() {
        return Some(Route::plain(format, Operation::ListModels));
    }
    let id = decode(rest.strip_prefix('/')?).filter(|id| id.len() <= MAX_MODEL_NAME)?;
    Some(Route::plain(format, Operation::GetModel(id)))
}

/// Checks the model in the path of an alt-cli call, before [`match_path`]. Any other path is valid.
///
/// # Errors
/// The name is malformed, or would not stay one segment.
pub fn check_path(method: &Method, path: &str) -> Result<(), BadRequest> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let name = path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"));
    let (Some(name), true) = (name, *method == Method::POST) else { return Ok(()) };
    let decoded = super::query::decode(name);
    let Some((model, action)) = decoded.rsplit_once(':') else { return Ok(()) };
    if action_of(action).is_none() || model.is_empty() {
        return Ok(());
    }
    if decode(name).is_none() {
        return Err(BadRequest::field("model", "the name in the path is malformed"));
    }
    check_model(model)
}

/// Checks that a model's name is valid in the path of an alt-cli call as one segment.
///
/// # Errors
/// When it contains what could end or split the segment once it is decoded, even twice.
pub fn check_model(model: &str) -> Result<(), BadRequest> {
    let splits = |c: char| {
        matches!(c, '/' | '\\' | '%' | '?' | '#' | ';')
            // Characters that some servers normalise to a slash, a backslash or dots.
            || matches!(c, '\u{2044}' | '\u{2215}' | '\u{29F8}' | '\u{FF0F}' | '\u{FF3C}' | '\u{FE68}')
            || matches!(c, '\u{2024}'..='\u{2026}' | '\u{FF0E}')
            || c.is_control()
    };
    let dots = model.trim_matches('.').is_empty() || model.contains("..");
    if model.len() > MAX_MODEL_NAME {
        return Err(BadRequest::field("model", "the name is too long"));
    }
    if dots || model.chars().any(splits) {
        let message =
            "an alt-cli model's name must not hold slashes, dot segments, `%`, `?`, `#` or `;`";
        return Err(BadRequest::field("model", message));
    }
    Ok(())
}

/// The same for the target of an operator's redirect. Slashes are allowed there: the operator named
/// the model, and its slashes are encoded (`vendor%2Fmodel`), so that it stays one segment.
///
/// # Errors
/// A part between slashes is empty, or would not stay one segment.
pub fn check_redirect(model: &str) -> Result<(), BadRequest> {
    model.split('/').try_for_each(check_model)
}

fn alt_cli(path: &str) -> Option<Route> {
    if let Some(action) = path.strip_prefix("/v1internal:") {
        let (operation, stream_in_path) = action_of(action)?;
        return Some(Route {
            stream_in_path,
            internal_wrapper: true,
            ..Route::plain(WireFormat::AltCli, operation)
        });
    }
    let rest = path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"))?;
    let decoded = decode(rest)?;
    let (model, action) = decoded.rsplit_once(':')?;
    let (operation, stream_in_path) = action_of(action)?;
    check_model(model).ok()?;
    Some(Route {
        model_in_path: Some(model.to_owned()),
        stream_in_path,
        ..Route::plain(WireFormat::AltCli, operation)
    })
}

fn action_of(action: &str) -> Option<(Operation, Option<bool>)> {
    match action {
        "generateContent" => Some((Operation::Generate, Some(false))),
        "streamGenerateContent" => Some((Operation::Generate, Some(true))),
        "countTokens" => Some((Operation::CountTokens, None)),
        _ => {
            let endpoint = ApiEndpoint::of(action).filter(|endpoint| endpoint.is_action())?;
            Some((Operation::Endpoint(endpoint), None))
        }
    }
}

/// Percent-decodes a model's name. `None` if it is empty, malformed, no UTF-8, or contains control
/// characters.
fn decode(text: &str) -> Option<String> {
    let is_escape = |rest: &str| {
        rest.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let name = percent_decode_str(text).decode_utf8().ok()?;
    (!name.is_empty() && !name.chars().any(char::is_control)).then(|| name.into_owned())
}

#[cfg(test)]
mod tests {
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
            (
                "/v1beta/models/g-2.5:streamGenerateContent",
                "g-2.5",
                Operation::Generate,
                Some(true),
            ),
            ("/v1beta/models/g-2.5:countTokens", "g-2.5", Operation::CountTokens, None),
            ("/v1/models/g:generateContent", "g", Operation::Generate, Some(false)),
            (
                "/v1beta/models/ft:g:mine:generateContent",
                "ft:g:mine",
                Operation::Generate,
                Some(false),
            ),
            (
                "/v1beta/models/g%3Alatest:generateContent",
                "g:latest",
                Operation::Generate,
                Some(false),
            ),
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
            assert_eq!(
                match_path(&Method::GET, path),
                Some(Route::plain(format, operation)),
                "{path}"
            );
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
            "/v1/messages/batches",
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
}
