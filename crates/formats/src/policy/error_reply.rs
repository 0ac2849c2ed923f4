//! An upstream's error as the rules and the classes see it.

/// An upstream's error reply, as parsed by `formats::error::read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorReply<'a> {
    /// HTTP status; below 400 if the error was in place of a success reply.
    pub status: u16,
    /// The `Retry-After` header.
    pub retry_after: Option<&'a str>,
    /// The body's error type.
    pub kind: Option<&'a str>,
    /// The body's error code.
    pub code: Option<&'a str>,
    /// The body's message.
    pub message: Option<&'a str>,
    /// The body itself, up to a bound; empty if it is not known.
    pub body: &'a [u8],
}
