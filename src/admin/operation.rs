//! One operation of the administration: a route's name, its permission, its input, output and
//! errors. Each file of `actions` declares its own; `table` lists them all.

use std::future::Future;
use std::pin::Pin;

use axum::http::{HeaderValue, Response};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

use super::bodies::{Input, Nothing, Shape, read};
use super::call::Call;
use super::envelope::{ApiError, Code, success};

/// Who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Permission {
    /// Administrators.
    Admin,
    /// Administrators, and users for what is their own (which the action checks).
    #[strum(serialize = "self")]
    Own,
    /// Anyone logged in; users see their own data only.
    User,
    /// Any valid credential, a read-only key's too.
    #[strum(serialize = "all")]
    Any,
    /// No credential is asked for.
    Open,
}

impl Permission {
    /// The name in the document.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Verb {
    /// GET, without a body.
    Get,
    /// POST, with a body.
    Post,
}

impl Verb {
    /// The method's name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The accepted methods, as `Allow` lists them.
    pub const fn allow(self) -> &'static str {
        match self {
            Self::Get => "GET, HEAD",
            Self::Post => "POST",
        }
    }
}

/// What an operation asks of the database: which slots it waits for (`store::ReportHolder`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// A few rows: administrators need no slot, and users have slots beside those of reports.
    Light,
    /// Many rows, by a filter of the caller.
    Report,
    /// The reply goes on after the action.
    Long,
}

/// What an operation changes; the caller's own login does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// It adds something.
    Creates,
    /// It changes something.
    Updates,
    /// It removes something.
    Deletes,
    /// Another change, or several at once.
    Acts,
}

impl Effect {
    /// Whether it is to change something.
    pub fn writes(self) -> bool {
        self != Self::Reads
    }

    /// The code of an internal fault.
    pub const fn failure(self) -> Code {
        match self {
            Self::Creates => Code::CREATE_FAILED,
            Self::Updates => Code::UPDATE_FAILED,
            Self::Deletes => Code::DELETE_FAILED,
            Self::Reads | Self::Acts => Code::OPERATION_FAILED,
        }
    }
}

/// What goes back.
pub enum ActionReply {
    /// A JSON text, and maybe a cookie.
    Json {
        /// The JSON text.
        body: Vec<u8>,
        /// A `Set-Cookie` header: after a login or logout.
        cookie: Option<HeaderValue>,
    },
    /// Something else, with its own head.
    Whole(Box<Response<axum::body::Body>>),
}

/// An action with its body, ready to run.
pub type Ready = Box<dyn FnOnce(Call) -> Answering + Send>;
type Prepare = Box<dyn Fn(&Map<String, Value>) -> Result<Ready, ApiError> + Send + Sync>;
type Answering = Pin<Box<dyn Future<Output = Result<ActionReply, ApiError>> + Send>>;

/// One operation.
pub struct Operation {
    /// Its method.
    pub verb: Verb,
    /// Below `/api/`: `actions/keys/addKey`.
    pub path: &'static str,
    /// Who may call it.
    pub permission: Permission,
    /// One line for the document.
    pub doc: &'static str,
    /// The fields of its body.
    pub body: &'static Shape,
    /// Largest body that is read, bytes.
    pub max_body: usize,
    /// Codes beyond those that every operation of its permission and body may answer.
    pub errors: Vec<Code>,
    /// Whether the result is wrapped in `{ok, data}`.
    pub enveloped: bool,
    /// Whether it is part of the published API: what only the web interface uses is not in the
    /// document.
    pub published: bool,
    /// The media type of the answer.
    pub media: &'static str,
    /// The schema of the result, `None` where there is no data.
    pub result: fn(&mut SchemaGenerator) -> Option<Schema>,
    /// What it asks of the database.
    pub load: Load,
    /// What it changes.
    pub effect: Effect,
    /// Reads a body into its type, for the action to be run with it; else the refusal.
    pub prepare: Prepare,
}

const MAX_BODY: usize = 1024 * 1024;

/// Body bound of an operation that is open to all, in bytes.
pub const OPEN_BODY: usize = 4096;

