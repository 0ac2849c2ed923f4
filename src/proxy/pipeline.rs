//! The stages of a request for a provider, in their order.
//!
//! Each stage takes the value of the stage before it and returns its own, so no stage can run
//! before the one that it depends on. The context carries what every stage may need; facts of only
//! some stages are in these values.
//!
//! ```text
//! local::answer → Route → identify → Identified → intake::body → Inbound → screen → Screened
//!   → select → Selected → admit → Admitted → plan → Plan → Forwarding
//! ```
//!
//! A call about a stored reply has its one provider already: after identify, `stored` makes its
//! plan. So has the next piece of an upload (`upload`).

use std::sync::Arc;

use pingora::Result;
use pingora::proxy::Session;

use crate::formats::route::{Operation, Route};
use crate::proxy::context::RequestContext;
use crate::proxy::reply::answer::Answer;
use crate::proxy::request::identify::Identified;
use crate::proxy::request::plan::Plan;
use crate::proxy::request::{
    admit, alias, explain, identify, intake, plan, screen, select, stored, upload,
};
use crate::proxy::stages;
use crate::proxy::upstream::forwarding::Forwarding;

/// Runs the stages. The caller is identified before the body is read: an unknown caller cannot make
/// the gateway read 32 MiB.
///
/// # Errors
/// The first stage's refusal, or an error if the client has closed the connection.
pub(in crate::proxy) async fn prepare(
    session: &mut Session,
    ctx: &mut RequestContext,
    route: Route,
) -> Result<Box<Forwarding>> {
    let (identified, plan) = planned(session, ctx, &route).await?;
    Ok(Forwarding::begin(ctx, identified, route, plan))
}

/// Runs the stages for who asks which providers a request would go to. It takes no place among the
/// limits and leaves no record.
///
/// # Errors
/// When the client has closed the connection.
pub(in crate::proxy) async fn explain(
    session: &mut Session,
    ctx: &mut RequestContext,
    route: Route,
) -> Result<Answer> {
    let planned = planned(session, ctx, &route).await;
    explain::answer(ctx, planned.map(|_| ()))
}

async fn planned(
    session: &mut Session,
    ctx: &mut RequestContext,
    route: &Route,
) -> Result<(Identified, Plan)> {
    let mut identified = identify::identify(session, ctx, route)?;
    ctx.stage("identified");
    if let Operation::Stored(call) = &route.operation {
        // Boxed: the others need no memory for this.
        let plan = Box::pin(stored::plan(session, ctx, &identified, call)).await?;
        return Ok((identified, plan));
    }
    if let Operation::Upload(call) = &route.operation {
        let plan = Box::pin(upload::plan(session, ctx, &mut identified, call)).await?;
        return Ok((identified, plan));
    }
    let inbound = stages::intake(intake::body(session, ctx, &mut identified, route)).await?;
    ctx.stage("body_read");
    let screened = stages::screen(screen::screen(ctx, &identified, inbound)).await?;
    ctx.stage("screened");
    let kept = screened.0.has_cheaper().then(|| Arc::clone(&screened.0));
    let selected = select::select(ctx, &identified, screened, &route.operation);
    let admitting = admit::admit(ctx, &identified, selected, &route.operation);
    let admitted = match stages::admit(admitting).await {
        Ok(admitted) => admitted,
        Err(refusal) => {
            let Some(cheaper) = alias::cheaper(ctx, kept, &refusal) else {
                return Err(refusal.into());
            };
            let selected = select::select(ctx, &identified, cheaper, &route.operation);
            // Boxed: the others need no memory for this.
            Box::pin(admit::admit(ctx, &identified, selected, &route.operation)).await?
        }
    };
    ctx.stage("admitted");
    let plan = stages::plan(plan::plan(ctx, &identified, admitted, &route.operation)).await?;
    Ok((identified, plan))
}
