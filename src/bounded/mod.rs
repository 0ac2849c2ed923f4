//! Values with bounds: the types of settings and of the fields of request bodies.
//!
//! A type holds its bounds ([`Whole<u32, 1, 100>`](Whole)). [`FromJson`] reads it from a body, and
//! describes it as a schema.

mod collection;
mod fault;
mod from_json;
mod number;
mod plain;
mod text;
mod word;

pub use collection::{Document, List, Pairs};
pub use fault::{Fault, Faults};
pub use from_json::FromJson;
pub(crate) use from_json::from_json;
pub use number::{Fraction, Id, Usd, Whole};
pub use plain::Plain;
pub use text::{
    BaseUrl, Clock, Form, Formed, HeaderText, ModelText, NameText, PemText, ProxyUrl, SEALED, Text,
    Url, WebhookUrl, spoils_names,
};
pub use word::{OneOf, Word};
