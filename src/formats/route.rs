//! Which format and operation a path means, and the way back from a model to an alt-cli path.
//!
//! Only the path and the method are looked at: that a body on the chat-compatible path is plainly a responses body, or
//! that a models call carries a native version header, is for the caller to see. alt-cli paths carry the model,
//! percent-encoded or not; a name may hold colons and slashes, so the action is what follows the last colon.

use http::Method;

use crate::domain::format::WireFormat;

/// What is asked of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A reply from a model, streaming or not.
    Generate,
    CountTokens,
    ListModels,
    /// One model's record, by its decoded id.
    GetModel(String),
}

/// What a path and method say about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// For the models calls under `/v1` this is chat-compatible, unless a native header says otherwise.
    pub format: WireFormat,
    pub operation: Operation,
    /// alt-cli only: the model named by the path, decoded.
    pub model_in_path: Option<String>,
    /// alt-cli only: the path decides on streaming, not the body.
    pub stream_in_path: Option<bool>,
    /// The `/v1internal:` paths: the body is `{model, request: {…}}`, and the reply is wrapped in `{response: …}`.
    pub internal_wrapper: bool,
}

impl Route {
    const fn plain(format: WireFormat, operation: Operation) -> Self {
        Self { format, operation, model_in_path: None, stream_in_path: None, internal_wrapper: false }
    }
}

/// The route of a request; `None` for what is no model call (then [`methods`] tells a wrong method from a wrong path).
///
/// `path` comes without its query. One slash at the end is forgiven.
#[must_use]
pub fn match_path(method: &Method, path: &str) -> Option<Route> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if *method == Method::POST {
        return match path {
            "/v1/messages" => Some(Route::plain(WireFormat::Native, Operation::Generate)),
            "/v1/chat/completions" => Some(Route::plain(WireFormat::Chat, Operation::Generate)),
            "/v1/responses" => Some(Route::plain(WireFormat::Responses, Operation::Generate)),
            "/v1/messages/count_tokens" => Some(Route::plain(WireFormat::Native, Operation::CountTokens)),
            _ => alt_cli(path),
        };
    }
    if *method == Method::GET || *method == Method::HEAD {
        return models(path);
    }
    None
}

/// The methods that a known path answers to, for an `Allow` header; `None` for an unknown path.
#[must_use]
pub fn methods(path: &str) -> Option<&'static str> {
    match (match_path(&Method::POST, path).is_some(), match_path(&Method::GET, path).is_some()) {
        (true, true) => Some("GET, HEAD, POST"),
        (true, false) => Some("POST"),
        (false, true) => Some("GET, HEAD"),
        (false, false) => None,
    }
}

fn models(path: &str) -> Option<Route> {
    let (rest, format) = match path.strip_prefix("/v1beta/models") {
        Some(rest) => (rest, WireFormat::AltCli),
        None => (path.strip_prefix("/v1/models")?, WireFormat::Chat),
    };
    if rest.is_empty() {
        return Some(Route::plain(format, Operation::ListModels));
    }
    let id = decode(rest.strip_prefix('/')?)?;
    Some(Route::plain(format, Operation::GetModel(id)))
}

fn alt_cli(path: &str) -> Option<Route> {
    if let Some(action) = path.strip_prefix("/v1internal:") {
        let (operation, stream_in_path) = action_of(action)?;
        return Some(Route { stream_in_path, internal_wrapper: true, ..Route::plain(WireFormat::AltCli, operation) });
    }
    let rest = path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"))?;
    let decoded = decode(rest)?;
    let (model, action) = decoded.rsplit_once(':')?;
    let (operation, stream_in_path) = action_of(action)?;
    if model.is_empty() {
        return None;
    }
    Some(Route { model_in_path: Some(model.to_owned()), stream_in_path, ..Route::plain(WireFormat::AltCli, operation) })
}

fn action_of(action: &str) -> Option<(Operation, Option<bool>)> {
    match action {
        "generateContent" => Some((Operation::Generate, Some(false))),
        "streamGenerateContent" => Some((Operation::Generate, Some(true))),
        "countTokens" => Some((Operation::CountTokens, None)),
        _ => None,
    }
}

/// Percent-decodes a model's name. `None` when it is empty, malformed, no UTF-8, or holds control characters.
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    let name = String::from_utf8(out).ok()?;
    (!name.is_empty() && !name.chars().any(char::is_control)).then_some(name)
}

