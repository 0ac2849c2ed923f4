//! The table of operations: a route's name, its permission, its input, output and errors.
//!
//! The router and the OpenAPI document are both built from it, so every route is documented, and
//! every documented route exists. The entries are next to their actions.

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;

use axum::http::{HeaderValue, Response};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::actions;
use super::call::Call;
use super::envelope::{ApiError, Code, success};
use super::fields::Body;

/// Who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Administrators.
    Admin,
    /// Administrators, and users for what is their own (which the action checks).
    Own,
    /// Anyone logged in; users see their own data only.
    User,
    /// Any valid credential, a read-only key's too.
    Any,
    /// No credential is asked for.
    Open,
}

impl Permission {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Own => "self",
            Self::User => "user",
            Self::Any => "all",
            Self::Open => "open",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
}

impl Verb {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// What goes back.
pub enum ActionReply {
    /// A JSON text, and maybe a cookie.
    Json { body: Vec<u8>, cookie: Option<HeaderValue> },
    /// Something else, with its own head.
    Whole(Box<Response<axum::body::Body>>),
}

type Answering = Pin<Box<dyn Future<Output = Result<ActionReply, ApiError>> + Send>>;

/// One operation.
pub struct Operation {
    pub verb: Verb,
    /// Below `/api/`: `actions/keys/addKey`.
    pub path: &'static str,
    pub permission: Permission,
    /// One line for the document.
    pub doc: &'static str,
    pub body: Body,
    /// Largest body that is read, bytes.
    pub max_body: usize,
    /// Codes beyond those that every operation of its permission and body may answer.
    pub errors: &'static [Code],
    /// Whether the result is wrapped in `{ok, data}`.
    pub enveloped: bool,
    /// Whether it is part of the published API: what only the web interface uses is not in the
    /// document.
    pub published: bool,
    /// The media type of the answer.
    pub media: &'static str,
    /// The schema of the result, `None` where there is no data.
    pub result: fn(&mut SchemaGenerator) -> Option<Schema>,
    pub run: Box<dyn Fn(Call) -> Answering + Send + Sync>,
}

const MAX_BODY: usize = 1024 * 1024;

impl Operation {
    /// An action: POST, its result in the envelope. The result's schema is that of the type which
    /// the action returns.
    pub fn action<T, F>(path: &'static str, permission: Permission, body: Body, action: fn(Call) -> F) -> Self
    where
        T: Serialize + JsonSchema + 'static,
        F: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let run = move |call| -> Answering {
            let running = action(call);
            Box::pin(async move {
                let data = running.await?;
                let body = success(&data).map_err(ApiError::internal)?;
                Ok(ActionReply::Json { body, cookie: None })
            })
        };
        Self::with(path, permission, body, schema_of::<T>, Box::new(run))
    }

