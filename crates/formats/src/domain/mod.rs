//! The data types of the gateway: ids, money, keys, users, providers, prices, usage, records.
//!
//! Pure data with its own small rules. No I/O, no clock, no dependency on any other module.

pub mod clock;
pub mod error_rule;
pub mod fast_map;
pub mod feature;
pub mod feature_policy;
pub mod fee;
pub mod format;
pub mod group;
pub mod ids;
pub mod invoice;
pub mod key;
pub mod limit_type;
pub mod limits;
pub mod matching;
pub mod model_rows;
pub mod money;
pub mod named_model;
pub mod network;
pub mod notifications;
pub mod part;
pub mod price;
pub mod provider;
pub mod record;
pub mod secret;
pub mod settings;
pub mod trace;
pub mod usage;
pub mod user;
pub mod version;
pub mod word;
