//! How a queued request begins: its conversation, its body, its task.

use uuid::Uuid;

use serde::Deserialize;

use super::connection::Connection;
use super::lane::{Conversation, Queued, Running, Wanted};
use super::reply::{self, Events};
use super::socket::Gone;
use crate::formats::websocket::{
    self, Create, FrameError, Items, ResponseHead, Steer, prewarmed, replaces,
};
use crate::proxy::body_budget::BodyReservation;

/// Replies in flight.
const MOST_RUNNING: usize = 16;

/// A request whose conversation is known.
struct Known {
    create: Create,
    input: Items,
    /// `input` is the complete conversation.
    is_complete: bool,
    carried: Vec<Steer>,
}

impl Connection<'_, '_> {
    /// Begins the requests whose lanes are free.
    pub(super) async fn start(&mut self) -> Result<(), Gone> {
        while self.takes_requests()
            && self.lanes.iter().filter(|lane| lane.running.is_some()).count() < MOST_RUNNING
        {
            let next = self.lanes.iter_mut().enumerate().find_map(|(place, lane)| {
                let is_free = lane.running.is_none();
                is_free.then(|| lane.queue.pop_front()).flatten().map(|queued| (place, queued))
            });
            let Some((lane, queued)) = next else { break };
            self.begin(lane, queued).await?;
        }
        Ok(())
    }

    async fn begin(&mut self, lane: usize, queued: Queued) -> Result<(), Gone> {
        let known = match queued.what {
            Wanted::Create(create) => self.resolve(create),
            Wanted::Append(input) => self.append(lane, &input),
            Wanted::Successor(create, input, carried) => {
                Ok(Known { create, input, is_complete: true, carried })
            }
        };
        match known {
            Ok(known) if known.create.generates => self.ask(lane, known, queued.held).await,
            Ok(known) => self.prewarm(lane, known).await,
            Err(fault) => {
                let lane = self.lanes[lane].name.clone();
                self.socket.send(websocket::error(400, &FrameError { lane, ..fault })).await
            }
        }
    }

    /// Completes a request with the conversation that it continues.
    fn resolve(&mut self, mut create: Create) -> Result<Known, FrameError> {
        let mut input = std::mem::take(&mut create.input);
        let Some(previous) = &create.previous else {
            return Ok(Known { create, input, is_complete: true, carried: Vec::new() });
        };
        let last = self.lanes.iter_mut().filter_map(|lane| lane.last.as_mut());
        let mut last = last.filter(|last| last.id == *previous);
        if let Some(Conversation { items, pending, .. }) = last.next() {
            let carried = std::mem::take(pending);
            if !replaces(&input, false) {
                let mut whole = items.clone();
                carried.iter().for_each(|steer| whole.extend(&steer.items()));
                whole.extend(&input);
                input = whole;
            }
            create.previous = None;
            return Ok(Known { create, input, is_complete: true, carried });
        }
        let key = self.caller.caller.key_id();
        let history = &self.ctx.gateway.stored_history;
        if key.is_some_and(|key| history.provider(key, previous).is_some()) {
            return Ok(Known { create, input, is_complete: false, carried: Vec::new() });
        }
        Err(FrameError {
            lane: None,
            code: Some("previous_response_not_found"),
            param: Some("previous_response_id"),
            message: format!("Previous response with id '{previous}' not found."),
        })
    }

    /// The last request of the lane with more input.
    fn append(&self, lane: usize, input: &Items) -> Result<Known, FrameError> {
        let Some(Conversation { create, items, .. }) = &self.lanes[lane].last else {
            return Err(FrameError {
                lane: None,
                code: None,
                param: Some("type"),
                message: "there is no response to append to: use response.create".to_owned(),
            });
        };
        let mut whole = if replaces(input, true) { Items::default() } else { items.clone() };
        whole.extend(input);
        let create = Create { generates: true, ..create.clone() };
        Ok(Known { create, input: whole, is_complete: true, carried: Vec::new() })
    }

    /// Sends the request to the proxy of this process.
    async fn ask(&mut self, lane: usize, known: Known, held: BodyReservation) -> Result<(), Gone> {
        let Some(connection) = self.origin.connect() else {
            let name = self.lanes[lane].name.clone();
            return self.refuse(503, name, None, "the gateway accepts no requests now").await;
        };
        let Known { create, input, is_complete, carried } = known;
        let request = self.origin.request(create.body(&input), &create.headers);
        while self.tasks.try_join_next().is_some() {}
        self.begun += 1;
        let number = self.begun;
        let events = Events { number, to: self.to.clone() };
        let task = self.tasks.spawn(reply::run(connection, request, events));
        self.lanes[lane].running = Some(Running {
            number,
            create,
            sent: is_complete.then_some(input),
            head: None,
            output: Vec::new(),
            required: Vec::new(),
            frames: 0,
            has_ended: false,
            carried,
            steers: Vec::new(),
            task,
            held,
        });
        Ok(())
    }

    /// Answers a request that only prepares the next one. It costs nothing.
    async fn prewarm(&mut self, lane: usize, known: Known) -> Result<(), Gone> {
        #[derive(Deserialize)]
        struct Settings {
            #[serde(default)]
            model: String,
        }
        let Known { create, input, .. } = known;
        let settings = serde_json::from_str::<Settings>(&format!("{{{}}}", create.settings));
        let head = ResponseHead {
            id: format!("resp_prewarm_{}", Uuid::new_v4().simple()),
            model: settings.map(|settings| settings.model).unwrap_or_default(),
            created_at: u64::try_from(self.ctx.now().0 / 1000).unwrap_or_default(),
        };
        for frame in prewarmed(&head) {
            self.send(lane, &frame).await?;
        }
        let (id, items, pending) = (head.id, input, Vec::new());
        self.remember(lane, Some(Conversation { id, create, items, pending }));
        Ok(())
    }
}
