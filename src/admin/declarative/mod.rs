//! The whole configuration as one document: written out ([`export()`]), and put in effect
//! ([`apply()`]).
//!
//! A document is judged by the types and rules of the single actions, and everything that it
//! changes is one transaction. What a record is, is in the file of its kind; each compares stored
//! and wanted records in the form in which the document has them ([`form`]), so that what is shown,
//! what is compared and what is exported cannot differ. No file is read here, and no YAML.

mod apply;
mod error_rules;
mod export;
mod faults;
mod form;
mod invoices;
mod keys;
mod names;
mod notifications;
mod plan;
mod prices;
mod providers;
mod schema;
mod secrets;
mod section;
mod settings;
mod users;
mod words;
mod work;

pub use apply::apply;
pub use export::export;
pub use plan::{FieldChange, MadeKey, Plan, PlannedChange};
pub use schema::schema;
pub use secrets::Secrets;
pub use work::{Applied, By, Desk, Order};

/// The version of the document's form.
pub const VERSION: i64 = 1;
/// Bytes of a document as JSON.
pub const MAX_DOCUMENT: usize = 16 * 1024 * 1024;

/// The sections of a document, in the order in which they are applied and exported.
pub(super) const SECTIONS: [&str; 10] = [
    "version",
    "settings",
    "notifications",
    "providers",
    "invoice_sources",
    "users",
    "prices",
    "forced_prices",
    "words",
    "error_rules",
];
