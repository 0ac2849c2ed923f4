//! The administration as the proxy embeds it, if it is served on the proxy's listener too.

use std::net::SocketAddr;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use bytes::Bytes;
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::proxy::embedded_admin::{AdminReply, ClientBody, EmbeddedAdmin, Pieces};

/// The administration's router, called in process.
pub(super) struct AdminRouter(pub Router);

#[async_trait]
impl EmbeddedAdmin for AdminRouter {
    async fn call(
        &self,
        request: http::Request<ClientBody>,
        peer: Option<SocketAddr>,
    ) -> AdminReply {
        let mut request = request.map(Body::new);
        if let Some(peer) = peer {
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        let Ok(answer) = self.0.clone().oneshot(request).await;
        let (head, body) = answer.into_parts();
        AdminReply { head, body: Box::new(Frames(body)) }
    }
}

struct Frames(Body);

#[async_trait]
impl Pieces for Frames {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.0.frame().await?.map(http_body::Frame::into_data) {
                Ok(Ok(data)) if !data.is_empty() => return Some(data),
                // Empty data and trailers contain nothing for the client.
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}
