//! Assembly: builds every part of a gateway, connects them and serves.

mod background;
mod banner;
mod connection_slots;
mod counters;
mod drain;
mod embedded_admin;
mod in_process;
mod listen;
mod listen_socket;
mod opening;
mod parts;
mod price_sync;
mod provider_watch;
mod reload;
mod reloaded;
mod secret_files;
mod serve;
mod signals;
mod snapshot;
mod source;
mod store_watch;
mod successor;
mod supervisor;
mod task_parts;
mod tasks;

pub use serve::serve;
pub use source::ConfigSource;
