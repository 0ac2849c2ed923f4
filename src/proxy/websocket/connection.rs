//! One connection: its loop, and what each message and each event of a reply causes.
//!
//! One task reads, sends and keeps the state; each request in flight has another, which sends its
//! events through one bounded channel. So a client that reads slowly slows its providers.

use std::sync::Arc;
use std::time::{self, Duration};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::lane::{Conversation, Lane, MOST_LANES, Queued, Running, Wanted};
use super::origin::Origin;
use super::reply::Event;
use super::socket::{Gone, Received, Socket};
use crate::formats::websocket::{
    self, Frame, FrameError, Kind, SteerError, head, item, on_lane, refused,
};
use crate::proxy::body_budget::BodyReservation;
use crate::proxy::caller::Principal;
use crate::proxy::context::{InFlight, RequestContext};
use crate::proxy::request::identify::Identified;

/// Events that wait for the client.
const EVENTS: usize = 4;
/// Requests that wait for their lanes. With more, nothing is read.
const MOST_WAITING: usize = 32;
/// Pings without an answer.
const PINGS: u32 = 4;
/// How often the caller is checked if there are no pings.
const CHECK: Duration = Duration::from_secs(30);

/// Why no further request is taken.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Stopping,
    Lifetime,
    Caller,
}

/// What happens next.
enum Next {
    Received(Received),
    Event(u64, Event),
    Tick,
    Stopping,
    Lifetime,
}

/// A connection after its handshake.
pub(super) struct Connection<'s, 'c> {
    pub ctx: &'s mut RequestContext,
    pub origin: Origin,
    pub caller: Identified,
    pub socket: Socket<'c>,
    pub lanes: Vec<Lane>,
    pub tasks: JoinSet<()>,
    pub to: mpsc::Sender<(u64, Event)>,
    /// Requests that have begun.
    pub begun: u64,
    events: mpsc::Receiver<(u64, Event)>,
    /// Of the conversations.
    held: BodyReservation,
    ending: Option<Ending>,
    /// When the last ping was sent.
    pinged: Option<time::Instant>,
    /// Pings in a row after which nothing came.
    unanswered: u32,
}

impl<'s, 'c> Connection<'s, 'c> {
    pub(super) fn new(
        ctx: &'s mut RequestContext,
        origin: Origin,
        caller: Identified,
        socket: Socket<'c>,
    ) -> Self {
        let (to, events) = mpsc::channel(EVENTS);
        let held = BodyReservation::new(&ctx.gateway.bodies, caller.caller.user_id());
        Self {
            ctx,
            origin,
            caller,
            socket,
            lanes: vec![Lane::default()],
            tasks: JoinSet::new(),
            to,
            begun: 0,
            events,
            held,
            ending: None,
            pinged: None,
            unanswered: 0,
        }
    }

    /// Serves the connection to its end. Returns the caller, and how it ended.
    pub(super) async fn run(mut self) -> (Principal, String) {
        let end = match self.serve().await {
            Ok((code, why)) => {
                Box::pin(self.socket.close(code, why)).await;
                format!("closed with {}: {why}", u16::from(code))
            }
            Err(Gone) => "the client closed the connection".to_owned(),
        };
        (self.caller.caller, format!("{end}; {} requests", self.begun))
    }

    async fn serve(&mut self) -> Result<(CloseCode, &'static str), Gone> {
        let live = Arc::clone(&self.ctx.live);
        let mut stopping = self.ctx.gateway.in_process.upgrade().ok_or(Gone)?.until_stopping();
        let mut stop = None;
        let lifetime = sleep(Duration::from_millis(live.websockets.lifetime_ms));
        let mut lifetime = std::pin::pin!(lifetime);
        let pings = (live.keepalive_ms > 0).then(|| Duration::from_millis(live.keepalive_ms));
        let every = pings.unwrap_or(CHECK);
        let mut tick = interval_at(Instant::now() + every, every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if let Some(ending) = self.ending.filter(|_| !self.is_busy()) {
                return Box::pin(self.end(ending)).await;
            }
            let reads = self.waiting() < MOST_WAITING;
            let next = tokio::select! {
                received = self.socket.next(), if reads => Next::Received(received),
                Some((number, event)) = self.events.recv() => Next::Event(number, event),
                _ = tick.tick() => Next::Tick,
                () = &mut stopping, if stop.is_none() => Next::Stopping,
                () = &mut lifetime, if self.ending.is_none() => Next::Lifetime,
            };
            match next {
                // Boxed: idle connections need no memory for what requests need.
                Next::Received(Received::Text(text)) => Box::pin(self.frame(&text)).await?,
                Next::Received(Received::Control) => {}
                Next::Received(Received::Closed) => return Err(Gone),
                Next::Received(Received::Broken(code, why)) => return Ok((code, why)),
                Next::Event(number, event) => self.event(number, event).await?,
                Next::Tick => {
                    if let Some(end) = self.tick(reads).await? {
                        return Ok(end);
                    }
                }
                Next::Stopping => {
                    // Until the last frame is sent, the process waits.
                    stop = Some(InFlight::enter(&self.ctx.gateway.node.metrics.requests_live));
                    self.ending = Some(Ending::Stopping);
                }
                Next::Lifetime => self.ending = Some(Ending::Lifetime),
            }
        }
    }

