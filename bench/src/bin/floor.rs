//! The floor: a Pingora proxy that does nothing but pass through. The gateway cannot cost less than
//! this without leaving Pingora, so its costs are given as ratios to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clap::Parser;
use pingora::prelude::{HttpPeer, Result};
use pingora::proxy::{ProxyHttp, Session, http_proxy_service};
use pingora::server::Server;
use pingora::server::configuration::ServerConf;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "A bare Pingora pass-through")]
struct Args {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    upstream: SocketAddr,
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

struct PassThrough(SocketAddr);

#[async_trait]
impl ProxyHttp for PassThrough {
    type CTX = ();

    fn new_ctx(&self) {}

    #[expect(
        clippy::disallowed_methods,
        reason = "the address is an address, no name: nothing is resolved"
    )]
    async fn upstream_peer(&self, _: &mut Session, (): &mut ()) -> Result<Box<HttpPeer>> {
        let mut peer = HttpPeer::new(self.0, false, String::new());
        peer.options.idle_timeout = Some(Duration::from_secs(60));
        Ok(Box::new(peer))
    }
}

fn main() {
    let args = Args::parse();
    let conf = ServerConf {
        threads: args.threads,
        upstream_keepalive_pool_size: 512,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(1),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service =
        http_proxy_service(&Arc::clone(&server.configuration), PassThrough(args.upstream));
    service.add_tcp(&args.listen.to_string());
    server.add_service(service);
    server.run_forever();
}
