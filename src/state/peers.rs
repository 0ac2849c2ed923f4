//! Shares the providers' health with other nodes, through Redis, and the cooldowns and windows of
//! their credentials.
//!
//! Each change is stored in a hash (`PREFIX:circuits`), for nodes that join or restart, and published
//! to the running ones. No request waits for this: while Redis is lost every node keeps
//! its own circuits. Changes made meanwhile are sent when Redis is back, and the later change wins.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::RedisError;
use redis::aio::{MultiplexedConnection, PubSub};

use super::Node;
use super::credentials::update::CredentialUpdate;
use super::health::update::HealthUpdate;
use crate::redis::{Primary, Server};

const TIME_LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(500);
/// Heartbeat of the connection.
const BEAT: Duration = Duration::from_secs(5);
/// Interval between two looks for changed windows of accounts, which each reply may cause.
const WINDOWS: Duration = Duration::from_secs(1);
/// The stored state expires if no circuit changes for this long.
const KEEP_MS: i64 = 7 * 86_400_000;

#[derive(Debug, thiserror::Error)]
enum PeerFault {
    #[error("no answer in time")]
    TimedOut,
    #[error(transparent)]
    Redis(#[from] RedisError),
    #[error("the connection ended")]
    Ended,
}

/// The task that shares providers' health; see the header.
pub struct Peers {
    server: Server,
    prefix: String,
    node: Arc<Node>,
}

impl Peers {
    /// # Errors
    /// When the address is invalid; the error does not contain the address.
    pub fn new(server: &Server, prefix: &str, node: Arc<Node>) -> Result<Self, String> {
        server.check()?;
        Ok(Self { server: server.clone(), prefix: server.names(prefix)?, node })
    }

    /// Runs until `stop` resolves. Errors are logged once per change.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut failing = false;
        loop {
            let fault = tokio::select! {
                () = &mut stop => return,
                fault = self.share(&mut failing) => fault,
            };
            if !std::mem::replace(&mut failing, true) {
                tracing::warn!(error = %fault, "the health of providers is not shared with other \
                    nodes now");
            }
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    async fn share(&self, failing: &mut bool) -> PeerFault {
        match self.connect().await {
            Ok((connection, listening)) => {
                if std::mem::take(failing) {
                    tracing::info!("the health of providers is shared with other nodes again");
                }
                self.serve(connection, listening).await
            }
            Err(fault) => fault,
        }
    }

    /// Subscribes first and reads then, so that no change is missed.
    async fn connect(&self) -> Result<(MultiplexedConnection, PubSub), PeerFault> {
        let Primary { client, mut connection } =
            self.server.primary(&self.stored(), TIME_LIMIT).await?;
        let mut listening = within(client.get_async_pubsub()).await?;
        within(listening.subscribe(self.channel())).await?;
        let known = redis::cmd("HVALS").arg(self.stored()).to_owned();
        let known: Vec<String> = within(known.query_async(&mut connection)).await?;
        known.iter().for_each(|text| self.apply_update(text));
        Ok((connection, listening))
    }

    async fn serve(&self, mut connection: MultiplexedConnection, listening: PubSub) -> PeerFault {
        let mut heard = listening.into_on_message();
        let mut beat = tokio::time::interval(BEAT);
        let mut windows = tokio::time::interval(WINDOWS);
        loop {
            let done = tokio::select! {
                message = heard.next() => match message.and_then(|message| message.get_payload::<String>().ok()) {
                    Some(text) => {
                        self.apply_update(&text);
                        Ok(())
                    }
                    None => Err(PeerFault::Ended),
                },
                () = self.node.health.marked() => self.tell(&mut connection).await,
                () = self.node.credentials.marked() => self.tell(&mut connection).await,
                _ = windows.tick() => self.tell(&mut connection).await,
                _ = beat.tick() => {
                    within(redis::cmd("PING").query_async::<redis::Value>(&mut connection)).await.map(|_| ())
                }
            };
            if let Err(fault) = done {
                return fault;
            }
        }
    }

    fn apply_update(&self, text: &str) {
        let snapshot = self.node.state.snapshot();
        if let Some(update) = CredentialUpdate::read(text) {
            let (provider, id) = update.place;
            if snapshot.provider(provider).is_some_and(|one| one.has_credential(id)) {
                self.node.credentials.apply_update(update, self.node.clock.now());
            }
        } else if let Some(update) = HealthUpdate::read(text)
            && let Some(provider) = snapshot.provider(update.provider)
        {
            self.node.health.apply_update(&update, provider);
        }
    }

    async fn tell(&self, connection: &mut MultiplexedConnection) -> Result<(), PeerFault> {
        let news = self.node.health.take_updates();
        let credentials = self.node.credentials.take_updates();
        if news.is_empty() && credentials.is_empty() {
            return Ok(());
        }
        let mut all = redis::pipe();
        for update in &credentials {
            let text = update.to_text();
            all.hset(self.stored(), update.field(), &text)
                .ignore()
                .publish(self.channel(), &text)
                .ignore();
        }
        for update in &news {
            let text = update.to_text();
            all.hset(self.stored(), update.provider.0, &text)
                .ignore()
                .publish(self.channel(), &text)
                .ignore();
        }
        all.pexpire(self.stored(), KEEP_MS).ignore();
        let done = within(all.query_async::<()>(connection)).await;
        if done.is_err() {
            news.iter().for_each(|update| self.node.health.mark_changed(update.provider));
            let places = credentials.iter().map(|update| update.place);
            places.for_each(|place| self.node.credentials.mark_changed(place));
        }
        done
    }

    fn stored(&self) -> String {
        format!("{}:circuits", self.prefix)
    }

    fn channel(&self) -> String {
        format!("{}:health", self.prefix)
    }
}

async fn within<T>(work: impl Future<Output = redis::RedisResult<T>>) -> Result<T, PeerFault> {
    match tokio::time::timeout(TIME_LIMIT, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(PeerFault::TimedOut),
    }
}