impl Operation {
    /// An action: POST, its result in the envelope. The schemas of the body and of the result are
    /// those of the types that the action takes and returns.
    pub fn action<B, T, F>(
        path: &'static str,
        permission: Permission,
        action: fn(Call, B) -> F,
    ) -> Self
    where
        B: Input,
        T: Serialize + JsonSchema + 'static,
        F: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let run = move |call, body| async move {
            let data = action(call, body).await?;
            let body = success(&data).map_err(ApiError::internal)?;
            Ok(ActionReply::Json { body, cookie: None })
        };
        Self::with::<B, _>(path, permission, schema_of::<T>, run)
    }

    /// An action that also sets a cookie.
    pub fn cookie_action<B, T, F>(
        path: &'static str,
        permission: Permission,
        action: fn(Call, B) -> F,
    ) -> Self
    where
        B: Input,
        T: Serialize + JsonSchema + 'static,
        F: Future<Output = Result<(T, HeaderValue), ApiError>> + Send + 'static,
    {
        let run = move |call, body| async move {
            let (data, cookie) = action(call, body).await?;
            let body = success(&data).map_err(ApiError::internal)?;
            Ok(ActionReply::Json { body, cookie: Some(cookie) })
        };
        Self::with::<B, _>(path, permission, schema_of::<T>, run)
    }

    /// A document: GET, open to all, not wrapped.
    pub fn document<T, F>(path: &'static str, action: fn(Call) -> F) -> Self
    where
        T: Serialize + JsonSchema + 'static,
        F: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let run = move |call, Nothing {}| async move {
            let data = action(call).await?;
            let body = serde_json::to_vec(&data).map_err(ApiError::internal)?;
            Ok(ActionReply::Json { body, cookie: None })
        };
        let this = Self::with(path, Permission::Open, schema_of::<T>, run);
        Self { verb: Verb::Get, enveloped: false, effect: Effect::Reads, ..this }
    }

    /// A GET whose answer is not JSON text but of the media type `media`, head and all; `T`
    /// describes it in the document.
    pub fn whole<T, F>(
        path: &'static str,
        permission: Permission,
        media: &'static str,
        action: fn(Call) -> F,
    ) -> Self
    where
        T: JsonSchema + 'static,
        F: Future<Output = Result<Response<axum::body::Body>, ApiError>> + Send + 'static,
    {
        let run = move |call, Nothing {}| async move {
            Ok(ActionReply::Whole(Box::new(action(call).await?)))
        };
        let this = Self::with(path, permission, schema_of::<T>, run);
        let (verb, load, effect) = (Verb::Get, Load::Long, Effect::Reads);
        Self { verb, enveloped: false, media, load, effect, ..this }
    }

    /// The same with a POST, which has a body.
    pub fn stream<B, T, F>(
        path: &'static str,
        permission: Permission,
        media: &'static str,
        action: fn(Call, B) -> F,
    ) -> Self
    where
        B: Input,
        T: JsonSchema + 'static,
        F: Future<Output = Result<Response<axum::body::Body>, ApiError>> + Send + 'static,
    {
        let run = move |call, body| async move {
            Ok(ActionReply::Whole(Box::new(action(call, body).await?)))
        };
        Self {
            enveloped: false,
            media,
            load: Load::Long,
            ..Self::with::<B, _>(path, permission, schema_of::<T>, run)
        }
    }

    fn with<B, F>(
        path: &'static str,
        permission: Permission,
        result: fn(&mut SchemaGenerator) -> Option<Schema>,
        run: impl Fn(Call, B) -> F + Copy + Send + Sync + 'static,
    ) -> Self
    where
        B: Input,
        F: Future<Output = Result<ActionReply, ApiError>> + Send + 'static,
    {
        let body = Shape::of::<B>();
        let prepare: Prepare = Box::new(move |sent| {
            let body: B = read(sent)?;
            Ok(Box::new(move |call| Box::pin(run(call, body))))
        });
        let (doc, errors) = ("", Vec::new());
        let (verb, enveloped, max_body) = (Verb::Post, true, MAX_BODY);
        let (media, published) = ("application/json", true);
        Self {
            verb,
            path,
            permission,
            doc,
            body,
            max_body,
            errors,
            enveloped,
            published,
            media,
            result,
            load: Load::Light,
            effect: Effect::Acts,
            prepare,
        }
    }

    /// Makes it a report, which reads many rows.
    pub fn report(self) -> Self {
        Self { load: Load::Report, effect: Effect::Reads, ..self }
    }

    /// It changes nothing.
    pub fn reads(self) -> Self {
        Self { effect: Effect::Reads, ..self }
    }

    /// It adds something.
    pub fn creates(self) -> Self {
        Self { effect: Effect::Creates, ..self }
    }

    /// It changes something.
    pub fn updates(self) -> Self {
        Self { effect: Effect::Updates, ..self }
    }

    /// It removes something.
    pub fn deletes(self) -> Self {
        Self { effect: Effect::Deletes, ..self }
    }

    /// Gives it its line for the document.
    pub fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    /// Gives it its own error codes.
    pub fn errors(mut self, errors: &[Code]) -> Self {
        self.errors.extend_from_slice(errors);
        self
    }

    /// Takes it out of the published API.
    pub fn unpublished(self) -> Self {
        Self { published: false, ..self }
    }

    /// Gives it another bound of its body, bytes.
    pub fn max_body(self, bytes: usize) -> Self {
        Self { max_body: bytes, ..self }
    }
}

fn schema_of<T: JsonSchema + 'static>(schemas: &mut SchemaGenerator) -> Option<Schema> {
    let nothing = std::any::TypeId::of::<T>() == std::any::TypeId::of::<()>();
    (!nothing).then(|| schemas.subschema_for::<T>())
}
