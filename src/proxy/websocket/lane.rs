//! Lanes: replies of one lane are made one after the other, those of different lanes at the same
//! time. The unnamed lane is the first.

use std::collections::VecDeque;

use serde_json::Value;
use tokio::task::AbortHandle;

use crate::formats::websocket::{Create, Items, ResponseHead, Steer, is_needless, required_input};
use crate::proxy::body_budget::BodyReservation;

/// Lanes with a name.
pub(super) const MOST_LANES: usize = 32;

/// A lane.
#[derive(Default)]
pub(super) struct Lane {
    pub name: Option<String>,
    pub queue: VecDeque<Queued>,
    pub running: Option<Running>,
    /// The last reply: the conversation that can be continued.
    pub last: Option<Conversation>,
}

/// A request that waits for its lane.
pub(super) struct Queued {
    pub what: Wanted,
    /// Of its frame.
    pub held: BodyReservation,
}

/// What a queued request asks for.
pub(super) enum Wanted {
    Create(Create),
    Append(Items),
    /// The successor of a reply that was steered: the conversation that it continues, and the
    /// input that steered it.
    Successor(Create, Items, Vec<Steer>),
}

/// A conversation up to the end of a reply.
pub(super) struct Conversation {
    /// The reply's id.
    pub id: String,
    /// Its request, without the input.
    pub create: Create,
    /// All input and output.
    pub items: Items,
    /// Input that waits for the client's next request.
    pub pending: Vec<Steer>,
}

impl Conversation {
    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        self.items.bytes() + self.create.settings.len()
    }
}

/// A reply in flight.
pub(super) struct Running {
    /// Distinguishes its events from those of requests that were cancelled.
    pub number: u64,
    /// Its request, without the input.
    pub create: Create,
    /// All of its input; `None` if the provider has the beginning.
    pub sent: Option<Items>,
    pub head: Option<ResponseHead>,
    /// Its output items that are complete.
    pub output: Vec<String>,
    /// What the client must answer.
    pub required: Vec<Value>,
    /// Frames that were sent of it.
    pub frames: u64,
    /// The frame that ends it was sent.
    pub has_ended: bool,
    /// Input of its predecessor that it carries, until it has begun.
    pub carried: Vec<Steer>,
    /// Input for its successor.
    pub steers: Vec<Steer>,
    pub task: AbortHandle,
    /// Of its frame.
    pub held: BodyReservation,
}

impl Running {
    /// Adds an output item. With more than `most` bytes nothing can continue the reply.
    pub(super) fn add(&mut self, item: &str, most: usize) {
        self.required.extend(required_input(item));
        self.output.push(item.to_owned());
        let bytes: usize = self.output.iter().map(String::len).sum();
        if self.sent.as_ref().is_some_and(|sent| sent.bytes() + bytes > most) {
            self.sent = None;
        }
        if self.sent.is_none() {
            self.output.clear();
        }
    }

    /// The conversation up to this reply, once it has ended; `None`: nothing can continue it here.
    /// Its bytes count as the conversation's from now on.
    pub(super) fn conversation(&mut self) -> Option<Conversation> {
        let _ = self.held.hold(0, 0);
        let (head, mut items) = (self.head.as_ref()?, self.sent.clone()?);
        let is_kept = |item: &&String| !is_needless(item, self.create.is_stored);
        let kept: Vec<&str> = self.output.iter().filter(is_kept).map(String::as_str).collect();
        items.push(&kept.join(","));
        let (id, create) = (head.id.clone(), self.create.clone());
        Some(Conversation { id, create, items, pending: Vec::new() })
    }
}