    /// Every few seconds: checks the caller, and whether the client is there. Returns how to close
    /// the connection. `reads`: what the client sends is read.
    async fn tick(&mut self, reads: bool) -> Result<Option<(CloseCode, &'static str)>, Gone> {
        let live = Arc::clone(&self.ctx.live);
        let read = Duration::from_millis(live.request_read_timeout_ms);
        let sending = self.socket.client().sending().unwrap_or_default();
        if reads && !read.is_zero() && sending > read {
            return Ok(Some((CloseCode::Policy, "a message took too long")));
        }
        self.check();
        if live.keepalive_ms == 0 {
            return Ok(None);
        }
        let heard = self.socket.client().heard;
        let is_silent = reads && self.pinged.is_some_and(|pinged| heard < pinged);
        self.unanswered = if is_silent { self.unanswered + 1 } else { 0 };
        if self.unanswered == PINGS {
            return Err(Gone);
        }
        self.pinged = Some(time::Instant::now());
        self.socket.ping().await?;
        Ok(None)
    }

    async fn end(&mut self, ending: Ending) -> Result<(CloseCode, &'static str), Gone> {
        Ok(match ending {
            Ending::Stopping => (CloseCode::Away, "the gateway is stopping"),
            Ending::Caller => (CloseCode::Policy, "the key may not be used any more"),
            Ending::Lifetime => {
                let minutes = self.ctx.live.websockets.lifetime_ms / 60_000;
                let fault = FrameError {
                    lane: None,
                    code: Some("websocket_connection_limit_reached"),
                    param: None,
                    message: format!(
                        "Responses websocket connection limit reached ({minutes} minutes). Create \
                         a new websocket connection to continue."
                    ),
                };
                self.socket.send(websocket::error(400, &fault)).await?;
                (CloseCode::Normal, "the connection is too old")
            }
        })
    }

    fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| lane.running.is_some())
    }

    fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.queue.len()).sum()
    }

    /// No further request is taken once the key may not be used.
    fn check(&mut self) {
        if self.caller.check(self.ctx).is_err() {
            self.ending = self.ending.or(Some(Ending::Caller));
        }
    }

    /// Whether requests are still taken.
    pub(super) const fn takes_requests(&self) -> bool {
        self.ending.is_none()
    }

    /// Sends a frame on a lane.
    pub(super) async fn send(&mut self, lane: usize, frame: &str) -> Result<(), Gone> {
        let frame = on_lane(self.lanes[lane].name.as_deref(), frame);
        self.socket.send(frame).await
    }

    /// A frame of the client.
    async fn frame(&mut self, text: &str) -> Result<(), Gone> {
        let (lane, what) = match websocket::read(text) {
            Ok(Frame::Create(create)) => (create.lane.clone(), Wanted::Create(create)),
            Ok(Frame::Append { lane, input }) => (lane, Wanted::Append(input)),
            Ok(Frame::Processed) => return Ok(()),
            Ok(Frame::Steer { response, input, fault }) => {
                return self.steer(response, input, fault).await;
            }
            Err(fault) => return self.socket.send(websocket::error(400, &fault)).await,
        };
        let user = self.caller.caller.user_id();
        let mut held = BodyReservation::new(&self.ctx.gateway.bodies, user);
        let queued = match held.hold(text.len(), self.ctx.live.max_inflight_body_bytes) {
            Ok(()) => Queued { what, held },
            Err(_) => {
                let message = "the gateway holds as many bytes of requests as it may now";
                return self.refuse(503, lane, None, message).await;
            }
        };
        let Some(place) = self.place(lane.as_deref()) else {
            let message = format!("a connection has at most {MOST_LANES} streams");
            let code = Some("websocket_stream_limit_reached");
            return self.refuse(400, None, code, &message).await;
        };
        self.lanes[place].queue.push_back(queued);
        self.start().await
    }

    /// Sends an error of the gateway's own.
    pub(super) async fn refuse(
        &mut self,
        status: u16,
        lane: Option<String>,
        code: Option<&'static str>,
        message: &str,
    ) -> Result<(), Gone> {
        let fault = FrameError { lane, code, param: None, message: message.to_owned() };
        self.socket.send(websocket::error(status, &fault)).await
    }

    /// The lane of this name.
    fn place(&mut self, name: Option<&str>) -> Option<usize> {
        let known = self.lanes.iter().position(|lane| lane.name.as_deref() == name);
        if known.is_none() && self.lanes.len() <= MOST_LANES {
            self.lanes.push(Lane { name: name.map(str::to_owned), ..Lane::default() });
            return Some(self.lanes.len() - 1);
        }
        known
    }

    /// An event of the request with this number. Those of a cancelled one are passed over.
    async fn event(&mut self, number: u64, event: Event) -> Result<(), Gone> {
        let is_it = |lane: &Lane| lane.running.as_ref().is_some_and(|it| it.number == number);
        let Some(lane) = self.lanes.iter().position(is_it) else { return Ok(()) };
        match event {
            Event::Data { kind, data } => self.data(lane, kind, &data).await,
            Event::Answer(answer) => {
                let frame = refused(answer.status, &answer.headers, &answer.body);
                self.send(lane, &frame).await?;
                self.has_ended(lane);
                Ok(())
            }
            Event::End(why) => Box::pin(self.over(lane, why)).await,
        }
    }

    fn has_ended(&mut self, lane: usize) {
        if let Some(running) = &mut self.lanes[lane].running {
            running.has_ended = true;
        }
    }

    async fn data(&mut self, lane: usize, kind: Kind, data: &str) -> Result<(), Gone> {
        let most = self.ctx.live.max_body_bytes;
        let Some(running) = &mut self.lanes[lane].running else { return Ok(()) };
        match kind {
            Kind::Created => {
                running.head = head(data.as_bytes());
                running.carried.clear();
            }
            Kind::ItemAdded if !running.steers.is_empty() && running.required.is_empty() => {
                return Box::pin(self.cut(lane)).await;
            }
            Kind::ItemDone => {
                if let Some(item) = item(data.as_bytes()) {
                    running.add(item.get(), most);
                }
            }
            _ => {}
        }
        running.frames += 1;
        let ended = kind.is_end() && !std::mem::replace(&mut running.has_ended, true);
        running.has_ended |= kind == Kind::Error;
        self.send(lane, data).await?;
        if ended && kind != Kind::Failed {
            self.keep(lane);
            return Box::pin(self.after(lane)).await;
        }
        Ok(())
    }

    /// A request is over: the next one of its lane begins.
    async fn over(&mut self, lane: usize, why: Option<String>) -> Result<(), Gone> {
        let Some(running) = self.lanes[lane].running.take() else { return Ok(()) };
        if !running.has_ended {
            let message = why.unwrap_or_else(|| "the reply broke off".to_owned());
            let name = self.lanes[lane].name.clone();
            self.refuse(502, name, None, &message).await?;
        }
        let lost = running.carried.into_iter().chain(running.steers);
        for steer in lost.collect::<Vec<_>>() {
            self.steer_fails(lane, &steer, SteerError::NoSuccessor).await?;
        }
        self.check();
        self.start().await
    }

    /// Keeps the conversation of a reply that has ended, if there is room.
    pub(super) fn keep(&mut self, lane: usize) {
        let running = self.lanes[lane].running.as_mut();
        let conversation = running.and_then(Running::conversation);
        self.remember(lane, conversation);
    }

    /// Keeps a conversation, if there is room. With all bodies, conversations may take a quarter of
    /// the budget: they must not keep requests out, of which each user may have half.
    pub(super) fn remember(&mut self, lane: usize, conversation: Option<Conversation>) {
        self.lanes[lane].last = conversation;
        let most = self.ctx.live.max_inflight_body_bytes / 4;
        let held: usize =
            self.lanes.iter().filter_map(|it| it.last.as_ref()).map(Conversation::bytes).sum();
        if self.held.hold(held, most).is_err() {
            let last = self.lanes[lane].last.take();
            let rest = held - last.map_or(0, |last| last.bytes());
            let _ = self.held.hold(rest, usize::MAX);
        }
    }
}
