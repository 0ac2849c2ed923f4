//! Keys' texts and hashes, where requests carry them, and encryption at rest.

pub mod carried;
pub mod key_ring;
pub mod key_text;
pub mod vault;
