//! The faults: what can break, in a seeded random order, and how each begins and ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::cluster::{Cluster, NODES};
use super::load::{now, pass};
use crate::support::link::Mode;

/// A fault and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL, and a start when it ends.
    KillNode(usize),
    /// SIGSTOP and SIGCONT.
    FreezeNode(usize),
    FreezePostgres,
    FreezeRedis,
    /// Connections of a node break, and no new one is possible.
    CutFromRedis(usize),
    CutFromPostgres(usize),
    /// Connections stay open, and nothing passes.
    HoldRedis(usize),
    HoldPostgres(usize),
    /// Every byte is late, by milliseconds.
    SlowRedis(usize, u64),
    SlowPostgres(usize, u64),
    /// SIGKILL, and a start with its data.
    KillRedis,
    /// SIGKILL, and a start without.
    EmptyRedis,
    KillPostgres,
    /// No file of the node grows.
    FullDisk(usize),
    /// The node's clock is wrong by seconds.
    StepClock(usize, i64),
    /// A provider fails every request.
    FailProvider(usize),
}

/// What a fault breaks: two faults of one step have different places.
#[derive(PartialEq, Eq)]
enum Place {
    Process(usize),
    Redis,
    Postgres,
    Provider,
}

impl Fault {
    /// Whether it touches Redis or the way to it.
    pub fn is_of_redis(self) -> bool {
        self.place() == Place::Redis
    }

    /// Whether it touches a node's process, disk or clock.
    pub fn is_of_node(self) -> bool {
        matches!(self.place(), Place::Process(_))
    }

    const fn place(self) -> Place {
        match self {
            Self::KillNode(node)
            | Self::FreezeNode(node)
            | Self::FullDisk(node)
            | Self::StepClock(node, _) => Place::Process(node),
            Self::FreezePostgres
            | Self::CutFromPostgres(_)
            | Self::HoldPostgres(_)
            | Self::SlowPostgres(..)
            | Self::KillPostgres => Place::Postgres,
            Self::FreezeRedis
            | Self::CutFromRedis(_)
            | Self::HoldRedis(_)
            | Self::SlowRedis(..)
            | Self::KillRedis
            | Self::EmptyRedis => Place::Redis,
            Self::FailProvider(_) => Place::Provider,
        }
    }
}

/// Faults that begin and end together, and the pause after them.
#[derive(Debug, Clone)]
pub struct Step {
    pub faults: Vec<Fault>,
    /// How long the load runs before the faults begin.
    pub lead: Duration,
    pub lasts: Duration,
    pub pause: Duration,
}

/// An endless list of steps: every kind once in a random order, then again. A third of the steps
/// has two faults.
pub struct Plan {
    random: fastrand::Rng,
    deck: Vec<Fault>,
    /// Only faults whose name begins so.
    only: String,
}

impl Plan {
    pub fn new(seed: u64, only: &str) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { random, deck: Vec::new(), only: only.to_owned() }
    }

    fn draw(&mut self) -> Fault {
        if self.deck.is_empty() {
            let random = &mut self.random;
            let mut deck = places(random);
            let (one, two, three) =
                (random.usize(..NODES), random.usize(..NODES), random.usize(..NODES));
            deck.push(Fault::SlowRedis(one, random.u64(20..500)));
            deck.push(Fault::SlowPostgres(two, random.u64(20..500)));
            // Further behind is not tolerated: docs/several-nodes.md, "A clock that differs".
            // Back by less than 5 s shortens sessions by as much, until the next heartbeat: theirs
            // last 2 s here.
            let seconds = match random.i64(-20..900) {
                back @ ..0 => back - 5,
                ahead => ahead,
            };
            deck.push(Fault::StepClock(three, seconds));
            deck.push(Fault::FailProvider(random.usize(..2)));
            random.shuffle(&mut deck);
            deck.retain(|fault| format!("{fault:?}").starts_with(&self.only));
            // First one of Redis, so that the shortest run has one.
            if let Some(at) = deck.iter().rposition(|fault| fault.is_of_redis()) {
                let first = deck.remove(at);
                deck.push(first);
            }
            self.deck = deck;
        }
        self.deck.pop().unwrap()
    }

    /// The next step, with times in milliseconds within these bounds.
    pub fn step(&mut self, lasts: [u64; 2], pause: [u64; 2]) -> Step {
        let mut faults = vec![self.draw()];
        if self.random.u8(..3) == 0 {
            let second = self.draw();
            // On a full disk a node cannot write its log, which the bounds are read from.
            let is_full = [faults[0], second].iter().any(|f| matches!(f, Fault::FullDisk(_)));
            if second.place() == faults[0].place() || is_full {
                self.deck.push(second);
            } else {
                faults.push(second);
            }
        }
        let random = &mut self.random;
        let mut ms = |[least, most]: [u64; 2]| Duration::from_millis(random.u64(least..=most));
        Step { faults, lead: ms([0, 400]), lasts: ms(lasts), pause: ms(pause) }
    }
}

