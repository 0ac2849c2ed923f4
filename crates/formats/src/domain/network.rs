//! Networks of addresses, and the addresses that are not public.
//!
//! Addresses are those of `core::net`: values without any I/O.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;
use std::sync::Arc;

use arrayvec::ArrayString;

/// The address as text. Every record has one, and `Display` takes 1 300 instructions for IPv4.
pub fn text(address: IpAddr) -> Arc<str> {
    let IpAddr::V4(v4) = address else { return address.to_string().into() };
    let mut text = ArrayString::<15>::new();
    for octet in v4.octets() {
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(itoa::Buffer::new().format(octet));
    }
    Arc::from(&*text)
}

/// Addresses with a common prefix: `10.0.0.0/8`, `fd00::/8`; a single address is a network of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    prefix: u8,
}

impl Network {
    /// Reads `address/prefix` or `address`. Bits beyond the prefix must be zero, so that a typing
    /// error is detected.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let base: IpAddr = address.parse().ok()?;
        let width = if base.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => width,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().ok().filter(|p| *p <= width)?
            }
            Some(_) => return None,
        };
        let network = Self { base, prefix };
        (bits(base) & !network.mask() == 0).then_some(network)
    }

    /// An IPv6 network never contains an IPv4 address, nor the reverse.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.base.is_ipv4() == address.is_ipv4() && bits(address) & self.mask() == bits(self.base)
    }

    /// IPv4 addresses are in the upper 32 bits.
    fn mask(&self) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0)
    }
}

impl fmt::Display for Network {
    /// Of a single address, the address alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.base.is_ipv4() { 32 } else { 128 };
        match self.prefix {
            prefix if prefix == width => self.base.fmt(f),
            prefix => write!(f, "{}/{prefix}", self.base),
        }
    }
}

/// A list of networks, such as those of the reverse proxies in front of the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Networks(Vec<Network>);

impl FromIterator<Network> for Networks {
    fn from_iter<I: IntoIterator<Item = Network>>(networks: I) -> Self {
        Self(networks.into_iter().collect())
    }
}

impl AsRef<[Network]> for Networks {
    fn as_ref(&self) -> &[Network] {
        &self.0
    }
}

impl Networks {
    /// `None` if one of the texts is not a network.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Option<Self> {
        texts.iter().map(|text| Network::parse(text.as_ref())).collect::<Option<_>>().map(Self)
    }

    /// Whether the list has no network, so that it contains no address.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of the networks contains the address. An IPv4-mapped IPv6 address counts as
    /// IPv4: this is how a listener on `[::]` shows IPv4 peers.
    pub fn contains(&self, address: IpAddr) -> bool {
        !self.0.is_empty() && {
            let address = address.to_canonical();
            self.0.iter().any(|network| network.contains(address))
        }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
        IpAddr::V6(v6) => u128::from(v6),
    }
}

/// IPv4 networks that are not the public internet, and what they are.
const NOT_PUBLIC_V4: [(&str, &str); 16] = [
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local, where clouds keep metadata"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "a relay of 6to4"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("168.63.129.16/32", "a cloud's metadata"),
];

/// The same for IPv6, where everything outside 2000::/3 is not public in any case.
const NOT_PUBLIC_V6: [(&str, &str); 5] = [
    ("2001::/23", "reserved, or a tunnel such as Teredo"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "6to4"),
    ("3fff::/20", "for documentation"),
    ("2620:4f:8000::/48", "reserved"),
];

/// Why an address is not public; `None` if it is. IPv4 addresses inside IPv6 ones (mapped,
/// compatible, translated) are judged as IPv4; tunnels that could lead to any address are refused.
pub fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => within(&NOT_PUBLIC_V4, IpAddr::V4(v4)),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => within(&NOT_PUBLIC_V4, IpAddr::V4(v4)),
            None => not_public_v6(v6),
        },
    }
}

fn within(networks: &[(&str, &'static str)], address: IpAddr) -> Option<&'static str> {
    let holds = |text: &str| Network::parse(text).is_none_or(|network| network.contains(address));
    networks.iter().find(|(network, _)| holds(network)).map(|(_, why)| *why)
}

fn not_public_v6(v6: Ipv6Addr) -> Option<&'static str> {
    match v6.segments()[0] {
        _ if v6.is_unspecified() => Some("unspecified"),
        _ if v6.is_loopback() => Some("loopback"),
        0xfe80..=0xfebf => Some("link-local"),
        0xfec0..=0xfeff => Some("site-local"),
        0xfc00..=0xfdff => Some("private"),
        0xff00..=0xffff => Some("multicast"),
        0x2000..=0x3fff => within(&NOT_PUBLIC_V6, IpAddr::V6(v6)),
        _ => Some("reserved"),
    }
}

/// The IPv4 address inside an IPv6 one: `::ffff:a.b.c.d`, `::a.b.c.d`, `64:ff9b::a.b.c.d`. (6to4
/// and Teredo do not matter here, since all of them are refused.)
pub fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = v6.segments();
    let [high, low] = [segments[6], segments[7]].map(u16::to_be_bytes);
    let v4 = Ipv4Addr::new(high[0], high[1], low[0], low[1]);
    match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(v4),
        [0, 0, 0, 0, 0, 0, ..] if !v6.is_unspecified() && !v6.is_loopback() => Some(v4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_the_standard_library_does() {
        for written in ["0.0.0.0", "10.2.30.255", "255.255.255.255", "::1", "2001:db8::7"] {
            assert_eq!(*text(written.parse().unwrap()), *written);
        }
    }

    #[test]
    fn networks_are_read_strictly_and_hold_their_own() {
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "fd00::/129",
            "10/8",
            "a/8",
            "::1/0",
        ] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("0.0.0.0/0", "255.255.255.255", "::"),
            ("::/0", "ff::", "1.2.3.4"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("fd00::/8", "fdff::1", "fe00::"),
        ] {
            let network = Network::parse(network).unwrap();
            assert_eq!(Network::parse(&network.to_string()), Some(network));
            assert!(
                network.contains(inside.parse().unwrap())
                    && !network.contains(outside.parse().unwrap())
            );
        }
        let all = NOT_PUBLIC_V4.iter().chain(&NOT_PUBLIC_V6);
        assert!(all.into_iter().all(|(network, _)| Network::parse(network).is_some()));
    }

    #[test]
    fn a_list_contains_what_one_of_its_networks_contains() {
        let list = Networks::parse(&["10.0.0.0/8", "fd00::/8", "192.0.2.7"]).unwrap();
        for (address, contained) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("fd12::1", true),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::10.1.2.3", false),
            ("11.0.0.1", false),
        ] {
            assert_eq!(list.contains(address.parse().unwrap()), contained, "{address}");
        }
        assert_eq!(Networks::parse(&["10.0.0.0/8", "x"]), None);
        assert!(!Networks::default().contains("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_not_public_is_known_in_every_dress() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "239.255.255.255",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd12:3456::1",
            "ff02::1",
            "100::1",
            "2001:db8::1",
            "fd00:ec2::254",
            "4000::1",
        ] {
            assert!(not_public(address.parse().unwrap()).is_some(), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "223.255.255.1",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert_eq!(not_public(address.parse().unwrap()), None, "{address}");
        }
    }
}
