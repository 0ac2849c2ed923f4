//! The text of an API key: how it is generated, and what is stored of it.

use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::domain::key::KeyHash;
use crate::domain::secret::Secret;

/// Random bytes in a key: 128 bits.
const RANDOM_BYTES: usize = 16;
/// Characters of the text that are stored for display: `sk-` and four digits.
const PREFIX_LEN: usize = 7;

/// A new key: the text, which is shown once, and what is stored.
#[derive(Debug)]
pub struct NewKey {
    /// `sk-` and 32 lower-case hexadecimal digits. It is returned to its owner once and never
    /// stored.
    pub text: Secret,
    /// SHA-256 of the text, by which requests are identified.
    pub hash: KeyHash,
    /// The text's first seven characters (`sk-ab12`), stored for display.
    pub prefix: String,
    /// The text's last four characters, stored for display.
    pub last_four: String,
}

/// The machine's random source failed.
#[derive(Debug, thiserror::Error)]
#[error("the system's random source failed")]
pub struct NoRandomness;

/// Makes a key: `sk-` and 32 lower-case hexadecimal digits (docs/reference/records.md).
pub fn generate() -> Result<NewKey, NoRandomness> {
    let text = format!("sk-{}", hex::encode(random::<RANDOM_BYTES>()?));
    Ok(NewKey {
        hash: hash(&text),
        prefix: text[..PREFIX_LEN].to_owned(),
        last_four: text[text.len() - 4..].to_owned(),
        text: Secret::new(text),
    })
}

/// Whether a text has the shape of a key: 128 random bits, which cannot be guessed.
pub fn is_like_a_key(text: &str) -> bool {
    let digits = text.strip_prefix("sk-").filter(|digits| digits.len() == 2 * RANDOM_BYTES);
    digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Whether a text has the shape of a web session's token: 256 random bits in base64. It is looked
/// up only as a session: a stale cookie that a browser still sends is not an attempt at the admin
/// token.
pub fn is_like_a_session(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// SHA-256 of a key's text, by which a key is looked up.
pub fn hash(text: &str) -> KeyHash {
    KeyHash(Sha256::digest(text.as_bytes()).into())
}

/// `N` bytes from the machine's random source.
pub fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_has_the_specified_shape_and_is_unlike_the_next() {
        let (a, b) = (generate().unwrap(), generate().unwrap());
        let text = a.text.expose();
        assert_eq!(text.len(), 35);
        assert!(
            text.strip_prefix("sk-")
                .unwrap()
                .bytes()
                .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
        );
        assert!(text.starts_with(&a.prefix) && text.ends_with(&a.last_four));
        assert_eq!(a.hash, hash(text));
        assert!(is_like_a_key(text) && !is_like_a_session(text));
        assert_ne!(a.text, b.text);
    }
}
