//! The administration API and the web UI (`ui.rs`) on their own listener: one table of operations
//! ([`table`]) from which the routes, the checks of bodies and the OpenAPI document are made.
//!
//! A request walks `dispatch` (look up → authenticate → permit → read → check → run) to an action
//! in [`actions`] and back through [`envelope`]. How to add an operation: a field table, an action,
//! one entry in its file's `operations()`.

pub mod actions;
pub mod auth;
pub mod body;
mod body_budget;
pub mod call;
pub mod context;
pub mod declarative;
mod dispatch;
pub mod envelope;
pub mod fields;
mod head_timer;
mod holdings;
mod limits;
pub mod live;
mod openapi;
pub mod playground;
mod problems;
pub mod records;
mod security;
mod serve;
pub mod table;
mod ui;
mod unread_body;

use std::sync::Arc;

use axum::Router;
use axum::middleware::map_response;
use axum::routing::any;

pub use context::Context;
pub use openapi::openapi;
pub use serve::serve;

/// The whole administration surface, to be made inside the runtime that its background work is to
/// run on. Put a `ConnectInfo<SocketAddr>` into each request's extensions ([`serve()`] does), so
/// that logins are throttled per address and audit records name it.
pub fn router(ctx: Arc<Context>) -> Router {
    Router::new()
        .route("/api/{*operation}", any(dispatch::dispatch))
        .fallback(ui::serve)
        .layer(map_response(security::harden))
        .with_state(context::Surface {
            live: live::Live::new(Arc::clone(&ctx)),
            ctx,
            throttle: Arc::default(),
            bodies: Arc::default(),
        })
}
