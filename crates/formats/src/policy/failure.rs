//! How an attempt at a provider can fail without an error reply: each case with its kind for
//! metrics, its reason for the decision chain, and its words.

/// A small set of kinds of failures, for metrics and display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum FailureKind {
    /// The name did not resolve.
    Dns,
    /// No connection was made.
    Connect,
    /// The TLS handshake failed, or the certificate is not valid.
    Tls,
    /// A time-out: of the connection, of its TLS handshake, or of the reply.
    Timeout,
    /// The connection or the reply broke off.
    Broken,
    /// An error reply.
    Status,
    /// A success status without a usable reply.
    Unusable,
}

impl FailureKind {
    /// The name in records and metrics, such as `timeout`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How an attempt failed without a complete reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NetworkFailure {
    /// The provider's name could not be resolved.
    Resolve,
    /// The provider refused the connection, or could not be reached.
    Connect,
    /// The provider's credential could not be exchanged for an access token.
    NoToken,
    /// The TLS handshake failed, or the certificate is not valid.
    Tls,
    /// No TCP connection in time.
    ConnectTimeout,
    /// Connected, but no TLS handshake in time.
    TlsTimeout,
    /// Connected, but no byte of the reply's body in time.
    FirstByteTimeout,
    /// The stream had begun, and its next byte did not arrive in time.
    IdleTimeout,
    /// The stream sent signs of life, and no content in time.
    ContentTimeout,
    /// A reply in one piece, or an error reply, did not end in time; or the rest of a reply that no
    /// client reads any more exceeded its bound in bytes.
    TotalTimeout,
    /// The connection broke, or the peer violated the protocol.
    Broken,
}

impl NetworkFailure {
    const fn row(self) -> (FailureKind, &'static str, &'static str) {
        use FailureKind::{Broken, Connect, Dns, Timeout, Tls};
        match self {
            Self::Resolve => (Dns, "resolve", "its name does not resolve"),
            Self::Connect => (Connect, "connect", "no connection"),
            Self::NoToken => (Connect, "no_token", "no access token"),
            Self::Tls => (Tls, "tls", "no secure connection"),
            Self::ConnectTimeout => (Timeout, "connect_timeout", "no connection in time"),
            Self::TlsTimeout => (Timeout, "tls_timeout", "no TLS handshake in time"),
            Self::FirstByteTimeout => (Timeout, "first_byte_timeout", "no first byte in time"),
            Self::IdleTimeout => (Timeout, "idle_timeout", "the stream stood still"),
            Self::ContentTimeout => (Timeout, "content_timeout", "the stream had no content"),
            Self::TotalTimeout => (Timeout, "total_timeout", "no reply in time"),
            Self::Broken => (Broken, "broken", "the connection broke"),
        }
    }

    /// Its kind.
    pub const fn kind(self) -> FailureKind {
        self.row().0
    }

    /// Its word in the decision chain, such as `tls_timeout`.
    pub const fn reason(self) -> &'static str {
        self.row().1
    }

    /// What happened, for people.
    pub const fn words(self) -> &'static str {
        self.row().2
    }

    /// Whether a large request or a long reply can cause it at any provider.
    pub const fn may_be_of_content(self) -> bool {
        matches!(self, Self::FirstByteTimeout | Self::ContentTimeout | Self::TotalTimeout)
    }
}

/// Why a reply with a success status cannot be sent to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnusableReply {
    /// A body without a single byte.
    Empty,
    /// An HTML page: a portal or a proxy's notice.
    Html,
    /// Not of the provider's configured format.
    WrongFormat,
    /// The stream ended regularly, but before its first meaningful event.
    StreamWithoutContent,
}

impl UnusableReply {
    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Empty => ("empty_reply", "an empty reply"),
            Self::Html => ("html_page", "an HTML page in place of a reply"),
            Self::WrongFormat => ("wrong_format", "a reply of another format"),
            Self::StreamWithoutContent => ("stream_without_content", "a stream without content"),
        }
    }

    /// Its word in the decision chain, such as `html_page`.
    pub const fn reason(self) -> &'static str {
        self.row().0
    }

    /// What was sent, for people.
    pub const fn words(self) -> &'static str {
        self.row().1
    }
}
