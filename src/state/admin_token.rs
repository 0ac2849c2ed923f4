//! The check of the admin token, with a bound on failed attempts per client address.
//!
//! The administration and the proxy count separately: clients of the proxy send credentials of
//! other services by mistake, and must not block the administration for all clients behind their
//! address. On each side, ten wrong texts within five minutes block their address for fifteen.
//! While it is blocked nothing is compared, so a right token gets the same answer as a wrong one:
//! 429 from the administration ([`AdminToken::check`]), 401 from the proxy
//! ([`AdminToken::is_at_proxy`]). Callers look up API keys and web sessions first, so these keep
//! working from the same address. Each process counts failures separately.

use std::net::IpAddr;

use arc_swap::ArcSwap;
use ring::hmac;

use super::throttle::{Throttle, ThrottledAttempt};
use crate::crypto::key_text;
use crate::domain::clock::Timestamp;
use crate::domain::key::KeyHash;
use crate::domain::secret::Secret;

/// The token, which a reload may replace, and the addresses that failed to present it.
pub struct AdminToken {
    token: ArcSwap<Token>,
    failures: Throttle,
    failures_at_proxy: Throttle,
}

struct Token {
    text: Secret,
    hash: KeyHash,
    /// It has the shape of an API key: unknown keys may be guesses at it.
    is_like_a_key: bool,
    /// It has the shape of a web session's secret.
    is_like_a_session: bool,
}

/// The result for a text that is not a valid API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCheck {
    /// The token.
    Right,
    /// Another text; counted as a failed attempt.
    Wrong,
    /// An unknown API key by its shape, which is not an attempt at the token.
    UnknownKey,
    /// Not compared: the address has failed too often, and may try again after this many seconds.
    Throttled {
        /// Seconds until the address may try again, 1–900.
        seconds: u64,
    },
}

impl AdminToken {
    /// Puts `token` into effect, without any failed attempts.
    pub fn new(token: Secret) -> Self {
        Self {
            token: ArcSwap::from_pointee(Token::new(token)),
            failures: Throttle::default(),
            failures_at_proxy: Throttle::default(),
        }
    }

    /// Puts a token into effect. Returns whether it changed. Web sessions opened with the old token
    /// then end.
    pub fn replace(&self, token: Secret) -> bool {
        let new = Token::new(token);
        let is_other = !self.token.load().hash.matches(&new.hash);
        if is_other {
            self.token.store(new.into());
        }
        is_other
    }

    /// Whether this is the token in effect. Use [`Self::check`] or [`Self::is_at_proxy`] for
    /// anything that clients send to be let in.
    pub fn is(&self, token: &Secret) -> bool {
        self.token.load().hash.matches(&key_text::hash(token.expose()))
    }

    /// Whether `text`, which was sent to the administration, is the token. Without an address,
    /// failures are not counted.
    pub fn check(&self, text: &str, client: Option<IpAddr>, now: Timestamp) -> TokenCheck {
        self.compare(&self.failures, text, client, now)
    }

    /// Whether `text`, which was sent to the proxy, is the token. From a blocked address no text
    /// is.
    pub fn is_at_proxy(&self, text: &str, client: Option<IpAddr>, now: Timestamp) -> bool {
        self.compare(&self.failures_at_proxy, text, client, now) == TokenCheck::Right
    }

    fn compare(
        &self,
        failures: &Throttle,
        text: &str,
        client: Option<IpAddr>,
        now: Timestamp,
    ) -> TokenCheck {
        let token = self.token.load();
        if !token.is_like_a_key && key_text::is_like_a_key(text) {
            return TokenCheck::UnknownKey;
        }
        // Hashes are compared, so the duration reveals neither the token's length nor its
        // beginning.
        let is_right = || !text.is_empty() && token.hash.matches(&key_text::hash(text));
        let attempt = match client {
            Some(address) => failures.attempt(address, now, is_right),
            None if is_right() => ThrottledAttempt::Right,
            None => ThrottledAttempt::Wrong,
        };
        match attempt {
            ThrottledAttempt::Right => TokenCheck::Right,
            ThrottledAttempt::Wrong => TokenCheck::Wrong,
            ThrottledAttempt::Refused { seconds } => TokenCheck::Throttled { seconds },
        }
    }

    /// Whether `text`, which has the shape of a web session's secret, is the token. Another text is
    /// not counted as a failed attempt: it is a stale cookie that a browser still sends. From a
    /// blocked address nothing is compared, as in [`Self::check`].
    pub fn is_in_cookie(&self, text: &str, client: Option<IpAddr>, now: Timestamp) -> bool {
        let token = self.token.load();
        token.is_like_a_session
            && client.is_none_or(|address| self.failures.closed_for(address, now).is_none())
            && token.hash.matches(&key_text::hash(text))
    }

