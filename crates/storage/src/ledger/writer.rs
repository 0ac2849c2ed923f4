//! The task that delivers the journal to the database.
//!
//! It reads a batch, writes it, notes the checkpoint, and deletes the segments before it (in
//! `delivery`). A batch that the database does not accept is dropped and read again later, with
//! what has arrived since: so an outage costs no memory.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout, timeout_at};

use super::Ledger;
use super::delivery::{DeliveryStep, JournalSource, blocking};
use super::sink::Sink;
use super::stats::add;

/// How often the writer searches for directories of dead processes.
const ADOPT_EVERY: Duration = Duration::from_secs(5);
/// Pauses after a failed sync, in addition to the interval.
const FIRST_SYNC_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_SYNC_PAUSE: Duration = Duration::from_secs(60);
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);

impl Ledger {
    /// Delivers until `shutdown`, then the remaining records, for at most `drain_ms`. Also syncs
    /// the journal to the disk.
    ///
    /// Needs a Tokio runtime with time; blocking work runs on its blocking threads.
    pub async fn run<S: Sink>(self: Arc<Self>, sink: S, shutdown: impl Future<Output = ()>) {
        let (stop, stopped) = watch::channel(false);
        let stopping = async {
            shutdown.await;
            stop.send_replace(true);
        };
        let (finish, finished) = watch::channel(false);
        let delivering = async {
            self.deliver(&sink, stopped).await;
            finish.send_replace(true);
        };
        let taking = self.take_from_others(finished.clone());
        tokio::join!(stopping, delivering, self.keep_synced(finished), taking);
        let ledger = Arc::clone(&self);
        let _ = blocking(move || {
            ledger.hand_on();
            Ok(())
        })
        .await;
    }