    /// An action that also sets a cookie.
    pub fn cookie_action<T, F>(path: &'static str, permission: Permission, body: Body, action: fn(Call) -> F) -> Self
    where
        T: Serialize + JsonSchema + 'static,
        F: Future<Output = Result<(T, HeaderValue), ApiError>> + Send + 'static,
    {
        let run = move |call| -> Answering {
            let running = action(call);
            Box::pin(async move {
                let (data, cookie) = running.await?;
                let body = success(&data).map_err(ApiError::internal)?;
                Ok(ActionReply::Json { body, cookie: Some(cookie) })
            })
        };
        Self::with(path, permission, body, schema_of::<T>, Box::new(run))
    }

    /// A document: GET, open to all, not wrapped.
    pub fn document<T, F>(path: &'static str, action: fn(Call) -> F) -> Self
    where
        T: Serialize + JsonSchema + 'static,
        F: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let run = move |call| -> Answering {
            let running = action(call);
            Box::pin(async move {
                let data = running.await?;
                let body = serde_json::to_vec(&data).map_err(ApiError::internal)?;
                Ok(ActionReply::Json { body, cookie: None })
            })
        };
        let this = Self::with(path, Permission::Open, Body::EMPTY, schema_of::<T>, Box::new(run));
        Self { verb: Verb::Get, enveloped: false, ..this }
    }

    /// A GET whose answer is no JSON text but of the media type `media`, head and all; `T`
    /// describes it in the document.
    pub fn whole<T, F>(path: &'static str, permission: Permission, media: &'static str, action: fn(Call) -> F) -> Self
    where
        T: JsonSchema + 'static,
        F: Future<Output = Result<Response<axum::body::Body>, ApiError>> + Send + 'static,
    {
        Self { verb: Verb::Get, ..Self::stream::<T, F>(path, permission, Body::EMPTY, media, action) }
    }

    /// The same with a POST, which has a body.
    pub fn stream<T, F>(
        path: &'static str,
        permission: Permission,
        body: Body,
        media: &'static str,
        action: fn(Call) -> F,
    ) -> Self
    where
        T: JsonSchema + 'static,
        F: Future<Output = Result<Response<axum::body::Body>, ApiError>> + Send + 'static,
    {
        let run = move |call| -> Answering {
            let running = action(call);
            Box::pin(async move { Ok(ActionReply::Whole(Box::new(running.await?))) })
        };
        Self { enveloped: false, media, ..Self::with(path, permission, body, schema_of::<T>, Box::new(run)) }
    }

    fn with(
        path: &'static str,
        permission: Permission,
        body: Body,
        result: fn(&mut SchemaGenerator) -> Option<Schema>,
        run: Box<dyn Fn(Call) -> Answering + Send + Sync>,
    ) -> Self {
        let (doc, errors): (_, &'static [Code]) = ("", &[]);
        let (verb, enveloped, max_body) = (Verb::Post, true, MAX_BODY);
        let (media, published) = ("application/json", true);
        Self { verb, path, permission, doc, body, max_body, errors, enveloped, published, media, result, run }
    }

    pub fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    pub fn errors(self, errors: &'static [Code]) -> Self {
        Self { errors, ..self }
    }

    /// Takes it out of the published API.
    pub fn unpublished(self) -> Self {
        Self { published: false, ..self }
    }

    pub fn max_body(self, bytes: usize) -> Self {
        Self { max_body: bytes, ..self }
    }

    /// Whether it is to change something.
    pub fn writes(&self) -> bool {
        let reads = ["get", "list", "fetch", "has", "test", "whoami", "health", "log"];
        let verb = self.path.rsplit('/').next().unwrap_or_default();
        self.verb == Verb::Post && !reads.iter().any(|word| verb.starts_with(word))
    }

    /// The code of an internal fault, by what the operation was about to do.
    pub fn failure(&self) -> Code {
        let verb = self.path.rsplit('/').next().unwrap_or_default();
        let starts = |words: &[&str]| words.iter().any(|word| verb.starts_with(word));
        match () {
            () if starts(&["add", "create", "upload"]) => Code::CREATE_FAILED,
            () if starts(&["edit", "update", "toggle", "renew", "batch", "save"]) => Code::UPDATE_FAILED,
            () if starts(&["remove", "delete"]) => Code::DELETE_FAILED,
            () => Code::OPERATION_FAILED,
        }
    }
}

fn schema_of<T: JsonSchema + 'static>(schemas: &mut SchemaGenerator) -> Option<Schema> {
    let nothing = std::any::TypeId::of::<T>() == std::any::TypeId::of::<()>();
    (!nothing).then(|| schemas.subschema_for::<T>())
}

/// Every operation, in the order of the document.
pub fn operations() -> &'static [Operation] {
    static TABLE: LazyLock<Vec<Operation>> = LazyLock::new(|| {
        let rooms = [
            actions::login::operations(),
            actions::users::operations(),
            actions::keys::operations(),
            actions::providers::operations(),
            actions::prices::operations(),
            actions::sensitive_words::operations(),
            actions::error_rules::operations(),
            actions::usage::operations(),
            actions::statistics::operations(),
            actions::overview::operations(),
            actions::logs::operations(),
            actions::sessions::operations(),
            actions::messages::operations(),
            actions::my_usage::operations(),
            actions::playground::operations(),
            actions::events::operations(),
            actions::settings::operations(),
            actions::notifications::operations(),
            actions::configuration::operations(),
            actions::audit::operations(),
            actions::service::operations(),
            actions::reference::operations(),
        ];
        rooms.into_iter().flatten().collect()
    });
    &TABLE
}

/// Those that the document describes.
pub fn published() -> impl Iterator<Item = &'static Operation> {
    operations().iter().filter(|operation| operation.published)
}

/// The operation at a path below `/api/`.
pub fn find(path: &str) -> Option<&'static Operation> {
    operations().iter().find(|operation| operation.path == path)
}
