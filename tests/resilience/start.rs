//! A start while another program holds the address, and a hand-over to another address.

use std::net::TcpListener;

use crate::proxy::fixture::Fixture;
use crate::support::gateway::{Gateway, free_port};
use crate::support::wait;

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_proxy_address_ends_the_start_and_nothing_was_touched() {
    let mut gateway = Gateway::prepare(&[]);
    let other = TcpListener::bind(gateway.proxy_addr()).unwrap();
    gateway.spawn();
    assert_eq!(gateway.exit_code().await, Some(1));
    let said = gateway.log();
    assert!(
        said.contains(gateway.proxy_addr())
            && said.contains("proxy.addr")
            && said.contains("in use"),
        "{said}"
    );
    assert!(!said.contains("tollgate is up"), "{said}");
    assert!(!gateway.dir.path().join("data").exists(), "nothing was made");
    drop(other);
    gateway.spawn();
    gateway.ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_gateway_on_the_same_addresses_does_not_disturb_the_first() {
    let fixture = Fixture::native().await;
    let mut second = Gateway::prepare(&[]);
    for (name, url) in [
        ("TOLLGATE_PROXY_ADDR", &fixture.gateway.proxy),
        ("TOLLGATE_ADMIN_ADDR", &fixture.gateway.admin),
        ("TOLLGATE_METRICS_ADDR", &fixture.gateway.metrics),
    ] {
        second.set(name, url.trim_start_matches("http://"));
    }
    second.spawn();
    assert_eq!(second.exit_code().await, Some(1), "{}", second.log());
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    assert!(fixture.gateway.readiness().await.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_may_come_with_a_new_address() {
    let mut fixture = Fixture::native().await;
    let before = fixture.gateway.proxy_addr().to_owned();
    let after = format!("127.0.0.1:{}", free_port());
    fixture.gateway.set("TOLLGATE_PROXY_ADDR", &after);
    let mut old = fixture.gateway.upgrade().await;
    fixture.gateway.proxy = format!("http://{after}");
    wait::ended(&mut old).await;
    fixture.gateway.ready().await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    assert!(std::net::TcpStream::connect(before).is_err(), "the former address has no listener");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_to_an_address_that_is_anothers_ends_the_new_process() {
    let mut fixture = Fixture::native().await;
    let other = TcpListener::bind(("127.0.0.1", free_port())).unwrap();
    fixture.gateway.set("TOLLGATE_PROXY_ADDR", &other.local_addr().unwrap().to_string());
    let mut old = fixture.gateway.upgrade().await;
    assert_eq!(fixture.gateway.exit_code().await, Some(1));
    let said = fixture.gateway.log();
    assert!(
        said.contains("belongs to another program") && said.contains("ended unexpectedly"),
        "{said}"
    );
    wait::ended(&mut old).await;
}
