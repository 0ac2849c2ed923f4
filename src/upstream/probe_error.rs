//! Why a probe got no answer: a kind that can be translated, and the libraries' message.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::client::{AnswerError, ConnectError};
use super::proxy_error::{ProxyError, ProxyFault};

/// What prevented an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeFault {
    /// The address or the key is invalid.
    BadAddress,
    /// The name does not resolve.
    UnknownHost,
    /// The credential could not be exchanged for an access token.
    NoToken,
    /// The host answered that nothing listens on the port.
    ConnectionRefused,
    /// The TLS handshake failed, for instance because of the certificate.
    TlsFailed,
    /// The proxy cannot be reached, or is not one.
    ProxyUnreachable,
    /// The proxy requires a login, or refuses it.
    ProxyLogin,
    /// The proxy does not connect to the provider.
    ProxyRefused,
    /// There was no complete answer within the bound.
    TimedOut,
    /// Anything else that broke the exchange.
    NoConnection,
}

/// Why there was no answer; the text does not contain the credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeError {
    /// What prevented it, as one of a few kinds.
    pub fault: ProbeFault,
    /// The libraries' messages, from the outermost to the cause.
    pub text: String,
}

impl ProbeError {
    pub(super) fn new(fault: ProbeFault, text: impl Into<String>) -> Self {
        Self { fault, text: text.into() }
    }

    pub(super) fn late(time_limit: Duration) -> Self {
        Self::new(ProbeFault::TimedOut, format!("no answer within {} s", time_limit.as_secs()))
    }
}

impl From<hyper_util::client::legacy::Error> for ProbeError {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        Self::caused(&error)
    }
}

impl From<AnswerError> for ProbeError {
    fn from(error: AnswerError) -> Self {
        Self::caused(&error)
    }
}

impl ProbeError {
    /// The texts of an error and its causes. What a proxy or the system says stands alone.
    fn caused(error: &(dyn Error + 'static)) -> Self {
        let (mut texts, mut fault) = (Vec::new(), ProbeFault::NoConnection);
        let mut cause = Some(error);
        while let Some(inner) = cause {
            if let Some((fault, text)) = of_connection(inner) {
                return Self::new(fault, text);
            }
            fault = of_cause(inner).unwrap_or(fault);
            let said = inner.to_string();
            if texts.last().is_none_or(|last: &String| !last.contains(&said)) {
                texts.push(said);
            }
            cause = inner.source();
        }
        Self { fault, text: texts.join(": ") }
    }
}

/// What prevented a connection.
fn of_connection(cause: &(dyn Error + 'static)) -> Option<(ProbeFault, String)> {
    let proxy = |error: &ProxyError| match error.fault {
        ProxyFault::NoLogin | ProxyFault::WrongLogin => ProbeFault::ProxyLogin,
        ProxyFault::Status(_) | ProxyFault::Refused(_) => ProbeFault::ProxyRefused,
        _ => ProbeFault::ProxyUnreachable,
    };
    let error = cause.downcast_ref::<ConnectError>()?;
    let fault = match error {
        ConnectError::Proxy(error) => proxy(error),
        ConnectError::Name { .. } => ProbeFault::UnknownHost,
        ConnectError::Tcp { error, .. } => match error.kind() {
            io::ErrorKind::ConnectionRefused => ProbeFault::ConnectionRefused,
            io::ErrorKind::TimedOut => ProbeFault::TimedOut,
            _ => ProbeFault::NoConnection,
        },
    };
    Some((fault, error.to_string()))
}

/// An error of TLS, however many errors of input and output it is wrapped in.
fn is_tls(cause: &(dyn Error + 'static)) -> bool {
    let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    cause.is::<rustls::Error>() || wrapped.is_some_and(|inner| is_tls(inner))
}

fn of_cause(cause: &(dyn Error + 'static)) -> Option<ProbeFault> {
    let io = cause.downcast_ref::<io::Error>();
    match io.map(io::Error::kind) {
        _ if is_tls(cause) => Some(ProbeFault::TlsFailed),
        Some(io::ErrorKind::TimedOut) => Some(ProbeFault::TimedOut),
        _ => matches!(cause.downcast_ref(), Some(AnswerError::Late(_)))
            .then_some(ProbeFault::TimedOut),
    }
}
