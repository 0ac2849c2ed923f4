//! Bodies as types: one struct per body, read by serde, described by schemars.
//!
//! A field's type holds its bounds (`bounded`: [`Text<1, 64>`](Text), [`Usd<10_000>`](Usd)), so a
//! body that is read is valid, and its JSON schema is of the same type. [`read`](mod@read) is the one
//! adapter from faults to refusals. Rules that need more than one field, or stored data, are part of the
//! actions.
//!
//! Neither `garde` nor `validator` does this: they check a struct that is read already, and serde
//! stops at the first wrong type or missing field, while a refusal lists every fault of a body in
//! the order of its fields. Errors of `garde` are texts alone; those of `validator` have codes and
//! parameters, but lose the order. So the bounds are part of the types here.

mod features;
mod moment;
mod patch;
mod provider;
pub mod read;
mod shape;
mod target;

pub use features::{FeatureList, GroupFields, features};
pub use moment::Moment;
pub use patch::{Patch, Sent};
pub use provider::{
    CredentialEntry, CredentialFields, CredentialText, CustomHeaders, PathTemplate, QueryParameters,
};
pub use read::{Input, read};
pub use shape::Shape;
pub use target::{Edit, Nothing, Part, With};

pub use crate::bounded::{
    BaseUrl, Clock, Document, Fault, Faults, Form, Formed, Fraction, HeaderText, Id, List,
    ModelText, NameText, OneOf, Pairs, PemText, Plain, ProxyUrl, SEALED, Text, Url, Usd,
    WebhookUrl, Whole, Word, spoils_names,
};
