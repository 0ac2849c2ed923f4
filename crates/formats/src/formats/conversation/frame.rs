//! One server-sent event whose data is one JSON object on one line, written in place.

use super::json::{self, Object};

/// Writes the event. `fill` must not add line breaks outside strings.
pub fn event(out: &mut Vec<u8>, name: Option<&str>, fill: impl FnOnce(&mut Object<'_>)) {
    if let Some(name) = name {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    json::object(out, fill);
    out.extend_from_slice(b"\n\n");
}

/// An event whose data repeats its name as member `type`, as in two of the formats.
pub fn typed(out: &mut Vec<u8>, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) {
    event(out, Some(name), |o| {
        o.word("type", name);
        fill(o);
    });
}
