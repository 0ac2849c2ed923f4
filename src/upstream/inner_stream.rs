//! What Pingora asks of a connection that wraps another: the inner one answers.

/// `passes_on!(Wrapper: this => place)` implements the traits of Pingora's streams that only
/// describe a connection, by the stream at that place, except for the timing digest.
macro_rules! passes_on {
    ($wrapper:ty: $this:ident => $inner:expr) => {
        impl std::fmt::Debug for $wrapper {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                $inner.fmt(f)
            }
        }

        impl pingora::protocols::UniqueID for $wrapper {
            fn id(&self) -> pingora::protocols::UniqueIDType {
                let $this = self;
                $inner.id()
            }
        }

        impl pingora::protocols::Ssl for $wrapper {
            fn get_ssl_digest(&self) -> Option<std::sync::Arc<pingora::protocols::tls::SslDigest>> {
                let $this = self;
                $inner.get_ssl_digest()
            }

            fn selected_alpn_proto(&self) -> Option<pingora::protocols::ALPN> {
                let $this = self;
                $inner.selected_alpn_proto()
            }
        }

        impl pingora::protocols::GetTimingDigest for $wrapper {
            /// Empty: nothing reads it, and Pingora would copy it for each request.
            fn get_timing_digest(&self) -> Vec<Option<pingora::protocols::TimingDigest>> {
                Vec::new()
            }
        }

        impl pingora::protocols::GetProxyDigest for $wrapper {
            fn get_proxy_digest(
                &self,
            ) -> Option<std::sync::Arc<pingora::protocols::raw_connect::ProxyDigest>> {
                let $this = self;
                $inner.get_proxy_digest()
            }
        }

        impl pingora::protocols::GetSocketDigest for $wrapper {
            fn get_socket_digest(
                &self,
            ) -> Option<std::sync::Arc<pingora::protocols::SocketDigest>> {
                let $this = self;
                $inner.get_socket_digest()
            }
        }
    };
}
pub(crate) use passes_on;
