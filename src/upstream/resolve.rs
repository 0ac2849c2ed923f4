//! Resolves names without blocking: the system resolver on Tokio's blocking pool, behind a small
//! cache.
//!
//! If a name no longer resolves, its last addresses stay in use: a short failure of DNS does not
//! make a provider unreachable.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long an answer is used before the name is resolved again.
const FRESH: Duration = Duration::from_secs(30);
/// Names kept at most; providers are few, so this is only a safety bound.
const CAPACITY: usize = 4096;

/// A name without any address, and without an earlier answer.
#[derive(Debug, thiserror::Error)]
#[error("the name {host} does not resolve: {reason}")]
pub struct ResolveError {
    host: String,
    reason: String,
}

struct Lookup {
    addresses: Arc<[IpAddr]>,
    asked: Instant,
    next: usize,
}

/// The cache of names.
#[derive(Default)]
pub struct Resolver {
    answers: Mutex<HashMap<String, Lookup>>,
}

impl Resolver {
    /// An address of `host`; several are used in turn, so that a retry may reach another machine.
    ///
    /// # Errors
    /// When the name does not resolve and there is no earlier answer.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, ResolveError> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(SocketAddr::new(ip, port));
        }
        if let Some(ip) = self.cached(host, |answer| answer.asked.elapsed() < FRESH) {
            return Ok(SocketAddr::new(ip, port));
        }
        let reason = match tokio::net::lookup_host((host, port)).await {
            Ok(found) => {
                let addresses: Arc<[IpAddr]> = found.map(|a| a.ip()).collect();
                if let Some(first) = addresses.first().copied() {
                    self.remember(host, addresses);
                    return Ok(SocketAddr::new(first, port));
                }
                "no address".to_owned()
            }
            Err(e) => e.to_string(),
        };
        match self.cached(host, |_| true) {
            Some(ip) => {
                tracing::warn!(
                    host,
                    reason,
                    "the name does not resolve now: its last address is used"
                );
                Ok(SocketAddr::new(ip, port))
            }
            None => Err(ResolveError { host: host.to_owned(), reason }),
        }
    }

    fn cached(&self, host: &str, usable: impl Fn(&Lookup) -> bool) -> Option<IpAddr> {
        let mut answers = self.answers.lock();
        let answer = answers.get_mut(host).filter(|a| usable(a))?;
        answer.next = answer.next.wrapping_add(1);
        answer.addresses.get(answer.next % answer.addresses.len()).copied()
    }

    fn remember(&self, host: &str, addresses: Arc<[IpAddr]>) {
        let mut answers = self.answers.lock();
        if answers.len() >= CAPACITY {
            answers.clear();
        }
        answers.insert(host.to_owned(), Lookup { addresses, asked: Instant::now(), next: 0 });
    }
}
