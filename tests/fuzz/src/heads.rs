//! Properties of any head: the gateway finds every field that a parser finds, a model stays in its
//! segment, a cleaned query is clean, and frames are counted alike however they are cut.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};

use crate::domain::format::WireFormat;
use crate::domain::network::Networks;
use crate::formats::client_address::client_address;
use crate::formats::framing::has_field;
use crate::formats::{query, route};
use crate::frame_watch::FrameWatch;
use crate::input::Input;

/// The maximum number of fields that Pingora reads.
const FIELDS: usize = 256;

/// An HTTP/1 head, as the proxy reads it.
///
/// # Panics
/// When a rule does not hold.
pub fn http1(input: &Input<'_>) {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let whole = matches!(head.parse(input.body), Ok(httparse::Status::Complete(_)));
    if !whole {
        return;
    }
    let mut map = HeaderMap::new();
    for field in head.headers.iter() {
        assert!(has_field(input.body, field.name), "{:?} is not found", field.name);
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(field.name.as_bytes()), HeaderValue::from_bytes(field.value))
        {
            map.append(name, value);
        }
    }
    addresses(&map);
    let (Some(method), Some(target)) = (head.method, head.path) else { return };
    let (Ok(method), Ok(uri)) = (method.parse::<Method>(), target.parse::<Uri>()) else { return };
    target_rules(&method, uri.path(), uri.query());
}

/// Only a path and a query, which the fuzzer reaches more often than through a complete head.
///
/// # Panics
/// When a rule does not hold.
pub fn target(input: &Input<'_>) {
    let Ok(text) = std::str::from_utf8(input.body) else { return };
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    for method in [Method::POST, Method::GET] {
        target_rules(&method, path, query);
    }
}

fn target_rules(method: &Method, path: &str, query: Option<&str>) {
    let allowed = route::check_path(method, path).is_ok();
    let routed = route::match_path(method, path);
    if let Some(routed) = &routed {
        assert!(route::methods(path).is_some(), "{path:?} has a route and no methods");
        if let (true, Some(model)) = (allowed, &routed.model_in_path) {
            assert!(route::check_model(model).is_ok(), "{model:?} passed in {path:?}");
        }
    }
    for format in WireFormat::ALL {
        let Ok(kept) = query::upstream(format, query) else { continue };
        for pair in kept.iter().flat_map(|kept| kept.split('&')) {
            let name = query::decode(pair.split('=').next().unwrap_or(pair)).to_ascii_lowercase();
            assert_ne!(name.trim_start_matches('$'), "key", "a credential goes on: {query:?}");
            assert_ne!(name.trim_start_matches('$'), "fields", "the usage can be taken out: {query:?}");
        }
        assert_eq!(query::upstream(format, kept.as_deref()).ok(), Some(kept), "cleaning {query:?} twice");
    }
}

/// Without trusted proxies the peer is the client, whatever the head contains.
fn addresses(map: &HeaderMap) {
    let peer = [192, 0, 2, 1].into();
    assert_eq!(client_address(peer, map, &Networks::default()), peer);
    if let Some(trusted) = Networks::parse(&["192.0.2.0/24", "fd00::/8"]) {
        let _ = client_address(peer, map, &trusted);
    }
}

/// HTTP/2 frames, complete and in pieces.
///
/// # Panics
/// When the pieces give another result than the whole.
pub fn http2(input: &Input<'_>) {
    let (mut whole, mut cut) = (FrameWatch::new(), FrameWatch::new());
    let all = whole.take(input.body);
    let pieces = input.pieces().into_iter().try_for_each(|piece| cut.take(piece));
    // The budget grows with time, so one of them may end before the other.
    if all.is_ok() && pieces.is_ok() {
        assert_eq!(whole.is_in_head(), cut.is_in_head());
    }
}
