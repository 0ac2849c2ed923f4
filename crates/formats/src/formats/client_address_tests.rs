//! Tables of cases for the client's address behind proxies.

use http::HeaderValue;

use super::*;

/// The proxies of these tests are 10.0.0.0/8 and fd00::/8; the peer is 10.0.0.1.
fn found(headers: &[(&str, &str)]) -> String {
    from("10.0.0.1", headers)
}

fn from(peer: &str, headers: &[(&str, &str)]) -> String {
    let trusted = Networks::parse(&["10.0.0.0/8", "fd00::/8"]).unwrap();
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value);
    }
    client_address(peer.parse().unwrap(), &map, &trusted).to_string()
}

#[test]
fn headers_count_only_from_trusted_peers() {
    let both = [("x-forwarded-for", "203.0.113.7"), ("forwarded", "for=203.0.113.7")];
    assert_eq!(from("192.0.2.1", &both), "192.0.2.1");
    assert_eq!(from("::ffff:192.0.2.1", &both), "192.0.2.1");
    assert_eq!(from("10.0.0.1", &both), "203.0.113.7");
    assert_eq!(from("::ffff:10.0.0.1", &both), "203.0.113.7");
    assert_eq!(from("fd00::1", &both), "203.0.113.7");
    assert_eq!(found(&[]), "10.0.0.1");
    let mut map = HeaderMap::new();
    map.insert("x-forwarded-for", HeaderValue::from_static("203.0.113.7"));
    let nobody = client_address("10.0.0.1".parse().unwrap(), &map, &Networks::default());
    assert_eq!(nobody.to_string(), "10.0.0.1");
}