    /// Syncs at every interval, and once more after delivery has ended.
    async fn keep_synced(self: &Arc<Self>, mut finished: watch::Receiver<bool>) {
        let mut tick = interval(Duration::from_millis(self.settings.sync_interval_ms));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pause = FIRST_SYNC_PAUSE;
        while !*finished.borrow() {
            tokio::select! {
                _ = tick.tick() => {}
                _ = finished.wait_for(|finished| *finished) => {}
            }
            if self.sync().await {
                pause = FIRST_SYNC_PAUSE;
                continue;
            }
            // Each attempt writes the doubtful data once more: a pause keeps it from filling a disk
            // that stays broken.
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_SYNC_PAUSE),
                _ = finished.wait_for(|finished| *finished) => {}
            }
        }
    }

    /// Syncs, and returns whether the journal is on the disk.
    async fn sync(self: &Arc<Self>) -> bool {
        let failed_before = self.tally.sync_failing.load(Ordering::Relaxed);
        let ledger = Arc::clone(self);
        let outcome = blocking(move || {
            if ledger.journal.retry_held() {
                ledger.wake.notify_one();
            }
            ledger.journal.sync()
        });
        match outcome.await {
            Ok(()) if failed_before => {
                tracing::info!("the journal can be synced again: nothing was lost")
            }
            Ok(()) => {}
            Err(error) => {
                add(&self.tally.sync_errors, 1);
                if !failed_before {
                    tracing::error!(%error, "the journal cannot be synced: refusing new requests");
                }
                return false;
            }
        }
        true
    }

    async fn deliver<S: Sink>(self: &Arc<Self>, sink: &S, stopped: watch::Receiver<bool>) {
        let mut adopted: Vec<JournalSource> = Vec::new();
        self.deliver_until(sink, &mut adopted, stopped).await;
        adopted.into_iter().for_each(|source| self.let_go(source));
    }

    async fn deliver_until<S: Sink>(
        self: &Arc<Self>,
        sink: &S,
        adopted: &mut Vec<JournalSource>,
        mut stopped: watch::Receiver<bool>,
    ) {
        let mut own = JournalSource::own(self.claim.path());
        let mut adopt_at = Instant::now();
        let mut backoff = FIRST_BACKOFF;
        let mut deadline = None;
        loop {
            if deadline.is_none() && *stopped.borrow() {
                deadline = Some(self.drain_deadline());
            }
            if Instant::now() >= adopt_at {
                self.adopt(adopted).await;
                adopt_at = Instant::now() + ADOPT_EVERY;
            }
            let round = self.round(sink, &mut own, adopted);
            match self.unless_late(round, &mut stopped, &mut deadline).await {
                DeliveryStep::Moved => backoff = self.recovered(),
                DeliveryStep::Idle if deadline.is_some() => return,
                // While a batch was written, others arrived: more will follow, and one transaction
                // for many costs less.
                DeliveryStep::CaughtUp if deadline.is_some() => backoff = self.recovered(),
                DeliveryStep::Idle | DeliveryStep::CaughtUp => {
                    backoff = self.recovered();
                    self.rest(adopt_at, &mut stopped).await;
                }
                DeliveryStep::Failed(why) | DeliveryStep::Unreadable(why) => {
                    self.failing(&why);
                    if deadline.is_some_and(|deadline| Instant::now() + backoff >= deadline) {
                        let left = self.stats();
                        tracing::warn!(
                            left.pending_records,
                            "stopping with records in the journal: the next start delivers them"
                        );
                        return;
                    }
                    self.back_off(backoff, &mut stopped).await;
                    backoff = (backoff * 2).min(LONGEST_BACKOFF);
                }
            }
        }
    }

    /// Waits for `round` until the deadline, which is set if the stop comes meanwhile.
    async fn unless_late(
        &self,
        round: impl Future<Output = DeliveryStep>,
        stopped: &mut watch::Receiver<bool>,
        deadline: &mut Option<Instant>,
    ) -> DeliveryStep {
        let mut round = pin!(round);
        let until = match *deadline {
            Some(until) => until,
            None => tokio::select! {
                step = &mut round => return step,
                _ = stopped.wait_for(|stop| *stop) => *deadline.insert(self.drain_deadline()),
            },
        };
        timeout_at(until, round)
            .await
            .unwrap_or_else(|_| DeliveryStep::Failed("time is up".to_owned()))
    }

    fn drain_deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.settings.drain_ms)
    }

    /// One batch of every source.
    async fn round<S: Sink>(
        self: &Arc<Self>,
        sink: &S,
        own: &mut JournalSource,
        adopted: &mut Vec<JournalSource>,
    ) -> DeliveryStep {
        let mut outcome = match self.step(sink, own).await {
            DeliveryStep::Failed(why) | DeliveryStep::Unreadable(why) => {
                return DeliveryStep::Failed(why);
            }
            fine => fine,
        };
        let mut index = 0;
        while let Some(source) = adopted.get_mut(index) {
            match self.step(sink, source).await {
                DeliveryStep::Moved | DeliveryStep::CaughtUp => {
                    outcome = DeliveryStep::Moved;
                    index += 1;
                }
                DeliveryStep::Idle => self.finish(adopted.remove(index)),
                DeliveryStep::Failed(why) => return DeliveryStep::Failed(why),
                DeliveryStep::Unreadable(why) => {
                    // No reason to delay the own journal: drop this one, and retry when it is next
                    // adopted.
                    tracing::error!(why, "passing over a journal");
                    self.let_go(adopted.remove(index));
                }
            }
        }
        outcome
    }

    /// Waits for records, then, for a limited time, for a batch to fill.
    async fn rest(&self, adopt_at: Instant, stopped: &mut watch::Receiver<bool>) {
        let settings = &self.settings;
        let waiting = || {
            let delivered = self.tally.delivered_records.load(Ordering::SeqCst);
            self.tally.appended_records.load(Ordering::SeqCst).saturating_sub(delivered)
        };
        let filled = async {
            while waiting() == 0 {
                self.wake.notified().await;
            }
            let full = async {
                while waiting() < settings.batch_rows as u64
                    && !self.tally.flush_asked.swap(false, Ordering::SeqCst)
                {
                    self.wake.notified().await;
                }
            };
            // In either case the batch is written: full, or at its time.
            let _ = timeout(Duration::from_millis(settings.flush_interval_ms), full).await;
        };
        tokio::select! {
            () = filled => {}
            () = sleep_until(adopt_at) => {}
            _ = stopped.wait_for(|stop| *stop) => {}
        }
    }

    async fn back_off(&self, pause: Duration, stopped: &mut watch::Receiver<bool>) {
        // Up to a quarter more, so that nodes that lost the same database do not return in step.
        let spread = Duration::from_millis(fastrand::u64(
            0..=u64::try_from(pause.as_millis()).unwrap_or(0) / 4,
        ));
        if *stopped.borrow() {
            return sleep(pause).await;
        }
        tokio::select! {
            () = sleep(pause + spread) => {}
            _ = stopped.wait_for(|stop| *stop) => {}
        }
    }

    /// Logs a failure if it is the first.
    fn failing(&self, why: &str) {
        add(&self.tally.writer_errors, 1);
        if !self.tally.writer_failing.swap(true, Ordering::Relaxed) {
            tracing::error!(why, "ledger records cannot be delivered: they wait in the journal");
        }
    }

    fn recovered(&self) -> Duration {
        if self.tally.writer_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("ledger records are delivered again");
        }
        FIRST_BACKOFF
    }
}