/// The faults that have only a place.
fn places(random: &mut fastrand::Rng) -> Vec<Fault> {
    let mut node = || random.usize(..NODES);
    vec![
        Fault::KillNode(node()),
        Fault::KillNode(node()),
        Fault::FreezeNode(node()),
        Fault::FreezePostgres,
        Fault::FreezeRedis,
        Fault::CutFromRedis(node()),
        Fault::CutFromPostgres(node()),
        Fault::HoldRedis(node()),
        Fault::HoldPostgres(node()),
        Fault::FullDisk(node()),
        Fault::KillRedis,
        Fault::EmptyRedis,
        Fault::KillPostgres,
    ]
}

/// Why requests of a node may fail, and when.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    pub step: usize,
    pub node: usize,
    pub fault: Fault,
    pub from: Duration,
    pub to: Duration,
}

impl Outage {
    /// Whether it overlaps with this time.
    pub fn meets(&self, from: Duration, to: Duration) -> bool {
        self.from <= to && from <= self.to
    }
}

impl Cluster {
    /// Breaks something.
    pub async fn begin(&mut self, fault: Fault) {
        match fault {
            Fault::KillNode(node) => self.nodes[node].gateway.kill(),
            Fault::FreezeNode(node) => self.nodes[node].gateway.signal("STOP"),
            Fault::FreezePostgres => self.postgres.freeze(),
            Fault::FreezeRedis => self.redis.hang(),
            Fault::CutFromRedis(node) => self.nodes[node].redis.set(Mode::Cut),
            Fault::CutFromPostgres(node) => self.nodes[node].postgres.set(Mode::Cut),
            Fault::HoldRedis(node) => self.nodes[node].redis.set(Mode::Hold),
            Fault::HoldPostgres(node) => self.nodes[node].postgres.set(Mode::Hold),
            Fault::SlowRedis(node, ms) => {
                self.nodes[node].redis.set(Mode::Delay(Duration::from_millis(ms)));
            }
            Fault::SlowPostgres(node, ms) => {
                self.nodes[node].postgres.set(Mode::Delay(Duration::from_millis(ms)));
            }
            Fault::KillRedis | Fault::EmptyRedis => self.redis.kill(),
            Fault::KillPostgres => tokio::task::block_in_place(|| self.postgres.kill()),
            Fault::FullDisk(node) => self.nodes[node].gateway.fill_disk(4_096),
            Fault::StepClock(node, seconds) => self.nodes[node].clock.set(seconds),
            Fault::FailProvider(provider) => self.fails(provider, true),
        }
    }

    /// Mends it. A killed node is only started: see [`Cluster::whole`].
    pub async fn end(&mut self, fault: Fault) {
        match fault {
            Fault::KillNode(node) => {
                self.nodes[node].gateway.spawn();
                self.nodes[node].gateway.ready().await;
            }
            Fault::FreezeNode(node) => self.nodes[node].gateway.signal("CONT"),
            Fault::FreezePostgres => self.postgres.thaw(),
            Fault::FreezeRedis => self.redis.go_on(),
            Fault::CutFromRedis(node) | Fault::HoldRedis(node) | Fault::SlowRedis(node, _) => {
                self.nodes[node].redis.set(Mode::Pass);
            }
            Fault::CutFromPostgres(node)
            | Fault::HoldPostgres(node)
            | Fault::SlowPostgres(node, _) => self.nodes[node].postgres.set(Mode::Pass),
            Fault::KillRedis => tokio::task::block_in_place(|| self.redis.start_again()),
            Fault::EmptyRedis => {
                self.redis.forget();
                tokio::task::block_in_place(|| self.redis.start_again());
            }
            Fault::KillPostgres => tokio::task::block_in_place(|| self.postgres.start_again()),
            Fault::FullDisk(node) => {
                self.nodes[node].gateway.unlimit_files();
                self.nodes[node].gateway.readiness_shows(|_, parts| parts["journal"] == "ok").await;
            }
            Fault::StepClock(node, _) => self.nodes[node].clock.set(0),
            Fault::FailProvider(provider) => self.fails(provider, false),
        }
    }

    fn fails(&self, provider: usize, fails: bool) {
        self.providers[provider].1.fails.store(fails, Ordering::SeqCst);
    }

    /// All faults of the step of this number: begun, and ended after their time. Nodes last,
    /// because a node starts only with its database.
    pub async fn suffer(&mut self, number: usize, step: &Step) -> Vec<Outage> {
        let mut begun = Vec::new();
        for fault in &step.faults {
            begun.push((*fault, now()));
            self.begin(*fault).await;
        }
        pass(step.lasts).await;
        begun.sort_by_key(|(fault, _)| matches!(fault.place(), Place::Process(_)));
        let mut outages = Vec::new();
        for (fault, from) in begun {
            self.end(fault).await;
            if let Place::Process(node) = fault.place() {
                outages.push(Outage { step: number, node, fault, from, to: now() });
            }
        }
        outages
    }
}
