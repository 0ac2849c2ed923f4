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
use serde::{Deserialize, Serialize};

use super::bad_request::BadRequest;
use crate::domain::endpoint::{ApiEndpoint, NATIVE_FILE, Unit};
use crate::domain::format::WireFormat;
use crate::domain::ids::{CredentialId, KeyId, ProviderId};
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
    /// A call about a reply, a batch or a file that its provider stores.
    Stored(StoredCall),
    /// The next piece of a file.
    Upload(Box<UploadCall>),
    /// The list of the caller's batches or files.
    ListStored(&'static Collection),
    /// The list of the models that the caller may use.
    ListModels,
    /// One model's record, by its decoded id.
    GetModel(String),
}

/// What accounts hold for keys: replies, batches or files, by the path that all of a kind have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collection {
    /// Its name in the database.
    pub name: &'static str,
    /// The path, with the version.
    pub path: &'static str,
    /// Whose clients call it.
    pub format: WireFormat,
    /// One of it, for people.
    pub item: &'static str,
    /// The method, and what follows the id in the path, of each call.
    calls: &'static [(Method, &'static str)],
}

/// Replies, which are not listed.
pub static REPLIES: Collection = Collection {
    name: "replies",
    path: "/v1/responses",
    format: WireFormat::Responses,
    item: "Response",
    calls: &[
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::POST, "/cancel"),
        (Method::GET, "/input_items"),
    ],
};
/// Anthropic's batches.
pub static MESSAGE_BATCHES: Collection = Collection {
    name: "message_batches",
    path: "/v1/messages/batches",
    format: WireFormat::Native,
    item: "Batch",
    calls: &[
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::POST, "/cancel"),
        (Method::GET, RESULTS),
    ],
};
/// OpenAI's batches.
pub static BATCHES: Collection = Collection {
    name: "batches",
    path: "/v1/batches",
    format: WireFormat::Chat,
    item: "Batch",
    calls: &[(Method::GET, ""), (Method::POST, "/cancel")],
};
/// OpenAI's files.
pub static FILES: Collection = Collection {
    name: "files",
    path: "/v1/files",
    format: WireFormat::Chat,
    item: "File",
    calls: &[(Method::GET, ""), (Method::DELETE, ""), (Method::GET, CONTENT)],
};
/// Anthropic's files, at the same path: [`Route::for_native`].
pub static NATIVE_FILES: Collection =
    Collection { name: "native_files", format: WireFormat::Native, ..FILES };
/// Google's batches.
pub static GOOGLE_BATCHES: Collection = Collection {
    name: "google_batches",
    path: "/v1beta/batches",
    format: WireFormat::AltCli,
    item: "Batch",
    calls: &[(Method::GET, ""), (Method::DELETE, ""), (Method::POST, ":cancel")],
};
/// Google's files.
pub static GOOGLE_FILES: Collection = Collection {
    name: "google_files",
    path: "/v1beta/files",
    format: WireFormat::AltCli,
    item: "File",
    calls: &[(Method::GET, ""), (Method::DELETE, ""), (Method::GET, DOWNLOAD)],
};
/// What follows the id of a batch of Anthropic's in the path of its results.
pub const RESULTS: &str = "/results";
/// The same for the content of a file.
pub const CONTENT: &str = "/content";
/// The same for the content of Google's files.
pub const DOWNLOAD: &str = ":download";
/// What may precede the path of that call.
const DOWNLOADS: &str = "/download";

/// Those whose lists the gateway makes itself: batches and files.
static LISTED: [&Collection; 5] =
    [&MESSAGE_BATCHES, &BATCHES, &FILES, &GOOGLE_BATCHES, &GOOGLE_FILES];

impl Collection {
    /// That of what an endpoint makes.
    pub fn made_by(endpoint: &ApiEndpoint) -> Option<&'static Self> {
        match endpoint.format {
            WireFormat::Native if endpoint.path == FILES.path => Some(&NATIVE_FILES),
            WireFormat::AltCli => match endpoint.unit {
                Unit::Batch => Some(&GOOGLE_BATCHES),
                Unit::Free => Some(&GOOGLE_FILES),
                _ => None,
            },
            _ => Self::of(endpoint.path),
        }
    }

    /// That of this path.
    pub fn of(path: &str) -> Option<&'static Self> {
        LISTED.into_iter().find(|collection| collection.path == path)
    }

    /// Whether it is that of files, of either form.
    pub fn is_of_files(&self) -> bool {
        self.item == FILES.item
    }

    /// Whether it is that of batches.
    pub fn is_of_batches(&self) -> bool {
        self.item == BATCHES.item
    }
}

