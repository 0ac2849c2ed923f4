//! Resolves names without blocking: the system resolver on Tokio's blocking pool, behind a small
//! cache.
//!
//! A known address is used at once, and looked up again in the background: neither a slow nor a
//! failing DNS makes a provider unreachable. After a longer pause the look-up is awaited for a
//! moment, because the address may be another one.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// How long an answer is used before the name is resolved again.
const FRESH: Duration = Duration::from_secs(30);
/// How long it is used while that happens in the background.
const STALE: Duration = Duration::from_secs(300);
/// How long a look-up is awaited after that, and how long one for a new name.
const REFRESH_TIME: Duration = Duration::from_secs(1);
const FIRST_TIME: Duration = Duration::from_secs(10);
/// Names kept at most; providers are few, so this is only a safety bound.
const CAPACITY: usize = 4096;

/// A name without any address, and without an earlier answer.
#[derive(Debug, thiserror::Error)]
#[error("the name {host} does not resolve: {reason}")]
pub struct ResolveError {
    pub(super) host: String,
    pub(super) reason: String,
}

struct Lookup {
    addresses: Arc<[IpAddr]>,
    asked: Instant,
    next: usize,
}

/// The cache of names.
#[derive(Default, Clone)]
pub struct Resolver {
    answers: Arc<Mutex<HashMap<String, Lookup>>>,
}

impl Resolver {
    /// An address of `host`; several are used in turn, so that a retry may reach another machine.
    ///
    /// # Errors
    /// When the name does not resolve, or not in time, and there is no earlier answer.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, ResolveError> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(SocketAddr::new(ip, port));
        }
        let found = match self.known(host) {
            Some((ip, age)) if age < FRESH => Ok(ip),
            Some((ip, age)) => {
                self.mark(host);
                let looked_up = self.begin(host);
                if age < STALE {
                    return Ok(SocketAddr::new(ip, port));
                }
                Ok(within(REFRESH_TIME, looked_up).await.unwrap_or(ip))
            }
            None => within(FIRST_TIME, self.begin(host)).await,
        };
        found
            .map(|ip| SocketAddr::new(ip, port))
            .map_err(|reason| ResolveError { host: host.to_owned(), reason })
    }

    /// Requests that come meanwhile do not resolve the name too.
    fn mark(&self, host: &str) {
        if let Some(answer) = self.answers.lock().get_mut(host) {
            answer.asked = Instant::now();
        }
    }

    /// Resolves the name in the background: its answer is kept, however late it comes.
    fn begin(&self, host: &str) -> JoinHandle<Result<IpAddr, String>> {
        let (resolver, host) = (self.clone(), host.to_owned());
        Handle::current().spawn(async move {
            let found = resolver.look_up(&host).await;
            if let (Err(reason), Some(_)) = (&found, resolver.known(&host)) {
                tracing::warn!(
                    host,
                    reason,
                    "the name does not resolve now: its last address is used"
                );
            }
            found
        })
    }

    async fn look_up(&self, host: &str) -> Result<IpAddr, String> {
        let found = tokio::net::lookup_host((host, 0)).await.map_err(|e| e.to_string())?;
        let addresses: Arc<[IpAddr]> = found.map(|a| a.ip()).collect();
        let first = addresses.first().copied().ok_or("no address")?;
        self.remember(host, addresses);
        Ok(first)
    }

    /// An address of the last answer, and the answer's age.
    fn known(&self, host: &str) -> Option<(IpAddr, Duration)> {
        let mut answers = self.answers.lock();
        let answer = answers.get_mut(host)?;
        answer.next = answer.next.wrapping_add(1);
        let ip = answer.addresses.get(answer.next % answer.addresses.len()).copied()?;
        Some((ip, answer.asked.elapsed()))
    }

    fn remember(&self, host: &str, addresses: Arc<[IpAddr]>) {
        let mut answers = self.answers.lock();
        if answers.len() >= CAPACITY {
            answers.clear();
        }
        answers.insert(host.to_owned(), Lookup { addresses, asked: Instant::now(), next: 0 });
    }
}

/// What a look-up found in time.
async fn within(
    time: Duration,
    looked_up: JoinHandle<Result<IpAddr, String>>,
) -> Result<IpAddr, String> {
    match tokio::time::timeout(time, looked_up).await {
        Ok(Ok(found)) => found,
        Ok(Err(fault)) => Err(fault.to_string()),
        Err(_) => Err(format!("no answer within {} ms", time.as_millis())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_known_address_is_used_while_the_name_does_not_resolve() {
        let resolver = Resolver::default();
        let ip = IpAddr::from([192, 0, 2, 7]);
        assert!(resolver.resolve("no-such-host.invalid", 1).await.is_err());
        for age in [Duration::ZERO, FRESH, STALE] {
            resolver.remember("no-such-host.invalid", Arc::from([ip]));
            if let Some(answer) = resolver.answers.lock().get_mut("no-such-host.invalid") {
                answer.asked = Instant::now().checked_sub(age).unwrap();
            }
            let found = resolver.resolve("no-such-host.invalid", 443).await.unwrap();
            assert_eq!(found, SocketAddr::new(ip, 443), "{age:?}");
        }
    }
}
