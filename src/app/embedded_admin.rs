//! The administration as the proxy embeds it, if it is served on the proxy's listener too.

use std::net::SocketAddr;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http_body_util::BodyExt as _;
use tower::ServiceExt;

use crate::proxy::embedded_admin::{AdminBody, ClientBody, EmbeddedAdmin};

/// The administration's router, called in process.
pub(super) struct AdminRouter(pub Router);

#[async_trait]
impl EmbeddedAdmin for AdminRouter {
    async fn call(
        &self,
        request: http::Request<ClientBody>,
        peer: Option<SocketAddr>,
    ) -> http::Response<AdminBody> {
        let mut request = request.map(Body::new);
        if let Some(peer) = peer {
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        let Ok(answer) = self.0.clone().oneshot(request).await;
        answer.map(|body| body.map_err(Into::into).boxed_unsync())
    }
}