/// A call about a stored reply, a batch or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCall {
    /// What it is about.
    pub collection: &'static Collection,
    /// The method: `GET`, `DELETE` or `POST`.
    pub method: Method,
    /// The id, which is a path's segment as it is.
    pub id: String,
    /// What follows it in the path: nothing, `/cancel` and others.
    pub rest: &'static str,
}

impl StoredCall {
    /// Bytes of the longest id.
    const MAX_ID: usize = 256;

    /// A call that reads.
    pub fn get(collection: &'static Collection, id: &str, rest: &'static str) -> Self {
        Self { collection, method: Method::GET, id: id.to_owned(), rest }
    }

    /// The call of this method at this path.
    fn of(method: &Method, path: &str) -> Option<Self> {
        let content = path.strip_prefix(DOWNLOADS).filter(|path| path.ends_with(DOWNLOAD));
        let path = content.unwrap_or(path);
        let all = [&REPLIES].into_iter().chain(LISTED);
        let mut at =
            all.filter_map(|of| Some((of, path.strip_prefix(of.path)?.strip_prefix('/')?)));
        let (collection, after) = at.next()?;
        let (id, rest) = after.find(['/', ':']).map_or((after, ""), |at| after.split_at(at));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_id = (1..=Self::MAX_ID).contains(&id.len()) && id.chars().all(is_plain);
        let known = collection.calls.iter().find(|(of, end)| of == method && *end == rest);
        let (_, rest) = known.filter(|_| is_id && !matches!(id, "compact" | "input_tokens"))?;
        Some(Self { collection, method: method.clone(), id: id.to_owned(), rest })
    }

    /// The path at the provider, with the version.
    pub fn path(&self) -> String {
        let media = if self.rest == DOWNLOAD { "?alt=media" } else { "" };
        format!("{}/{}{}{media}", self.collection.path, self.id, self.rest)
    }

    /// Whether its answer is a file's content, of any kind, or the results of a batch.
    pub fn is_content(&self) -> bool {
        matches!(self.rest, CONTENT | RESULTS | DOWNLOAD)
    }
}

/// A piece of a file, at the address that the gateway gave for the upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadCall {
    /// The key that began the upload.
    pub key: KeyId,
    /// The provider that takes it.
    pub provider: ProviderId,
    /// The credential of the account that takes it.
    pub credential: CredentialId,
    /// The provider's own address of the upload: path and query.
    pub target: String,
}

impl Operation {
    /// Whether a request counts against limits, and its reply has a price.
    pub const fn is_metered(&self) -> bool {
        match self {
            Self::Generate => true,
            Self::Endpoint(endpoint) => !matches!(endpoint.unit, Unit::Free),
            _ => false,
        }
    }

    /// Whether it is a call of an upload in Google's form.
    pub const fn is_upload(&self) -> bool {
        match self {
            Self::Endpoint(endpoint) => endpoint.is_upload(),
            operation => matches!(operation, Self::Upload(_)),
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
    /// The same for a client of Anthropic's, as the head says: files, and lists of models, have one
    /// path for two forms.
    #[must_use]
    pub fn for_native(mut self) -> Self {
        match &mut self.operation {
            Operation::Stored(call) if *call.collection == FILES => call.collection = &NATIVE_FILES,
            Operation::ListStored(collection) if **collection == FILES => {
                *collection = &NATIVE_FILES;
            }
            Operation::Endpoint(endpoint) if endpoint.path == FILES.path => {
                *endpoint = &NATIVE_FILE;
            }
            Operation::ListModels | Operation::GetModel(_) => {}
            _ => return self,
        }
        self.format = WireFormat::Native;
        self
    }

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
        return Some(Route::plain(call.collection.format, Operation::Stored(call)));
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
    if *method == Method::GET
        && let Some(collection) = Collection::of(path)
    {
        return Some(Route::plain(collection.format, Operation::ListStored(collection)));
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
        [true, false, false, true] => Some("GET, POST"),
        [true, ..] => Some("GET"),
        [.., true] => Some("POST"),
        _ => None,
    }
}

/// The format of the clients that ask for an unknown path, by its beginning.
pub fn format_near(path: &str) -> Option<WireFormat> {
    const NEAR: [(&str, WireFormat); 6] = [
        ("/v1beta/", WireFormat::AltCli),
        ("/upload/v1beta/", WireFormat::AltCli),
        ("/download/v1beta/", WireFormat::AltCli),
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

/// Checks that a model's name is valid in the path of a call as one segment.
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
        let message = "a model's name that is part of a path must not hold slashes, dot segments, `%`, `?`, `#` or `;`";
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
#[path = "route_tests.rs"]
mod tests;
