//! Failed attempts per client address: ten within five minutes block the address for fifteen.
//!
//! Memory is bounded: at most [`CAPACITY`] addresses are kept; beyond that the one that was silent
//! for longest is dropped. IPv6 addresses count by their /64, which usually belongs to one client.
//! A successful attempt does not clear the count; otherwise the holder of one key could guess at
//! others without limit.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use parking_lot::Mutex;

use crate::domain::clock::{JITTER_MS, Timestamp};

const FAILURES: usize = 10;
const WINDOW_MS: i64 = 5 * 60 * 1000;
const CLOSED_MS: i64 = 15 * 60 * 1000;
/// Addresses kept at once: a few hundred kilobytes at most.
const CAPACITY: usize = 4096;

/// Counts failed attempts of each address; see the header.
#[derive(Debug, Default)]
pub struct Throttle {
    addresses: Mutex<HashMap<IpAddr, Past>>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThrottledAttempt {
    /// The attempt was made and succeeded.
    Right,
    /// The attempt was made and failed; it is counted.
    Wrong,
    /// Not tried: the address may try again after this many seconds.
    Refused {
        /// Seconds until the address may try again, 1–900.
        seconds: u64,
    },
}

#[derive(Debug, Default)]
struct Past {
    /// Times of recent failures, oldest first; never more than [`FAILURES`].
    failures: Vec<Timestamp>,
    closed_until: Option<Timestamp>,
}

impl Past {
    fn last(&self) -> Timestamp {
        self.failures.last().copied().max(self.closed_until).unwrap_or_default()
    }

    /// Milliseconds until the address may try again. At most [`CLOSED_MS`], also if the clock was
    /// set back since.
    fn closed_for(&self, now: Timestamp) -> Option<u64> {
        let left = self.closed_until?.since(now);
        (1..=CLOSED_MS + JITTER_MS).contains(&left).then(|| left.min(CLOSED_MS).unsigned_abs())
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.closed_for(now).is_none()
            && !self.failures.last().is_some_and(|at| now.is_within(WINDOW_MS, *at))
    }
}

impl Throttle {
    /// Seconds until this address may try again; `None` = it may now.
    pub fn closed_for(&self, address: IpAddr, now: Timestamp) -> Option<u64> {
        closed_for(&self.addresses.lock(), network(address), now)
    }

    /// Makes an attempt, unless the address has failed too often. Concurrent attempts run one after
    /// the other, so that all are counted.
    pub fn attempt(
        &self,
        address: IpAddr,
        now: Timestamp,
        is_right: impl FnOnce() -> bool,
    ) -> ThrottledAttempt {
        let address = network(address);
        let mut addresses = self.addresses.lock();
        if let Some(seconds) = closed_for(&addresses, address, now) {
            return ThrottledAttempt::Refused { seconds };
        }
        if is_right() {
            return ThrottledAttempt::Right;
        }
        count(&mut addresses, address, now);
        ThrottledAttempt::Wrong
    }

    /// Counts a failed attempt.
    pub fn failed(&self, address: IpAddr, now: Timestamp) {
        count(&mut self.addresses.lock(), network(address), now);
    }
}

fn closed_for(addresses: &HashMap<IpAddr, Past>, address: IpAddr, now: Timestamp) -> Option<u64> {
    Some(addresses.get(&address)?.closed_for(now)?.div_ceil(1000))
}

fn count(addresses: &mut HashMap<IpAddr, Past>, address: IpAddr, now: Timestamp) {
    if addresses.len() >= CAPACITY && !addresses.contains_key(&address) {
        make_room(addresses, now);
    }
    let past = addresses.entry(address).or_default();
    past.failures.retain(|at| now.is_within(WINDOW_MS, *at));
    past.failures.push(now);
    if past.failures.len() >= FAILURES {
        past.failures.clear();
        past.closed_until = Some(now.plus_ms(CLOSED_MS));
    }
}

fn make_room(addresses: &mut HashMap<IpAddr, Past>, now: Timestamp) {
    addresses.retain(|_, past| !past.is_over(now));
    if addresses.len() >= CAPACITY {
        let quiet =
            addresses.iter().min_by_key(|(_, past)| past.last()).map(|(address, _)| *address);
        quiet.and_then(|address| addresses.remove(&address));
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_tenth_failure_closes_for_fifteen_minutes() {
        let throttle = Throttle::default();
        let start = Timestamp(1_000_000);
        for n in 0..9 {
            throttle.failed(ip("10.0.0.1"), start.plus_ms(n));
            assert_eq!(throttle.closed_for(ip("10.0.0.1"), start.plus_ms(n)), None);
        }
        throttle.failed(ip("10.0.0.1"), start);
        assert_eq!(throttle.closed_for(ip("10.0.0.1"), start), Some(900));
        assert_eq!(throttle.closed_for(ip("10.0.0.2"), start), None);
        assert_eq!(throttle.closed_for(ip("10.0.0.1"), start.plus_ms(CLOSED_MS - 1)), Some(1));
        assert_eq!(throttle.closed_for(ip("10.0.0.1"), start.plus_ms(CLOSED_MS)), None);
    }

    #[test]
    fn a_clock_that_is_set_back_closes_for_no_longer() {
        let throttle = Throttle::default();
        let ahead = Timestamp(100 * CLOSED_MS);
        (0..10).for_each(|_| throttle.failed(ip("10.0.0.1"), ahead));
        let back = ahead.plus_ms(-60 * 60 * 1000);
        assert_eq!(throttle.closed_for(ip("10.0.0.1"), back), None);
        (0..9).for_each(|_| throttle.failed(ip("10.0.0.2"), ahead));
        throttle.failed(ip("10.0.0.2"), back);
        assert_eq!(throttle.closed_for(ip("10.0.0.2"), back), None, "the nine are long ago");
    }

    #[test]
    fn failures_age_out() {
        let throttle = Throttle::default();
        for n in 0..40 {
            throttle.failed(ip("10.0.0.1"), Timestamp(n * (WINDOW_MS / 9 + 1)));
        }
        assert_eq!(throttle.closed_for(ip("10.0.0.1"), Timestamp(40 * WINDOW_MS)), None);
    }

    #[test]
    fn one_ipv6_network_is_one_client_and_mapped_addresses_are_ipv4() {
        let throttle = Throttle::default();
        for n in 0..10 {
            throttle.failed(ip(&format!("2001:db8:1:2::{n}")), Timestamp(5));
            throttle.failed(ip("::ffff:10.0.0.9"), Timestamp(5));
        }
        assert!(throttle.closed_for(ip("2001:db8:1:2:ffff::1"), Timestamp(5)).is_some());
        assert!(throttle.closed_for(ip("2001:db8:1:3::1"), Timestamp(5)).is_none());
        assert!(throttle.closed_for(ip("10.0.0.9"), Timestamp(5)).is_some());
    }

    #[test]
    fn memory_is_bounded_and_the_quietest_is_forgotten() {
        let throttle = Throttle::default();
        for n in 0..u32::try_from(CAPACITY).unwrap() + 100 {
            throttle.failed(IpAddr::V4(n.into()), Timestamp(i64::from(n)));
        }
        let addresses = throttle.addresses.lock();
        assert_eq!(addresses.len(), CAPACITY);
        assert!(!addresses.contains_key(&IpAddr::V4(0.into())));
    }
}
