//! Why a probe got no answer: a kind that can be translated, and the libraries' message.

use std::error::Error;
use std::io;

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
}

impl From<reqwest::Error> for ProbeError {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let (mut text, mut fault) = (error.to_string(), ProbeFault::NoConnection);
        if error.is_timeout() {
            fault = ProbeFault::TimedOut;
        }
        let mut cause = error.source();
        while let Some(inner) = cause {
            let said = inner.to_string();
            fault = of_cause(inner, &said).unwrap_or(fault);
            text.push_str(": ");
            text.push_str(&said);
            cause = inner.source();
        }
        Self { fault, text }
    }
}

/// An error of TLS, however many errors of input and output it is wrapped in.
fn is_tls(cause: &(dyn Error + 'static)) -> bool {
    let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    cause.is::<rustls::Error>() || wrapped.is_some_and(|inner| is_tls(inner))
}

/// The resolver's error has no separate type: hyper says "dns error".
fn of_cause(cause: &(dyn Error + 'static), said: &str) -> Option<ProbeFault> {
    let io = cause.downcast_ref::<io::Error>();
    match io.map(io::Error::kind) {
        _ if is_tls(cause) => Some(ProbeFault::TlsFailed),
        _ if said == "dns error" => Some(ProbeFault::UnknownHost),
        Some(io::ErrorKind::ConnectionRefused) => Some(ProbeFault::ConnectionRefused),
        Some(io::ErrorKind::TimedOut) => Some(ProbeFault::TimedOut),
        _ => None,
    }
}