#[test]
fn x_forwarded_for_is_walked_from_the_right() {
    for (lines, expected) in [
        (&["203.0.113.7"] as &[&str], "203.0.113.7"),
        (&[" 203.0.113.7 "], "203.0.113.7"),
        (&["1.1.1.1, 203.0.113.7"], "203.0.113.7"),
        (&["1.1.1.1,203.0.113.7,10.0.0.2,\t10.9.9.9"], "203.0.113.7"),
        (&["1.1.1.1", "203.0.113.7, 10.0.0.2"], "203.0.113.7"),
        (&["203.0.113.7", "10.0.0.2"], "203.0.113.7"),
        // Requests from inside the trusted networks.
        (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        (&["10.0.0.2"], "10.0.0.2"),
        // An element that is not an address ends the walk.
        (&["203.0.113.7, unknown"], "10.0.0.1"),
        (&["203.0.113.7, unknown, 10.0.0.2"], "10.0.0.2"),
        (&["203.0.113.7, _hidden, 10.0.0.2"], "10.0.0.2"),
        (&["203.0.113.7,"], "10.0.0.1"),
        (&[""], "10.0.0.1"),
        (&["203.0.113.7, \"1.1.1.1\""], "10.0.0.1"),
        (&["203.0.113.7, client.example"], "10.0.0.1"),
        (&["203.0.113.7", "\u{e9}"], "10.0.0.1"),
        (&["203.0.113.256"], "10.0.0.1"),
        (&["203.0.113.7/32"], "10.0.0.1"),
        // Ports and IPv6.
        (&["203.0.113.7:4711"], "203.0.113.7"),
        (&["203.0.113.7:"], "10.0.0.1"),
        (&["203.0.113.7:x"], "10.0.0.1"),
        (&["203.0.113.7:123456"], "10.0.0.1"),
        (&["2001:db8::7"], "2001:db8::7"),
        (&["[2001:db8::7]"], "2001:db8::7"),
        (&["[2001:db8::7]:443, [fd00::2]:80"], "2001:db8::7"),
        (&["[2001:db8::7]443"], "10.0.0.1"),
        (&["[2001:db8::7"], "10.0.0.1"),
        (&["[203.0.113.7]"], "10.0.0.1"),
        (&["fe80::1%eth0"], "10.0.0.1"),
        (&["::ffff:203.0.113.7"], "203.0.113.7"),
        (&["203.0.113.7, ::ffff:10.0.0.2"], "203.0.113.7"),
    ] {
        let headers: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
        assert_eq!(found(&headers), expected, "{lines:?}");
    }
}

#[test]
fn forwarded_is_walked_from_the_right() {
    for (lines, expected) in [
        (&["for=203.0.113.7"] as &[&str], "203.0.113.7"),
        (&["FOR=203.0.113.7;proto=https;by=10.0.0.1"], "203.0.113.7"),
        (&["proto=https; for=203.0.113.7 ;host=gate.example"], "203.0.113.7"),
        (&["for=1.1.1.1, for=203.0.113.7, for=10.0.0.2"], "203.0.113.7"),
        (&["for=1.1.1.1", "for=203.0.113.7", "for=10.0.0.2"], "203.0.113.7"),
        (&["for=\"203.0.113.7:4711\""], "203.0.113.7"),
        (&["for=203.0.113.7:4711"], "203.0.113.7"),
        (&["for=\"203.0.113.7:_port.1\""], "203.0.113.7"),
        (&["for=\"[2001:db8::7]:443\";proto=https"], "2001:db8::7"),
        (&["for=\"[2001:db8::7]\""], "2001:db8::7"),
        (&["for=203.0.113.7;x=\"a, for=1.1.1.1\""], "203.0.113.7"),
        (&["for=203.0.113.7;x=\"a\\\", for=1.1.1.1\""], "203.0.113.7"),
        (&["for=203.0.113.7, for=unknown"], "10.0.0.1"),
        (&["for=203.0.113.7, for=_hidden, for=10.0.0.2"], "10.0.0.2"),
        (&["for=203.0.113.7, proto=https, for=10.0.0.2"], "10.0.0.2"),
        (&["for=203.0.113.7, "], "10.0.0.1"),
        (&["for=\"\""], "10.0.0.1"),
        // Errors anywhere in a line discard the complete line.
        (&["for=203.0.113.7, for=\"10.0.0.2"], "10.0.0.1"),
        (&["for=203.0.113.7 for=10.0.0.2"], "10.0.0.1"),
        (&["for=203.0.113.7;for=1.1.1.1"], "10.0.0.1"),
        (&["for=\"203.0.113.7\"x"], "10.0.0.1"),
        (&["203.0.113.7"], "10.0.0.1"),
        (&["for = 203.0.113.7"], "10.0.0.1"),
        (&["=203.0.113.7"], "10.0.0.1"),
        (&["for=203.0.113.7", "for=\"", "for=10.0.0.2"], "10.0.0.2"),
    ] {
        let headers: Vec<_> = lines.iter().map(|line| ("forwarded", *line)).collect();
        assert_eq!(found(&headers), expected, "{lines:?}");
    }
}

/// A quotation that a client opens does not hide what the proxies append.
#[test]
fn a_clients_quotation_does_not_hide_what_proxies_append() {
    for own in
        ["for=9.9.9.9;x=\"", "for=9.9.9.9;x=\"\\", "x=\"", "for=\"", "\"", "for=9.9.9.9;x=\"a\\\""]
    {
        for appended in [
            ", for=203.0.113.7",
            ", for=\"[2001:db8::7]:443\"",
            ", for=\"203.0.113.7\";proto=\"https\";by=10.0.0.1",
        ] {
            let line = format!("{own}{appended}");
            assert_ne!(found(&[("forwarded", &line)]), "9.9.9.9", "{line}");
        }
    }
}

#[test]
fn two_headers_that_disagree_count_for_nothing() {
    for (listed, standard, expected) in [
        ("203.0.113.7", "for=203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, 10.0.0.2", "for=203.0.113.7", "203.0.113.7"),
        ("203.0.113.7", "for=9.9.9.9", "10.0.0.1"),
        ("9.9.9.9", "for=203.0.113.7", "10.0.0.1"),
        ("203.0.113.7", "for=\"", "10.0.0.1"),
        ("unknown", "for=203.0.113.7", "10.0.0.1"),
    ] {
        assert_eq!(
            found(&[("x-forwarded-for", listed), ("forwarded", standard)]),
            expected,
            "{listed} {standard}"
        );
    }
}

#[test]
fn any_number_of_hops_is_walked() {
    let line = vec!["for=10.0.0.2"; 5_000].join(",");
    assert_eq!(found(&[("forwarded", &line)]), "10.0.0.2");
    assert_eq!(found(&[("forwarded", &format!("for=203.0.113.7, {line}"))]), "203.0.113.7");
}