/// A query string without the `key` parameter, which is a credential; `None` when nothing is left.
#[must_use]
pub fn query_without_key(query: &str) -> Option<String> {
    let is_key = |pair: &&str| decode(pair.split('=').next().unwrap_or_default()).is_some_and(|name| name == "key");
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !is_key(pair)).collect();
    (!kept.is_empty()).then(|| kept.join("&"))
}

/// The alt-cli path of a model: `/v1beta/models/<model>:<action>`, the name encoded so that it stays one path segment.
#[must_use]
pub fn alt_cli_path(model: &str, action: &str) -> String {
    let mut path = String::from("/v1beta/models/");
    push_encoded(&mut path, model);
    path.push(':');
    path.push_str(action);
    path
}

/// Appends `segment` with everything encoded that could end a path segment or mean something in a URL. Colons stay.
pub fn push_encoded(path: &mut String, segment: &str) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':' | b'@') {
            path.push(char::from(byte));
        } else {
            path.push('%');
            path.push(HEX[usize::from(byte >> 4)]);
            path.push(HEX[usize::from(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{Operation, Route, alt_cli_path, match_path, methods, query_without_key};
    use crate::domain::format::WireFormat;

    #[test]
    fn the_body_formats_have_one_path_each() {
        for (path, format, operation) in [
            ("/v1/messages", WireFormat::Native, Operation::Generate),
            ("/v1/messages/", WireFormat::Native, Operation::Generate),
            ("/v1/messages/count_tokens", WireFormat::Native, Operation::CountTokens),
            ("/v1/chat/completions", WireFormat::Chat, Operation::Generate),
            ("/v1/responses", WireFormat::Responses, Operation::Generate),
        ] {
            assert_eq!(match_path(&Method::POST, path), Some(Route::plain(format, operation)), "{path}");
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
            ("/v1beta/models/org%2Fg%3Alatest:generateContent", "org/g:latest", Operation::Generate, Some(false)),
            ("/v1beta/models/org/g:generateContent", "org/g", Operation::Generate, Some(false)),
            ("/v1beta/models/g%3AgenerateContent", "g", Operation::Generate, Some(false)),
        ] {
            let route = match_path(&Method::POST, path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(route.format, WireFormat::AltCli, "{path}");
            assert_eq!((route.model_in_path.as_deref(), route.operation), (Some(model), operation), "{path}");
            assert_eq!((route.stream_in_path, route.internal_wrapper), (stream, false), "{path}");
        }
    }

    #[test]
    fn internal_paths_are_wrapped_and_name_no_model() {
        let route = match_path(&Method::POST, "/v1internal:streamGenerateContent").unwrap();
        assert_eq!((route.model_in_path, route.stream_in_path, route.internal_wrapper), (None, Some(true), true));
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
    fn anything_else_is_no_route() {
        for path in [
            "",
            "/",
            "/v1",
            "/v1/modelsx",
            "/v1/messages/batches",
            "/v1/embeddings",
            "/v1beta/models/:generateContent",
            "/v1beta/models/g:embedContent",
            "/v1beta/models/g%2:generateContent",
            "/v1beta/models/g%ff:generateContent",
            "/v1beta/models/g%0a:generateContent",
        ] {
            assert_eq!(match_path(&Method::POST, path), None, "{path}");
        }
        assert_eq!(match_path(&Method::DELETE, "/v1/messages"), None);
        assert_eq!(methods("/v1/embeddings"), None);
        assert_eq!(methods("/v1/models/g:generateContent"), Some("GET, HEAD, POST"));
    }

    #[test]
    fn the_key_leaves_the_query() {
        for (query, kept) in [
            ("alt=sse", Some("alt=sse")),
            ("key=sk-1", None),
            ("key=sk-1&alt=sse&key=2", Some("alt=sse")),
            ("alt=sse&k%65y=sk-1", Some("alt=sse")),
            ("beta=true&keys=1&x=key", Some("beta=true&keys=1&x=key")),
            ("key", None),
            ("", None),
        ] {
            assert_eq!(query_without_key(query).as_deref(), kept, "{query}");
        }
    }

    #[test]
    fn a_path_is_rebuilt_so_that_it_means_the_same_model() {
        for model in ["g", "ft:g:x", "org/g", "../../x", "a b?c#d", "größe"] {
            let path = alt_cli_path(model, "generateContent");
            assert_eq!(path.matches('/').count(), 3, "{path}");
            assert_eq!(match_path(&Method::POST, &path).unwrap().model_in_path.as_deref(), Some(model));
        }
    }
}
