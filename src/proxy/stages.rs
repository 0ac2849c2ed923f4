//! A request's way to its plan, as an ordered list.

use std::sync::Arc;

use pingora::protocols::http::ServerSession as Session;

use super::exchange::Exchange;
use super::refusal::Refusal;
use super::{admit, count, front, identify, intake, models, plan, screen};
use crate::formats::route::Operation;

/// How far the stages came.
pub enum Done {
    /// The client has its answer: no provider needs to be asked.
    Answered,
    /// The providers are in order.
    Planned,
}

/// Runs the stages. Identity comes before the body: nobody unknown makes the gateway read 32 MiB.
///
/// # Errors
/// The first stage's refusal.
pub async fn run(session: &mut Session, x: &mut Exchange) -> Result<Done, Refusal> {
    let live = x.gateway.live.load_full();
    let gateway = Arc::clone(&x.gateway);
    if let Some(door) = gateway.admin.get().filter(|_| front::is_admin(session.req_header())) {
        return front::serve(session, x, door.as_ref(), &live).await;
    }
    intake::head(session, x)?;
    identify::identify(session, x)?;
    match x.operation().cloned() {
        Some(Operation::ListModels) => return models::list(session, x, &live).await,
        Some(Operation::GetModel(id)) => return models::get(session, x, &id, &live).await,
        _ => {}
    }
    intake::body(session, x, &live).await?;
    screen::screen(x, &live).await?;
    if x.operation() == Some(&Operation::Generate) {
        admit::admit(x).await?;
    }
    match plan::plan(x).await {
        Ok(()) => Ok(Done::Planned),
        // A provider of another format could answer, but not count.
        Err(Refusal::Unavailable { .. }) if x.operation() == Some(&Operation::CountTokens) => {
            count::estimate(session, x, &live).await
        }
        Err(refusal) => Err(refusal),
    }
}
