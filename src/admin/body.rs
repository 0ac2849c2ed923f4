//! Reads a request's body within a size, a time and the budget, then parses it and checks it.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Map, Value};

use super::auth::Who;
use super::body_budget::AdminBodyReservation;
use super::envelope::{ApiError, Code};
use super::operation::{Operation, Permission, Ready};
use super::reasons::Reason;
use super::surface::Surface;
use crate::formats::MOST_ELEMENTS;
use crate::formats::scan::{Node, ScanProblem, Scanner};

/// Time-out of a complete body.
const BODY_TIME: Duration = Duration::from_secs(60);
/// What a value of a user's body takes in its tree, in bytes of the budget.
const VALUE_WEIGHT: usize = 128;
/// Time-out of a body that is open to all, such as a login's.
const OPEN_BODY_TIME: Duration = Duration::from_secs(10);

/// Reads a bounded body and checks it. `who` is `None` only if the operation is open to all.
///
/// # Errors
/// 413, 408, 503 or 400: the first error.
pub async fn read(
    surface: &Surface,
    operation: &Operation,
    who: Option<&Who>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Ready, ApiError> {
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| {
        usize::try_from(bytes).map_or(true, |bytes| bytes > operation.max_body)
    }) {
        return Err(too_large(operation.max_body));
    }
    let limit = if operation.permission == Permission::Open { OPEN_BODY_TIME } else { BODY_TIME };
    let mut reservation = who.map(|who| {
        AdminBodyReservation::new(&surface.bodies, who.user_id().filter(|_| !who.is_admin()))
    });
    let arriving =
        tokio::time::timeout(limit, collect(body, operation.max_body, reservation.as_mut())).await;
    let bytes = arriving.map_err(|_| {
        ApiError::because(Code::INVALID_FORMAT, Reason::BodyLate).at(StatusCode::REQUEST_TIMEOUT)
    })??;
    // The tree of a body takes many times its bytes.
    if let Some(reservation) = reservation.as_mut().filter(|reservation| reservation.is_users()) {
        let values = memchr::memchr3_iter(b',', b'{', b'[', &bytes).count();
        reservation.grow(values * VALUE_WEIGHT).map_err(|_| full())?;
    }
    let parsed = parse(operation, &bytes);
    drop(reservation);
    parsed
}

fn full() -> ApiError {
    ApiError::because(Code::OPERATION_FAILED, Reason::BodiesFull)
        .at(StatusCode::SERVICE_UNAVAILABLE)
        .header(header::RETRY_AFTER, HeaderValue::from_static("2"))
}

fn too_large(max: usize) -> ApiError {
    let refusal =
        ApiError::by_code(Code::PAYLOAD_TOO_LARGE, format!("the body is larger than {max} bytes"));
    refusal.with("max", max.into())
}

async fn collect(
    mut body: Body,
    max: usize,
    mut reservation: Option<&mut AdminBodyReservation>,
) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let unreadable = |_| ApiError::because(Code::INVALID_FORMAT, Reason::BodyUnreadable);
        let Ok(data) = frame.map_err(unreadable)?.into_data() else { continue };
        if bytes.len() + data.len() > max {
            return Err(too_large(max));
        }
        if let Some(reservation) = &mut reservation {
            reservation.grow(data.len()).map_err(|_| full())?;
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn has_too_many_elements(text: &[u8]) -> bool {
    static ANY: Node<()> = Node::object(&[]);
    let mut scanner = Scanner::new(&ANY, 1024).with_most_elements(MOST_ELEMENTS);
    let scanned = scanner.feed(text, &mut |_| {});
    scanned.is_err_and(|error| error.problem == ScanProblem::TooManyElements)
}

/// Any bytes as an operation's body: the action, ready to run with it, or the first error. An empty
/// body is an empty object.
///
/// # Errors
/// 400 with the code of the error.
pub fn parse(operation: &Operation, bytes: &[u8]) -> Result<Ready, ApiError> {
    let sent = match bytes.trim_ascii() {
        [] => Map::new(),
        text if has_too_many_elements(text) => {
            let refusal = ApiError::because(Code::INVALID_FORMAT, Reason::BodyNoJson);
            return Err(refusal.with("detail", ScanProblem::TooManyElements.to_string().into()));
        }
        text => match serde_json::from_slice::<Value>(text) {
            Ok(Value::Object(sent)) => sent,
            Ok(_) => return Err(ApiError::because(Code::INVALID_FORMAT, Reason::BodyNoObject)),
            Err(error) => {
                let refusal = ApiError::because(Code::INVALID_FORMAT, Reason::BodyNoJson);
                return Err(refusal.with("detail", error.to_string().into()));
            }
        },
    };
    (operation.prepare)(&sent)
}
