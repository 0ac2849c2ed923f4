//! The client's address behind a reverse proxy, as throttling and the audit log use it.

use serde_json::{Value, json};

use super::gate::{Gate, Reply, TOKEN};

const WRONG: &str = "sk-ffffffffffffffffffffffffffffffff";

/// A login through a proxy on this machine that adds these headers.
async fn login(gate: &Gate, key: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request = gate.post("auth/login").json(&json!({ "key": key }));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let reply = Reply::of(request).await;
    (reply.status.as_u16(), reply.code().to_owned())
}

#[tokio::test]
async fn ten_bad_logins_through_a_trusted_proxy_lock_out_their_own_client_alone() {
    let gate = Gate::start().await;
    gate.trust(&["127.0.0.0/8"]);
    let attacker = [("x-forwarded-for", "9.9.9.9, 203.0.113.7")];
    for _ in 0..10 {
        assert_eq!(login(&gate, WRONG, &attacker).await.0, 401);
    }
    let limited = (429, "TOO_MANY_ATTEMPTS".to_owned());
    assert_eq!(login(&gate, TOKEN, &attacker).await, limited);
    assert_eq!(
        login(&gate, TOKEN, &[("forwarded", "for=\"203.0.113.7:1234\";proto=https")]).await,
        limited
    );
    // The client's own claim, on the left, gives it no other address.
    assert_eq!(login(&gate, TOKEN, &[("x-forwarded-for", "1.2.3.4, 203.0.113.7")]).await, limited);
    for other in [
        &[("x-forwarded-for", "203.0.113.8")] as &[_],
        &[("forwarded", "for=\"[2001:db8::7]:443\"")],
        &[],
    ] {
        assert_eq!(login(&gate, TOKEN, other).await.0, 200, "{other:?}");
    }
}

#[tokio::test]
async fn without_a_trusted_proxy_no_header_changes_the_address() {
    let gate = Gate::start().await;
    for n in 0..10 {
        let own = format!("203.0.113.{n}");
        assert_eq!(login(&gate, WRONG, &[("x-forwarded-for", &own)]).await.0, 401);
    }
    assert_eq!(login(&gate, TOKEN, &[("x-forwarded-for", "203.0.113.200")]).await.0, 429);
}

#[tokio::test]
async fn audit_records_name_the_client_behind_the_proxy() {
    let gate = Gate::start().await;
    let add = async |name: &str| {
        let request = gate
            .post("actions/users/addUser")
            .bearer_auth(TOKEN)
            .header("x-forwarded-for", "203.0.113.7");
        Reply::of(request.json(&json!({ "name": name }))).await.data();
    };
    add("direct").await;
    gate.trust(&["127.0.0.1"]);
    add("proxied").await;
    let page = gate.admin("audit/getAuditLog", json!({})).await.data();
    let addresses: Vec<&Value> =
        page["entries"].as_array().unwrap().iter().map(|e| &e["clientAddress"]).collect();
    assert_eq!(addresses, ["203.0.113.7", "127.0.0.1"], "newest first");
}
