//! The proof of reasoning, and its origin.
//!
//! Each vendor signs or encrypts its models' reasoning and requires it back unchanged: native in
//! `signature`, responses in `encrypted_content`, alt-cli in `thoughtSignature`. A client of
//! another format has a field for its own vendor's proof and keeps any text in it. So a foreign
//! proof is sent there with a mark of its origin: it is sent back to the same kind of provider, and
//! left out for every other. The gateway stores nothing.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::Text;

/// The prefix of a sealed proof.
pub const MARK: &str = "tg1.";
/// The same in base64, as the alt-cli format requires for the field (the mark's last bits are part
/// of the next character).
pub const MARK_BASE64: &str = "dGcxL";

/// Whether a proof has the mark of another format. Its first bytes are enough.
pub fn is_foreign(proof: &[u8]) -> bool {
    proof.starts_with(MARK.as_bytes()) || proof.starts_with(MARK_BASE64.as_bytes())
}

/// The format of the model that reasoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// native: the `signature` of a thinking block.
    Native,
    /// The native format's redacted blocks, which have no text at all.
    NativeRedacted,
    /// responses: the item's id and its `encrypted_content`.
    Responses,
    /// chat-compatible, which has no proof.
    Chat,
    /// alt-cli: a `thoughtSignature`.
    AltCli,
    /// alt-cli: a step of a search that the service ran beside functions, as its part. The service
    /// wants it back as it wants a proof.
    AltCliStep,
}

const LETTERS: [(Origin, char); 6] = [
    (Origin::Native, 'n'),
    (Origin::NativeRedacted, 'x'),
    (Origin::Responses, 'r'),
    (Origin::Chat, 'c'),
    (Origin::AltCli, 'g'),
    (Origin::AltCliStep, 's'),
];

/// A proof and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature<'a> {
    /// The format that the proof comes from, and the only one that accepts it.
    pub origin: Origin,
    /// The vendor's text. Empty for formats without a proof, where only the text is sent back.
    pub value: Text<'a>,
}

impl<'a> Signature<'a> {
    /// A proof of this origin, with the vendor's text as it is.
    pub fn new(origin: Origin, value: impl Into<Text<'a>>) -> Self {
        Self { origin, value: value.into() }
    }

    /// Reads the text of a client of format `own`: its own vendor's proof, or one that was sealed
    /// for it.
    pub fn open(text: Text<'a>, own: Origin) -> Self {
        match unseal(&text) {
            Some((origin, value)) => Self { origin, value: Cow::Owned(value.to_owned()) },
            None => Self { origin: own, value: text },
        }
    }

    /// As [`Signature::open`], for the field that must be base64.
    pub fn open_base64(text: Text<'a>, own: Origin) -> Self {
        let sealed = text.starts_with(MARK_BASE64).then(|| decode(&text)).flatten();
        match sealed.as_deref().and_then(unseal) {
            Some((origin, value)) => Self { origin, value: Cow::Owned(value.to_owned()) },
            None => Self { origin: own, value: text },
        }
    }

    /// The text for a client of format `own`.
    pub fn seal(&self, own: Origin) -> Cow<'_, str> {
        if self.origin == own {
            return Cow::Borrowed(&self.value);
        }
        let letter = LETTERS.iter().find(|row| row.0 == self.origin).map_or('n', |row| row.1);
        Cow::Owned(format!("{MARK}{letter}.{}", self.value))
    }

    /// As [`Signature::seal`], in base64 if it is sealed.
    pub fn seal_base64(&self, own: Origin) -> Cow<'_, str> {
        if self.origin == own {
            Cow::Borrowed(&self.value)
        } else {
            Cow::Owned(STANDARD.encode(&*self.seal(own)))
        }
    }
}

fn unseal(text: &str) -> Option<(Origin, &str)> {
    let rest = text.strip_prefix(MARK)?;
    let (letter, value) = rest.split_once('.')?;
    let origin = LETTERS.iter().find(|row| letter.chars().eq([row.1]))?.0;
    Some((origin, value))
}

fn decode(text: &str) -> Option<String> {
    let bytes = STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_proof_comes_back_as_it_was() {
        for (origin, _) in LETTERS {
            for (own, _) in LETTERS {
                let given = Signature::new(origin, "rs_1.abc+/=é");
                let plain = Signature::open(given.seal(own).into_owned().into(), own);
                assert_eq!(plain, given);
                let coded = given.seal_base64(own).into_owned();
                assert_eq!(Signature::open_base64(coded.clone().into(), own), given);
                assert_eq!(coded.starts_with(MARK_BASE64), origin != own);
            }
        }
    }

    #[test]
    fn what_only_looks_sealed_is_the_clients_own() {
        for text in ["tg1.", "tg1.q.x", "tg1.nn.x", "dGcxL", "dGcxLm4uéé"] {
            assert_eq!(
                Signature::open(text.into(), Origin::Native),
                Signature::new(Origin::Native, text)
            );
            assert_eq!(
                Signature::open_base64(text.into(), Origin::AltCli),
                Signature::new(Origin::AltCli, text)
            );
        }
    }
}
