//! The administration API and the web UI (`ui.rs`) on their own listener. One table of operations
//! ([`table`]) is the source of the routes, the checks of bodies and the OpenAPI document.
//!
//! A request goes through `dispatch` (look up → authenticate → permit → read → check → run) to an
//! action in [`actions`] and back through [`envelope`]. To add an operation: a struct for its
//! body, an action, one entry in its file's `operations()`.

pub mod actions;
pub mod auth;
pub mod bodies;
pub mod body;
mod body_budget;
pub mod call;
pub mod context;
pub mod declarative;
mod dispatch;
pub mod envelope;
mod head_timer;
mod holdings;
pub mod limits;
pub mod live;
pub mod made;
mod openapi;
pub mod operation;
pub mod playground;
mod problems;
pub mod records;
mod security;
mod serve;
mod status_page;
mod surface;
pub mod table;
mod ui;
mod unread_body;

use std::sync::Arc;

use axum::Router;
use axum::middleware::map_response;
use axum::routing::{any, get};

pub use context::Context;
pub use serve::serve;
pub use table::document as openapi;

pub use crate::reasons;

/// The complete administration surface. Call it inside the runtime for its background work. Put a
/// `ConnectInfo<SocketAddr>` into each request's extensions ([`serve()`] does), so that logins are
/// throttled per address and audit records contain it.
pub fn router(ctx: Arc<Context>) -> Router {
    Router::new()
        .route("/api/{*operation}", any(dispatch::dispatch))
        .route("/status", get(status_page::html))
        .route("/status.json", get(status_page::json))
        .fallback(dispatch::elsewhere)
        .layer(map_response(security::harden))
        .with_state(surface::Surface {
            live: live::Live::new(Arc::clone(&ctx)),
            ctx,
            throttle: Arc::default(),
            description: Arc::default(),
            bodies: Arc::default(),
            status: Arc::default(),
        })
}
