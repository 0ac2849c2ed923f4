//! Keys' texts and hashes, and encryption at rest.

pub mod key_ring;
pub mod key_text;
pub mod vault;
