//! Values with bounds: the types of settings and of the fields of request bodies.
//!
//! A type holds its bounds ([`Whole<u32, 1, 100>`](Whole)). One of bodies has [`FromJson`], which
//! reads it and describes it as a schema; one of settings has [`FromText`], which reads it from a
//! configuration file or a variable and describes it as a text. What both have, has both.

mod collection;
mod fault;
mod from_json;
mod from_text;
mod number;
mod text;
mod units;
mod word;

pub use collection::{Document, List, Listed, Pairs, differ, texts};
pub use fault::{Fault, Faults};
pub(crate) use from_json::from_json;
pub use from_json::{FromJson, Plain};
pub use from_text::{FromText, Handling, InYaml, Wrong};
pub use number::{Fraction, Id, Usd, Whole};
pub use text::{
    BaseUrl, Clock, Form, Formed, HeaderName, HeaderText, ModelText, NameText, PemText, ProxyUrl,
    SEALED, Text, Url, WebhookUrl, is_header_name, is_visible, spoils_names, url_fault,
};
pub use units::{
    DAY, GIB, HOUR, KIB, MIB, MIN, MS, S, Seconds, Size, Span, SpanOrNone, show_duration, show_size,
};
pub(crate) use word::choices;
pub use word::{OneOf, Word};
