//! The data plane's view of the configuration: one immutable snapshot of keys, users, providers,
//! prices and settings; and how a committed change takes effect.
//!
//! A request takes the snapshot once and never reads the database. The administration commits a
//! write, calls [`State::publish`], and only then answers: the change is in effect on this node
//! before its author gets the answer. Other nodes notice by the configuration version (see
//! [`refresh`]). A copy on disk ([`saved`]) is for a start without the database.

pub mod admin_token;
pub mod builtin;
pub mod cache_sessions;
pub mod client_versions;
pub mod conditions;
pub mod connection_slots;
pub mod credential_uses;
pub mod credentials;
pub mod events;
pub mod failed_sessions;
pub mod first_bytes;
pub mod frame_watch;
pub mod health;
pub mod listings;
pub mod node;
pub mod peers;
pub mod phase;
pub mod probed;
pub mod provider_summary;
pub mod publish;
pub mod reachable_models;
pub mod refresh;
pub mod rejected;
pub mod reseal;
mod reserve;
pub mod saved;
pub mod snapshot;
pub mod stored_history;
pub mod switch_off;
pub mod throttle;
pub mod unpriced_models;

pub use admin_token::{AdminToken, TokenCheck};
pub use cache_sessions::CacheSessions;
pub use client_versions::{ClientUser, ClientVersions};
pub use conditions::{Conditions, Fault};
pub use connection_slots::{ConnectionSlot, ConnectionSlots, Entry, Full, Listener, SlotBounds};
pub use credential_uses::CredentialUses;
pub use credentials::{CredentialPlace, CredentialStates};
pub use events::{CircuitChange, Events, NodeEvent, ProviderChange, ProviderNews};
pub use failed_sessions::FailedSessions;
pub use first_bytes::FirstBytes;
pub use frame_watch::FrameWatch;
pub use health::Health;
pub use health::file::HealthFile;
pub use listings::Listings;
pub use node::Node;
pub use peers::Peers;
pub use phase::Phase;
pub use probed::ProbedProviders;
pub use publish::{State, StateError};
pub use reachable_models::Reach;
pub use rejected::{RejectedRequests, Rejections};
pub use snapshot::{Caller, Snapshot};
pub use stored_history::StoredHistory;
pub use switch_off::SwitchOff;
