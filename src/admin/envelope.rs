//! The envelope of every administration reply, and the refusals in its failure form.
//!
//! `{ok: true, data}` or `{ok: false, error, errorCode, errorParams?}`. A refusal is built where
//! the error is found and converted to a response in one place. Internal errors show a request id;
//! the log has the details.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::domain::clock::Timestamp;
pub use crate::reasons::Code;
use crate::reasons::Reason;
use crate::state::Conditions;

impl Code {
    /// The code's status, unless the refusal overrides it (an unknown operation is 404).
    pub fn status(self) -> StatusCode {
        match self {
            Self::UNAUTHORIZED => StatusCode::UNAUTHORIZED,
            Self::PERMISSION_DENIED | Self::KEY_LIMITS_LOCKED => StatusCode::FORBIDDEN,
            Self::METHOD_NOT_ALLOWED => StatusCode::METHOD_NOT_ALLOWED,
            Self::PAYLOAD_TOO_LARGE => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TOO_MANY_ATTEMPTS => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// Why a request is refused, and the client's message. Boxed, as it is part of every `Result` here.
#[derive(Debug)]
pub struct ApiError(Box<EnvelopeParts>);

#[derive(Debug)]
struct EnvelopeParts {
    status: StatusCode,
    code: Code,
    words: Words,
    params: Map<String, Value>,
    /// Whether the words are about the field that the parameters name.
    at_field: bool,
    /// Extra response headers (`Retry-After`, `Allow`, …).
    headers: Vec<(header::HeaderName, HeaderValue)>,
    /// Only for the log.
    internal: Option<String>,
    /// The database caused it.
    database: Option<DatabaseTrouble>,
}

/// The words of a refusal.
#[derive(Debug)]
enum Words {
    /// Those of its reason.
    Reason(Reason),
    /// Its own.
    Own(String),
}

/// How the database failed an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseTrouble {
    /// There is no connection.
    Unreachable,
    /// It did not answer in time: it may be unreachable or overloaded.
    Busy,
}

/// The possible effects of a failed write.
const UNCHANGED: &str = "Unless it broke off in the very moment of saving, nothing was changed";

impl ApiError {
    /// A refusal for a reason, in the reason's words.
    pub fn because(code: Code, reason: Reason) -> Self {
        let params = Map::from_iter([("reason".to_owned(), reason.as_str().into())]);
        Self::of(code, params, Words::Reason(reason))
    }

    /// A refusal without a reason beside its code, which user interfaces translate. For a code with
    /// several reasons use [`because`](Self::because).
    pub fn by_code(code: Code, message: impl Into<String>) -> Self {
        Self::of(code, Map::new(), Words::Own(message.into()))
    }

    fn of(code: Code, params: Map<String, Value>, words: Words) -> Self {
        let (status, headers) = (code.status(), Vec::new());
        Self(Box::new(EnvelopeParts {
            status,
            code,
            words,
            params,
            at_field: false,
            headers,
            internal: None,
            database: None,
        }))
    }

    /// What is wrong with the field `name`: it goes into the parameters, and before the words.
    pub fn field(mut self, name: &str) -> Self {
        self.0.at_field = true;
        self.with("field", name.into())
    }

    /// With all these parameters.
    pub fn with_all(mut self, params: Map<String, Value>) -> Self {
        self.0.params.extend(params);
        self
    }

    /// Several errors of one body: the first is the answer, and `faults` in its parameters lists
    /// all of them, each with its `errorCode`, its `error` and its own parameters.
    pub fn of_faults(faults: Vec<Self>) -> Option<Self> {
        let all: Vec<Value> = faults.iter().flat_map(Self::reported).collect();
        let first = faults.into_iter().next()?;
        Some(if all.len() > 1 { first.with("faults", all.into()) } else { first })
    }

    /// The errors that it consists of.
    fn reported(&self) -> Vec<Value> {
        if let Some(Value::Array(faults)) = self.0.params.get("faults") {
            return faults.clone();
        }
        let mut fault = self.0.params.clone();
        fault.insert("errorCode".to_owned(), self.0.code.0.into());
        fault.insert("error".to_owned(), self.message().into());
        vec![fault.into()]
    }

    /// With a parameter.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.0.params.insert(name.to_owned(), value);
        self
    }

    /// With a header of the response.
    pub fn header(mut self, name: header::HeaderName, value: impl Into<HeaderValue>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    /// With another status than that of its code.
    pub fn at(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    /// The caller may not do this.
    pub fn denied(reason: Reason) -> Self {
        Self::because(Code::PERMISSION_DENIED, reason)
    }

    /// No such record (400: the statuses of docs/reference/administration.md have no 404).
    pub fn missing(what: &str, id: impl Into<Value>) -> Self {
        Self::by_code(Code::NOT_FOUND, format!("there is no such {what}")).with("id", id.into())
    }

    /// An internal error: the client gets a request id, the log the reason.
    pub fn internal(reason: impl std::fmt::Display) -> Self {
        let mut refusal = Self::because(Code::OPERATION_FAILED, Reason::Internal)
            .at(StatusCode::INTERNAL_SERVER_ERROR);
        refusal.0.internal = Some(reason.to_string());
        refusal
    }

    /// The database is unreachable or does not answer: the consequence for the caller, and the
    /// reason for the log.
    pub fn unavailable(why: Reason, reason: impl std::fmt::Display) -> Self {
        let mut refusal =
            Self::because(Code::OPERATION_FAILED, why).at(StatusCode::SERVICE_UNAVAILABLE);
        refusal.0.internal = Some(reason.to_string());
        refusal.header(header::RETRY_AFTER, HeaderValue::from_static("5"))
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// A parameter that is a text: `field`.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.0.params.get(name)?.as_str()
    }

    /// The answer for a caller in this process: the parameters, and in them each fault.
    pub fn params(&self) -> &Map<String, Value> {
        &self.0.params
    }

    /// The message for the client.
    pub fn message(&self) -> String {
        let words = match &self.0.words {
            Words::Reason(reason) => reason.filled(&self.0.params),
            Words::Own(words) => words.clone(),
        };
        match self.param("field").filter(|_| self.0.at_field) {
            Some(field) => format!("{field}: {words}"),
            None => words,
        }
    }

    /// The database failed the operation. [`ApiError::located`] adds since when.
    pub fn database(trouble: DatabaseTrouble, reason: impl std::fmt::Display) -> Self {
        let why = match trouble {
            DatabaseTrouble::Unreachable => Reason::DatabaseLost,
            DatabaseTrouble::Busy => Reason::DatabaseBusy,
        };
        let mut refusal = Self::unavailable(why, reason);
        refusal.0.database = Some(trouble);
        refusal
    }

    /// Gives a refusal caused by the database the cause that `/readyz` and the overview show.
    /// `writes`: the operation would have changed something. The second value: the cause was known
    /// already, and the log has a line about it.
    pub fn located(
        mut self,
        conditions: &Conditions,
        now: Timestamp,
        writes: bool,
    ) -> (Self, bool) {
        let Some(trouble) = self.0.database else { return (self, false) };
        let is_news = trouble == DatabaseTrouble::Unreachable && conditions.database_lost(now);
        let Some(fault) = conditions.database() else { return (self, false) };
        let after = if writes { format!(". {UNCHANGED}") } else { String::new() };
        self.0.words = Words::Own(format!("the database {}{after}", fault.text));
        let located = self
            .with("reason", Reason::DatabaseUnreachable.as_str().into())
            .with("since", fault.since.to_iso().into());
        (located, !is_news)
    }

    /// The reason for the log, for an internal error.
    pub fn internal_reason(&self) -> Option<&str> {
        self.0.internal.as_deref()
    }

    /// With another code.
    pub fn coded(mut self, code: Code) -> Self {
        self.0.code = code;
        self
    }

    /// The response, in the envelope.
    pub fn into_response(self) -> Response<Body> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct EnvelopeError<'a> {
            ok: bool,
            error: &'a str,
            error_code: &'a str,
            #[serde(skip_serializing_if = "Map::is_empty")]
            error_params: &'a Map<String, Value>,
        }
        let failure = EnvelopeError {
            ok: false,
            error: &self.message(),
            error_code: self.0.code.0,
            error_params: &self.0.params,
        };
        let body = serde_json::to_vec(&failure).unwrap_or_default();
        let mut response = json_response(self.0.status, body);
        response.headers_mut().extend(self.0.headers);
        response
    }
}

/// `{ok: true, data}`, or `{ok: true}` without data. Amounts stay exact: the data is serialised
/// directly to text, never through a tree of floats.
pub fn success<T: Serialize>(data: &T) -> Result<Vec<u8>, serde_json::Error> {
    let data = serde_json::to_string(data)?;
    Ok(match data.as_str() {
        "null" => br#"{"ok":true}"#.to_vec(),
        data => format!(r#"{{"ok":true,"data":{data}}}"#).into_bytes(),
    })
}

/// A JSON response that must not be cached.
pub fn json_response(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