    /// Binds a web session to the token: a MAC of the token under the session's own secret, which
    /// only the browser has. Read access to the database does not allow guesses at the token to be
    /// tested.
    pub fn session_check(&self, session_secret: &str) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, session_secret.as_bytes());
        let tag = hmac::sign(&key, self.token.load().text.expose().as_bytes());
        // HMAC-SHA256 has 32 bytes.
        tag.as_ref().try_into().unwrap_or_default()
    }
}

impl Token {
    fn new(text: Secret) -> Self {
        let hash = key_text::hash(text.expose());
        let is_like_a_key = key_text::is_like_a_key(text.expose());
        let is_like_a_session = key_text::is_like_a_session(text.expose());
        Self { text, hash, is_like_a_key, is_like_a_session }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);
    const KEY: &str = "sk-00000000000000000000000000000000";

    fn from(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    #[test]
    fn ten_wrong_texts_close_it_to_their_address_for_the_right_one_too() {
        let token = AdminToken::new(Secret::new("the-administrators-token"));
        let check = |text: &str, address: &str, at: Timestamp| token.check(text, from(address), at);
        for _ in 0..10 {
            assert_eq!(check("the-administrators-tokem", "192.0.2.1", NOW), TokenCheck::Wrong);
        }
        for text in ["the-administrators-token", "x", ""] {
            assert_eq!(
                check(text, "192.0.2.1", NOW),
                TokenCheck::Throttled { seconds: 900 },
                "{text}"
            );
        }
        assert_eq!(check(KEY, "192.0.2.1", NOW), TokenCheck::UnknownKey);
        assert_eq!(check("the-administrators-token", "192.0.2.2", NOW), TokenCheck::Right);
        assert_eq!(token.check("the-administrators-token", None, NOW), TokenCheck::Right);
        assert_eq!(
            check("the-administrators-token", "192.0.2.1", NOW.plus_ms(900_000)),
            TokenCheck::Right
        );
    }

    #[test]
    fn failures_at_the_proxy_and_at_the_administration_do_not_meet() {
        const TOKEN: &str = "the-administrators-token";
        let token = AdminToken::new(Secret::new(TOKEN));
        let (one, two) = (from("192.0.2.1"), from("192.0.2.2"));
        for _ in 0..20 {
            assert!(!token.is_at_proxy("a credential of another service", one, NOW));
        }
        assert!(!token.is_at_proxy(TOKEN, one, NOW), "a right text is not compared");
        assert_eq!(token.check(TOKEN, one, NOW), TokenCheck::Right);
        assert!(token.is_at_proxy(TOKEN, one, NOW.plus_ms(900_000)));
        for _ in 0..20 {
            let _ = token.check("wrong", two, NOW);
        }
        assert_eq!(token.check(TOKEN, two, NOW), TokenCheck::Throttled { seconds: 900 });
        assert!(token.is_at_proxy(TOKEN, two, NOW));
    }

    #[test]
    fn unknown_keys_are_attempts_only_at_a_token_of_their_shape() {
        let token = AdminToken::new(Secret::new("the-administrators-token"));
        for _ in 0..20 {
            assert_eq!(token.check(KEY, from("192.0.2.1"), NOW), TokenCheck::UnknownKey);
        }
        assert_eq!(
            token.check("the-administrators-token", from("192.0.2.1"), NOW),
            TokenCheck::Right
        );
        token.replace(Secret::new("sk-0123456789abcdef0123456789abcdef"));
        for _ in 0..10 {
            assert_eq!(token.check(KEY, from("192.0.2.1"), NOW), TokenCheck::Wrong);
        }
        assert!(matches!(token.check(KEY, from("192.0.2.1"), NOW), TokenCheck::Throttled { .. }));
    }

    #[test]
    fn a_replaced_token_is_wrong_and_its_sessions_no_longer_match() {
        let token = AdminToken::new(Secret::new("the-administrators-token"));
        let (one, other) = (token.session_check("session one"), token.session_check("session two"));
        assert_ne!(one, other);
        assert_eq!(one, token.session_check("session one"));
        token.replace(Secret::new("another-administrators-token"));
        assert_ne!(one, token.session_check("session one"));
        assert_eq!(token.check("the-administrators-token", None, NOW), TokenCheck::Wrong);
        assert_eq!(token.check("another-administrators-token", None, NOW), TokenCheck::Right);
    }
}
