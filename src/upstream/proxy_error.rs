//! Why a proxy made no connection. No text has a part of a login, or words of the proxy.

/// What failed at a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the proxy {proxy} {fault}")]
pub struct ProxyError {
    /// `host:port`.
    pub proxy: String,
    /// What happened.
    pub fault: ProxyFault,
}

/// The address of a proxy cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address of the provider's proxy is invalid")]
pub struct ProxyAddressError;

/// What happened; follows the name of the proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyFault {
    /// Its name does not resolve.
    #[error("has a name that does not resolve: {0}")]
    Name(String),
    /// There is no TCP connection to it.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// There is no TLS connection to it.
    #[error("has no secure connection: {0}")]
    Tls(String),
    /// It wants a login, and the address has none.
    #[error("requires a login, and `proxy_url` has none")]
    NoLogin,
    /// It does not accept the login.
    #[error("refused the login in `proxy_url`")]
    WrongLogin,
    /// Its answer to CONNECT was this status.
    #[error("did not connect: it answered {0}")]
    Status(u16),
    /// Its answer to a request of SOCKS5.
    #[error("did not connect: {0}")]
    Refused(&'static str),
    /// What it sent is not of this protocol.
    #[error("does not speak {0}")]
    OtherProtocol(&'static str),
    /// It closed the connection before it answered.
    #[error("closed the connection during the handshake")]
    Closed,
    /// It did not answer within so many milliseconds.
    #[error("made no connection within {0} ms")]
    Late(u128),
}
