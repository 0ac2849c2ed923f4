//! The connections of one listener: how many there may be, in total and from each address.
//!
//! A connection takes a [`ConnectionSlot`] when it is accepted, before its TLS handshake, and
//! releases it when it is dropped. IPv6 addresses count by their /64, which usually belongs to one
//! client. The table has entries only for addresses with connections. This module sends no answers:
//! the listener does.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::domain::network::Networks;
use crate::telemetry::{IntCounter, IntGauge};

/// How often refusals are logged, for each reason.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// A table with a smaller capacity is never shrunk.
const SMALL_TABLE: usize = 1024;
/// Prefix length by which IPv6 addresses are counted.
const IPV6_PREFIX: u32 = 64;

/// How many connections there may be; 0 = no limit.
#[derive(Debug, Clone, Copy)]
pub struct SlotBounds<'a> {
    /// Connections from all addresses together.
    pub total: usize,
    /// Connections from one IPv4 address or one IPv6 /64.
    pub per_address: usize,
    /// Networks that `per_address` does not apply to: reverse proxies.
    pub exempt: &'a Networks,
}

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All slots of the listener are taken.
    Total,
    /// The address has as many connections as one address may have.
    Address,
}

/// Decides whether a connection from an address is accepted; `None` for an unknown address.
pub type Entry = Arc<dyn Fn(Option<IpAddr>) -> Result<ConnectionSlot, Full> + Send + Sync>;

/// The name of a listener, and its metrics.
pub struct Listener {
    /// The section of its settings: `proxy` or `admin`.
    pub name: &'static str,
    /// Connections that are open now.
    pub open: IntGauge,
    /// Connections that were refused for [`Full::Total`].
    pub refused_total: IntCounter,
    /// Connections that were refused for [`Full::Address`].
    pub refused_address: IntCounter,
}

/// The slots of one listener.
pub struct ConnectionSlots {
    listener: Listener,
    held: Mutex<HeldSlots>,
}

#[derive(Default)]
struct HeldSlots {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
    /// When refusals were last logged, in total and by address.
    logged: [Option<Instant>; 2],
}

/// A connection's slot, released on drop.
pub struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    address: Option<IpAddr>,
}

impl ConnectionSlots {
    /// Starts without a connection. [`Self::enter`] receives the bounds.
    pub fn new(listener: Listener) -> Arc<Self> {
        Arc::new(Self { listener, held: Mutex::default() })
    }

    /// Takes a slot.
    ///
    /// # Errors
    /// When all are taken. The refusal is counted, and logged once a minute.
    pub fn enter(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        bounds: SlotBounds<'_>,
    ) -> Result<ConnectionSlot, Full> {
        let address = address.map(|address| address.to_canonical());
        let exempt = address.is_none_or(|address| bounds.exempt.contains(address));
        let counted = address.map(network_of);
        let mut held = self.held.lock();
        if bounds.total > 0 && held.total >= bounds.total {
            return Err(self.refused(&mut held, Full::Total, bounds.total, address));
        }
        let here =
            counted.and_then(|counted| held.by_address.get(&counted)).copied().unwrap_or_default();
        if !exempt && bounds.per_address > 0 && here >= bounds.per_address {
            return Err(self.refused(&mut held, Full::Address, bounds.per_address, address));
        }
        held.total += 1;
        if let Some(counted) = counted {
            *held.by_address.entry(counted).or_default() += 1;
        }
        self.listener.open.inc();
        Ok(ConnectionSlot { slots: Arc::clone(self), address: counted })
    }

    fn refused(
        &self,
        held: &mut HeldSlots,
        full: Full,
        most: usize,
        address: Option<IpAddr>,
    ) -> Full {
        let (counter, logged, setting) = match full {
            Full::Total => (&self.listener.refused_total, &mut held.logged[0], "max_connections"),
            Full::Address => {
                (&self.listener.refused_address, &mut held.logged[1], "max_connections_per_address")
            }
        };
        counter.inc();
        if logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            *logged = Some(Instant::now());
            let setting = format!("{}.{setting}", self.listener.name);
            let address = address.map(|address| address.to_string()).unwrap_or_default();
            tracing::warn!(setting, most, address, "connections are refused: {setting} are open");
        }
        full
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.listener.open.dec();
        let mut held = self.slots.held.lock();
        held.total -= 1;
        let Some(address) = self.address else { return };
        let Some(here) = held.by_address.get_mut(&address) else { return };
        *here -= 1;
        if *here > 0 {
            return;
        }
        held.by_address.remove(&address);
        let (used, room) = (held.by_address.len(), held.by_address.capacity());
        if room > SMALL_TABLE && used < room / 4 {
            held.by_address.shrink_to(used * 2);
        }
    }
}

/// The unit by which an address is counted: itself, or its /64.
fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << (128 - IPV6_PREFIX))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> Arc<ConnectionSlots> {
        let counter = |name| IntCounter::new(name, "a test's").unwrap();
        ConnectionSlots::new(Listener {
            name: "proxy",
            open: IntGauge::new("open", "a test's").unwrap(),
            refused_total: counter("total"),
            refused_address: counter("address"),
        })
    }

    fn enter(
        slots: &Arc<ConnectionSlots>,
        address: &str,
        total: usize,
        per_address: usize,
    ) -> Result<ConnectionSlot, Full> {
        let exempt = Networks::parse(&["10.0.0.0/8"]).unwrap();
        slots.enter(
            Some(address.parse().unwrap()),
            SlotBounds { total, per_address, exempt: &exempt },
        )
    }

    #[test]
    fn addresses_and_networks_of_ipv6_are_bounded_each_and_the_table_ends_empty() {
        let slots = slots();
        let mut held = Vec::new();
        for address in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::2:1"] {
            held.push(enter(&slots, address, 0, 2).unwrap());
        }
        for full in ["192.0.2.1", "2001:db8:0:0:ffff::9"] {
            assert_eq!(enter(&slots, full, 0, 2).err(), Some(Full::Address), "{full}");
        }
        held.push(enter(&slots, "2001:db8:0:1::1", 0, 2).unwrap());
        for _ in 0..4 {
            held.push(enter(&slots, "10.1.2.3", 0, 2).unwrap());
        }
        assert_eq!(enter(&slots, "192.0.2.7", 9, 2).err(), Some(Full::Total));
        assert_eq!(
            (slots.listener.refused_address.get(), slots.listener.refused_total.get()),
            (2, 1)
        );
        drop(held);
        assert_eq!((slots.held.lock().by_address.len(), slots.listener.open.get()), (0, 0));
    }

    #[test]
    fn the_table_does_not_keep_the_room_of_a_flood() {
        let slots = slots();
        let address = |n: u32| Ipv6Addr::from(u128::from(n) << 64).to_string();
        let flood: Vec<ConnectionSlot> =
            (0..50_000).map(|n| enter(&slots, &address(n), 0, 1).unwrap()).collect();
        assert!(slots.held.lock().by_address.capacity() >= 50_000);
        drop(flood);
        assert!(slots.held.lock().by_address.capacity() <= 4 * SMALL_TABLE);
    }
}
