//! The stages of a request before it goes to a provider, in their order.
//!
//! Each stage takes the value of the stage before it and returns its own, so no stage can run
//! before the one that it depends on. The context carries what every stage may need; facts of only
//! some stages are in these values.
//!
//! ```text
//! head::read → Route → identify → Identified → intake::body → Inbound → screen → Screened
//!   → admit → Admitted → plan → Forwarding
//! ```

use std::sync::Arc;

use pingora::Result;
use pingora::proxy::Session;

use super::{admit, head, identify, intake, plan, screen};
use crate::formats::route::Operation;
use crate::otlp::Signal;
use crate::proxy::context::RequestContext;
use crate::proxy::embedded_admin;
use crate::proxy::local::{count, models, otlp_relay};
use crate::proxy::reply::answer::Answer;
use crate::proxy::upstream::forwarding::Forwarding;

/// The result of the stages.
pub(in crate::proxy) enum Prepared {
    /// The embedded administration has answered it.
    Answered,
    /// The gateway answers it.
    Answer(Answer),
    /// The request goes to a provider.
    Forward(Box<Forwarding>),
}

/// Runs the stages. The caller is identified before the body is read: an unknown caller cannot make
/// the gateway read 32 MiB.
///
/// # Errors
/// The first stage's refusal, or an error if the client has closed the connection.
pub(in crate::proxy) async fn prepare(
    session: &mut Session,
    ctx: &mut RequestContext,
) -> Result<Prepared> {
    head::framing(session)?;
    let gateway = Arc::clone(&ctx.gateway);
    if let Some(admin) =
        gateway.admin.get().filter(|_| embedded_admin::is_admin(session.req_header()))
    {
        embedded_admin::serve(session, ctx, admin.as_ref()).await?;
        return Ok(Prepared::Answered);
    }
    if let Some(relay) = &gateway.otlp.relay
        && let Some(signal) = Signal::of_path(session.req_header().uri.path())
    {
        return Ok(Prepared::Answer(
            Box::pin(otlp_relay::serve(session, ctx, relay, signal)).await?,
        ));
    }
    let route = head::read(session, ctx)?;
    let mut identified = identify::identify(session, ctx, &route)?;
    ctx.stage("identified");
    match &route.operation {
        Operation::ListModels => {
            return Ok(Prepared::Answer(models::list(session, ctx, &identified).await));
        }
        Operation::GetModel(id) => {
            return Ok(Prepared::Answer(models::get(session, ctx, &identified, id).await?));
        }
        Operation::Generate | Operation::CountTokens => {}
    }
    let inbound = intake::body(session, ctx, &mut identified, &route).await?;
    ctx.stage("body_read");
    let screened = screen::screen(ctx, &identified, inbound).await?;
    ctx.stage("screened");
    let admitted = admit::admit(ctx, &identified, screened, &route.operation).await?;
    ctx.stage("admitted");
    match plan::plan(ctx, &identified, &admitted, &route.operation).await {
        Ok(plan) => {
            Ok(Prepared::Forward(Forwarding::begin(ctx, identified, admitted, route, plan)))
        }
        // A provider of another format could reply, but not count tokens.
        Err(plan::Unplanned::Unavailable { .. } | plan::Unplanned::NoCredential)
            if route.operation == Operation::CountTokens =>
        {
            Ok(Prepared::Answer(count::estimate(ctx, admitted.inbound).await?))
        }
        Err(unplanned) => Err(unplanned.into_refusal().into()),
    }
}
