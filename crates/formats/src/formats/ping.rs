//! What a client that waits for a stream gets as a sign of life, in each format.

use crate::domain::format::WireFormat;

/// Bytes that a client of the format ignores between two events of its stream.
///
/// The native format has an event for it, SSE has comments. The SDKs of alt-cli take each line for
/// data, a comment too, but skip white space, as does a reader of one JSON array.
pub const fn ping(format: WireFormat) -> &'static [u8] {
    match format {
        WireFormat::Native => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
        WireFormat::Chat | WireFormat::Responses => b": keepalive\n\n",
        WireFormat::AltCli => b"\n\n",
    }
}
