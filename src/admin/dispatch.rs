//! Runs an HTTP request as an action: look up, authenticate, permit, read, check, run, reply.
//!
//! The order matters: errors in a body are reported only to an identified caller. Actions run as
//! separate tasks, so that a client that closes its connection cannot stop one between its commit
//! and its publication, and a panic ends only one request.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use serde_json::Map;
use tokio::runtime::Handle;

use super::auth::{Via, Who, credential};
use super::call::Call;
use super::context::Context;
use super::envelope::{ApiError, Code, DatabaseTrouble, json_response};
use super::made;
use super::operation::{ActionReply, Load, Operation, Permission, Verb};
use super::reasons::Reason;
use super::surface::Surface;
use super::table;
use super::{body, security, ui};
use crate::domain::clock::Timestamp;
use crate::domain::ids::RequestId;
use crate::formats::client_address::client_address;
use crate::store::{ReportHolder, ReportSlot};

/// How long a caller waits for an action. The action itself continues: stopping it half-way would
/// leave its effect unknown.
const ACTION_TIME: Duration = Duration::from_secs(60);

/// The same for a report. A statement of a report has less time on PostgreSQL.
const REPORT_TIME: Duration = Duration::from_secs(30);

/// Answers any request below `/api/`.
pub(super) async fn dispatch(
    State(surface): State<Surface>,
    request: Request<Body>,
) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let operation = path.strip_prefix("/api/").and_then(table::find);
    let ctx = Arc::clone(&surface.ctx);
    let answer = match operation {
        None => Err(unknown(&path)),
        Some(operation) => answer(surface, operation, request).await,
    };
    answer.unwrap_or_else(|refusal| refuse(&ctx, refusal, &path, operation))
}

/// Answers any other request: with a page of the web UI, or as an unknown operation.
pub(super) async fn elsewhere(surface: State<Surface>, request: Request<Body>) -> Response<Body> {
    match ui::serve(&request) {
        Some(response) => response,
        None => dispatch(surface, request).await,
    }
}

fn unknown(path: &str) -> ApiError {
    let shown: String = path.chars().take(100).collect();
    ApiError::by_code(Code::NOT_FOUND, format!("there is no operation {shown}"))
        .at(StatusCode::NOT_FOUND)
}

fn refuse(
    ctx: &Context,
    refusal: ApiError,
    path: &str,
    operation: Option<&Operation>,
) -> Response<Body> {
    let writes = operation.is_some_and(|operation| operation.effect.writes());
    let (refusal, is_known) = refusal.located(&ctx.node.conditions, ctx.node.clock.now(), writes);
    let Some(reason) = refusal.internal_reason() else { return refusal.into_response() };
    let request_id = RequestId::new().to_string();
    if is_known {
        // Pages retry while the database is unreachable; the log reports it once.
        tracing::debug!(%request_id, path, reason, "an administration request failed");
    } else {
        tracing::error!(%request_id, path, reason, "an administration request failed");
    }
    let code = operation.map_or(Code::OPERATION_FAILED, |operation| operation.effect.failure());
    refusal.coded(code).with("requestId", request_id.into()).into_response()
}

