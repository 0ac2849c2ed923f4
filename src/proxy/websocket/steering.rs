//! `response.steer`: the user adds to a reply in flight.
//!
//! The input waits until the reply is complete, or until its next output item begins: then the
//! gateway cancels the reply there, and its successor begins, a request of its own. A reply that
//! waits for the client's tools is not cancelled: the input goes out with their results.

use serde_json::value::RawValue;
use uuid::Uuid;

use super::connection::Connection;
use super::lane::{Conversation, Lane, Queued, Wanted};
use super::socket::Gone;
use crate::formats::websocket::{
    Steer, SteerError, accepted, failed, incomplete, is_reasoning, pending,
};
use crate::proxy::body_budget::BodyReservation;

/// Inputs that wait for the successor of one reply, and their bytes.
const MOST_STEERS: usize = 16;
const MOST_BYTES: usize = 1 << 20;

impl Connection<'_, '_> {
    /// Takes input for a reply.
    pub(super) async fn steer(
        &mut self,
        response: String,
        input: Box<RawValue>,
        fault: Option<&'static str>,
    ) -> Result<(), Gone> {
        let steer = Steer { id: None, response, input };
        let is_it = |lane: &Lane| {
            let running = lane.running.as_ref().filter(|running| !running.has_ended);
            running.and_then(|it| it.head.as_ref()).is_some_and(|head| head.id == steer.response)
        };
        let found = self.lanes.iter_mut().position(|lane| is_it(lane));
        let was = |lane: &Lane| lane.last.as_ref().is_some_and(|last| last.id == steer.response);
        let known = found.or_else(|| self.lanes.iter().position(was));
        let running = found.and_then(|lane| self.lanes[lane].running.as_mut());
        let (lane, error) = match (fault, running) {
            (Some(why), _) => (known.unwrap_or(0), SteerError::Invalid(why)),
            (None, Some(running)) => {
                let bytes: usize = running.steers.iter().map(|it| it.input.get().len()).sum();
                if running.steers.len() < MOST_STEERS
                    && bytes + steer.input.get().len() <= MOST_BYTES
                {
                    let id = Some(format!("steer_{}", Uuid::new_v4().simple()));
                    let steer = Steer { id, ..steer };
                    let frame = accepted(&steer, running.frames);
                    running.frames += 1;
                    running.steers.push(steer);
                    return self.send(found.unwrap_or(0), &frame).await;
                }
                (found.unwrap_or(0), SteerError::TooMany)
            }
            (None, None) => match known {
                Some(lane) => (lane, SteerError::Completed),
                None => (0, SteerError::NotFound),
            },
        };
        self.steer_fails(lane, &steer, error).await
    }

    /// Gives input back.
    pub(super) async fn steer_fails(
        &mut self,
        lane: usize,
        steer: &Steer,
        error: SteerError,
    ) -> Result<(), Gone> {
        let frames = self.lanes[lane].running.as_ref().map_or(0, |running| running.frames);
        self.send(lane, &failed(steer, error, frames)).await
    }

    /// Ends a reply before its next item, and begins its successor.
    pub(super) async fn cut(&mut self, lane: usize) -> Result<(), Gone> {
        let Some(mut running) = self.lanes[lane].running.take() else { return Ok(()) };
        running.task.abort();
        if let Some(head) = &running.head {
            let output = format!("[{}]", running.output.join(","));
            self.send(lane, &incomplete(head, running.frames, &output)).await?;
        }
        // No provider takes reasoning without what it led to.
        while running.output.last().is_some_and(|item| is_reasoning(item)) {
            running.output.pop();
        }
        let steers = std::mem::take(&mut running.steers);
        self.remember(lane, running.conversation());
        self.succeed(lane, steers).await?;
        self.start().await
    }

    /// What becomes of the input for a reply that is complete.
    pub(super) async fn after(&mut self, lane: usize) -> Result<(), Gone> {
        let Some(running) = &mut self.lanes[lane].running else { return Ok(()) };
        let steers = std::mem::take(&mut running.steers);
        if running.required.is_empty() {
            return self.succeed(lane, steers).await;
        }
        let (required, from) = (std::mem::take(&mut running.required), running.frames);
        for (steer, sequence) in steers.iter().zip(from..) {
            self.send(lane, &pending(steer, &required, sequence)).await?;
        }
        if let Some(last) = &mut self.lanes[lane].last {
            last.pending = steers;
        }
        Ok(())
    }

    /// Puts the successor of the lane's last reply before all that waits.
    async fn succeed(&mut self, lane: usize, steers: Vec<Steer>) -> Result<(), Gone> {
        if steers.is_empty() {
            return Ok(());
        }
        let Some(Conversation { create, items, .. }) = &self.lanes[lane].last else {
            for steer in &steers {
                self.steer_fails(lane, steer, SteerError::NoSuccessor).await?;
            }
            return Ok(());
        };
        let (create, mut items) = (create.clone(), items.clone());
        steers.iter().for_each(|steer| items.extend(&steer.items()));
        let user = self.caller.caller.user_id();
        let held = BodyReservation::new(&self.ctx.gateway.bodies, user);
        let what = Wanted::Successor(create, items, steers);
        self.lanes[lane].queue.push_front(Queued { what, held });
        Ok(())
    }
}
