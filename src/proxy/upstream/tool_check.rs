//! The check of a reply's tool calls by a model that the operator chose, for providers that do not
//! check them: one request on the caller's key, with a record of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use pingora::proxy::Session;
use tokio::time::timeout;

use super::incoming::Incoming;
use super::running::Running;
use crate::domain::ids::RequestId;
use crate::domain::record::DecisionStep;
use crate::formats::native::safeguards::checker;
use crate::formats::native::safeguards::verdict::CheckResult;
use crate::http_client::in_process::{self, AsKey, Purpose};
use crate::proxy::connections::gone::unless_gone;
use crate::proxy::context::{RequestContext, millis};

/// Bytes of an answer.
const MOST: usize = 1024 * 1024;

/// Checks the tool calls of the current reply. Returns what was held back of it, with the verdicts.
///
/// # Errors
/// When the client closes the connection.
pub(in crate::proxy) async fn check(
    session: &mut Session,
    running: Running<'_>,
) -> pingora::Result<Vec<u8>> {
    let Running { request, forwarding, attempt } = running;
    let Incoming::Reply(forwarded) = &mut attempt.incoming else { return Ok(Vec::new()) };
    let Some(check) = &mut forwarded.reply.check else { return Ok(Vec::new()) };
    let Some(model) = request.live.safeguards.model() else {
        return Ok(check.answer(&CheckResult::Unsupported));
    };
    let Some(question) = checker::question(check, model) else {
        return Ok(check.answer(&checker::unasked(check)));
    };
    let (id, began) = (RequestId::new(), Instant::now());
    let time = Duration::from_millis(request.live.safeguards.timeout_ms);
    let key = forwarding.identified.caller.key_id();
    let client = request.head.client_ip;
    let purpose = Purpose::ToolCheck;
    let as_key = key.map(|key| AsKey { key: Some(key), request: id, client, purpose });
    let asking = ask(request, as_key, forwarding.inbound.session.as_str(), question);
    let answer = unless_gone(session, false, timeout(time, asking)).await?;
    let result = match answer {
        Ok(Ok(answer)) => checker::verdicts(check, &answer).ok_or_else(|| "no verdict".to_owned()),
        Ok(Err(why)) => Err(why),
        Err(_) => Err(format!("nothing within {} ms", millis(time))),
    };
    let calls = check.calls().len();
    let took = millis(began.elapsed());
    let (result, told) = match result {
        Ok(result) => {
            let flagged = result.flagged();
            (
                result,
                format!(
                    "{calls} tool calls checked by {model} in {took} ms: {flagged} flagged (request {id})"
                ),
            )
        }
        Err(why) => (
            CheckResult::Unsupported,
            format!(
                "{calls} tool calls are not checked: {model} gave no answer in {took} ms: {why} (request {id})"
            ),
        ),
    };
    let rest = check.answer(&result);
    request.gateway.node.metrics.tool_check(match result {
        CheckResult::Unsupported => "none",
        _ if result.flagged() > 0 => "flagged",
        CheckResult::Judged(_) => "clear",
    });
    request.decide_itself(DecisionStep::Checked, told, None);
    Ok(rest)
}

/// Asks the checker; the body of its answer.
async fn ask(
    request: &RequestContext,
    as_key: Option<AsKey>,
    session: &str,
    question: Vec<u8>,
) -> Result<Bytes, String> {
    let gateway = Arc::clone(&request.gateway);
    let as_key = as_key.ok_or("the caller has no key")?;
    let proxy = gateway.in_process.upgrade();
    let connection = proxy.and_then(|proxy| proxy.connect(as_key));
    let connection = connection.ok_or("the gateway accepts no requests")?;
    let mut head = Request::post("/v1/messages")
        .header("host", "tollgate")
        .header("content-type", "application/json")
        .header("user-agent", concat!("tollgate/", env!("CARGO_PKG_VERSION"), " (tool check)"));
    if let Some(name) = gateway.fixed.session_headers.first() {
        // It belongs to the session of the request that it is for.
        head = head.header(name, session);
    }
    let question = head.body(Full::new(Bytes::from(question))).map_err(|e| e.to_string())?;
    let answer = in_process::ask(connection, question, MOST).await?;
    match answer.status.is_success() {
        true => Ok(answer.body),
        false => Err(format!("status {}", answer.status.as_u16())),
    }
}