async fn answer(
    surface: Surface,
    operation: &'static Operation,
    request: Request<Body>,
) -> Result<Response<Body>, ApiError> {
    let (head, sent) = request.into_parts();
    let allowed = match operation.verb {
        Verb::Get => head.method == Method::GET || head.method == Method::HEAD,
        Verb::Post => head.method == Method::POST,
    };
    if !allowed {
        let allow = operation.verb.allow();
        let refusal = ApiError::by_code(
            Code::METHOD_NOT_ALLOWED,
            format!("this operation takes {allow} only"),
        );
        return Err(refusal.header(header::ALLOW, HeaderValue::from_static(allow)));
    }
    let ctx = &surface.ctx;
    let now = ctx.node.clock.now();
    let peer = head.extensions.get::<ConnectInfo<SocketAddr>>();
    let client = peer.map(|info| {
        client_address(info.0.ip(), &head.headers, &ctx.node.live.load().trusted_proxies)
    });
    let who = authenticate(ctx, operation, &head, client, now).await?;
    let ready = match operation.verb {
        Verb::Get => (operation.prepare)(&Map::new())?,
        Verb::Post => body::read(&surface, operation, who.as_ref(), &head.headers, sent).await?,
    };
    let cookie = credential::cookie(&head.headers);
    let credentials = credential::headers(&head.headers);
    let Surface { ctx, throttle, description, live, .. } = surface;
    let slot = slot(&ctx, operation, who.as_ref()).await?;
    let call = Call { ctx, throttle, description, live, who, client, cookie, credentials, now };
    let running = ready(call);
    let task = Handle::current().spawn(async move {
        let answer = running.await;
        drop(slot);
        answer
    });
    let (time, late) = match operation.load {
        Load::Report => (REPORT_TIME, Reason::ReportSlow),
        Load::Light | Load::Long => (ACTION_TIME, Reason::ActionUnfinished),
    };
    let ended = tokio::time::timeout(time, task).await.map_err(|_| {
        ApiError::unavailable(late, format!("an action has not ended within {time:?}"))
    })?;
    let answer =
        ended.map_err(|error| ApiError::internal(format!("the action did not end: {error}")))??;
    Ok(match answer {
        ActionReply::Json { body, cookie } => {
            let mut response = json_response(StatusCode::OK, body);
            if let Some(cookie) = cookie {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            response
        }
        ActionReply::Whole(response) => made::unless_known(*response, &head.headers),
    })
}

/// The caller's slot, if the operation needs one.
///
/// # Errors
/// 503 if too many of the caller's reports, or of all users', run at this time.
async fn slot(
    ctx: &Context,
    operation: &Operation,
    who: Option<&Who>,
) -> Result<Option<ReportSlot>, ApiError> {
    let Some(who) = who else { return Ok(None) };
    let holder = match (who.user_id().filter(|_| !who.is_admin()), operation.load) {
        (Some(user), Load::Report) => ReportHolder::User(user),
        (Some(user), Load::Light) => ReportHolder::Light(user),
        (None, Load::Report) => ReportHolder::Administrator(who.user_id()),
        (None, Load::Light) | (_, Load::Long) => return Ok(None),
    };
    if let Some(slot) = ctx.node.store.report_slot(holder).await {
        return Ok(Some(slot));
    }
    // Reports that wait for the database are not a fault of the caller.
    Err(match ctx.node.conditions.database() {
        Some(fault) => ApiError::database(DatabaseTrouble::Busy, &fault.text),
        None => ApiError::because(Code::OPERATION_FAILED, Reason::ReportsBusy)
            .at(StatusCode::SERVICE_UNAVAILABLE)
            .header(header::RETRY_AFTER, HeaderValue::from_static("5")),
    })
}

/// Identifies the caller and checks the permission. Operations that are open to all skip this.
async fn authenticate(
    ctx: &Context,
    operation: &Operation,
    head: &axum::http::request::Parts,
    client: Option<IpAddr>,
    now: Timestamp,
) -> Result<Option<Who>, ApiError> {
    if operation.permission == Permission::Open {
        // Login and logout change the browser's cookie, so their origin is checked too.
        if operation.verb == Verb::Post {
            security::same_origin(ctx, head)?;
        }
        return Ok(None);
    }
    let who = credential::identify(ctx, &head.headers, client, now).await?;
    if who.via == Via::Cookie && operation.verb == Verb::Post {
        security::same_origin(ctx, head)?;
    }
    let allowed = match operation.permission {
        Permission::Admin => who.is_admin(),
        Permission::Own | Permission::User => !who.is_read_only(),
        Permission::Any | Permission::Open => true,
    };
    match allowed {
        true => Ok(Some(who)),
        false if who.is_read_only() => Err(ApiError::denied(Reason::ReadsOwnUsage)),
        false => Err(ApiError::denied(Reason::NeedsAdministrator)),
    }
}
