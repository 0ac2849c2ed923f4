//! Secrets from files: at the start, and when the files change while the gateway runs.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;
use tollgate::store::Backend;

use super::{Bed, NEW, OLD};
use crate::support::gateway::{ADMIN_TOKEN, Gateway};
use crate::support::postgres;
use crate::support::wait;

const OTHER_TOKEN: &str = "another-admin-token-0123456789";

/// The status of a token at the administration and at the proxy.
async fn statuses(gateway: &Gateway, token: &str) -> (u16, u16) {
    let admin =
        gateway.client.post(format!("{}/api/actions/providers/getProviders", gateway.admin));
    let proxy = gateway.client.get(format!("{}/v1/models", gateway.proxy));
    let (admin, proxy) = tokio::join!(
        admin.bearer_auth(token).json(&json!({})).send(),
        proxy.bearer_auth(token).send()
    );
    (admin.unwrap().status().as_u16(), proxy.unwrap().status().as_u16())
}

/// Waits until the token has been replaced this many times. It is not tried before: each failed
/// attempt counts.
async fn until_in_effect(gateway: &Gateway, times: usize, token: &str) {
    wait::until(
        || format!("the new token is not in effect:\n{}", gateway.log()),
        async || gateway.log().matches("the admin token has changed").count() >= times,
    )
    .await;
    assert_eq!(statuses(gateway, token).await, (200, 200));
}

/// A mounted Kubernetes secret: `name` is a link to `..data/name`, and `..data` one to a folder.
fn mount(at: &Path, version: &str, name: &str, content: &str) {
    std::fs::create_dir_all(at.join(version)).unwrap();
    std::fs::write(at.join(version).join(name), content).unwrap();
    let (data, beside) = (at.join("..data"), at.join("..data_tmp"));
    symlink(version, &beside).unwrap();
    std::fs::rename(&beside, &data).unwrap();
    if !at.join(name).exists() {
        symlink(Path::new("..data").join(name), at.join(name)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_admin_token_file_takes_effect_without_a_signal() {
    let mut gateway = Gateway::prepare(&[]);
    let secrets = gateway.dir.path().join("secrets");
    mount(&secrets, "..1", "admin-token", &format!("{ADMIN_TOKEN}\n"));
    gateway.unset("ADMIN_TOKEN");
    gateway.set("ADMIN_TOKEN_FILE", secrets.join("admin-token").to_str().unwrap());
    gateway.spawn();
    gateway.ready().await;
    assert_eq!(statuses(&gateway, ADMIN_TOKEN).await, (200, 200));
    mount(&secrets, "..2", "admin-token", OTHER_TOKEN);
    until_in_effect(&gateway, 1, OTHER_TOKEN).await;
    assert_eq!(
        statuses(&gateway, ADMIN_TOKEN).await,
        (401, 401),
        "the old one is worth nothing any more"
    );
    // An unusable file changes nothing, and is reported.
    mount(&secrets, "..3", "admin-token", "\n");
    gateway.log_shows("cannot be used: the old value stays in effect").await;
    assert_eq!(statuses(&gateway, OTHER_TOKEN).await, (200, 200));
    mount(&secrets, "..4", "admin-token", ADMIN_TOKEN);
    until_in_effect(&gateway, 2, ADMIN_TOKEN).await;
    let log = gateway.log();
    assert!(!log.contains(ADMIN_TOKEN) && !log.contains(OTHER_TOKEN), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_generated_token_can_be_replaced_in_its_file() {
    let mut gateway = Gateway::prepare(&[]);
    gateway.unset("ADMIN_TOKEN");
    gateway.spawn();
    gateway.ready().await;
    let file = gateway.dir.path().join("data/admin.token");
    let generated = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    for (times, token) in [(1, OTHER_TOKEN), (2, "yet-another-admin-token-0123456789")] {
        std::fs::write(&file, token).unwrap();
        until_in_effect(&gateway, times, token).await;
        assert_eq!(statuses(&gateway, &generated).await, (401, 401));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secret_keys_in_files_are_rotated_without_a_restart() {
    let mut bed = Bed::prepare(Backend::Postgres, &[]).await;
    let dir = bed.gateway.dir.path().to_owned();
    let (current, previous) = (dir.join("key"), dir.join("previous-key"));
    std::fs::write(&current, OLD).unwrap();
    // Nothing to replace yet: the same key twice is one key.
    std::fs::write(&previous, OLD).unwrap();
    bed.gateway.set("TOLLGATE_SECRET_KEY_FILE", current.to_str().unwrap());
    bed.gateway.set("TOLLGATE_SECRET_KEY_PREVIOUS_FILE", previous.to_str().unwrap());
    bed.restart().await;
    let price =
        json!({"m": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0}});
    bed.gateway.prices(price).await;
    let user = bed.user().await;
    bed.provider("one", "credential-one", 1).await;
    let first = bed.key_ids().await;

    // A key that does not open the stored texts is not accepted.
    std::fs::write(&previous, "a-key-of-somebody-else-0123456789").unwrap();
    std::fs::write(&current, "a-key-of-somebody-else-0123456789").unwrap();
    bed.gateway.log_shows("the new secret keys do not fit").await;
    assert_eq!(bed.credential_used(&user).await, Ok("credential-one".to_owned()));
    std::fs::write(&previous, OLD).unwrap();
    std::fs::write(&current, NEW).unwrap();
    let status = bed.done(&["secret", "status"]);
    let ids: Vec<&str> =
        status.lines().filter_map(|line| line.strip_prefix("key ")?.split(':').next()).collect();
    bed.gateway.log_shows(&ids.join(", ")).await;
    bed.done(&["secret", "rotate"]);
    assert_ne!(bed.key_ids().await, first);
    bed.provider("two", "credential-two", 0).await;
    assert_eq!(bed.key_ids().await.len(), 1);
    assert_eq!(bed.credential_used(&user).await, Ok("credential-two".to_owned()));
    std::fs::write(&previous, NEW).unwrap();
    bed.restart().await;
    assert_eq!(bed.credential_used(&user).await, Ok("credential-two".to_owned()));
    let log = bed.gateway.log();
    assert!(!log.contains(OLD) && !log.contains(NEW), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_address_and_a_credential_of_systemd_come_from_files() {
    let mut gateway = Gateway::prepare(&[]);
    let credentials = gateway.dir.path().join("credentials");
    std::fs::create_dir(&credentials).unwrap();
    let database = postgres::fresh_database();
    std::fs::write(credentials.join("database-url"), format!("{database}\n")).unwrap();
    std::fs::write(credentials.join("token"), OTHER_TOKEN).unwrap();
    gateway.unset("ADMIN_TOKEN");
    gateway.set("CREDENTIALS_DIRECTORY", credentials.to_str().unwrap());
    gateway.set("DATABASE_URL_FILE", "credential:database-url");
    gateway.set("ADMIN_TOKEN_FILE", "credential:token");
    gateway.spawn();
    gateway.ready().await;
    assert_eq!(statuses(&gateway, OTHER_TOKEN).await, (200, 200));
    assert!(!gateway.dir.path().join("data/tollgate.db").exists());
    let (good, said) = gateway.check();
    assert!(good && said.contains("database.url_file: credential:database-url"), "{said}");
    assert!(!said.contains(&database) && !said.contains(OTHER_TOKEN), "{said}");
    // A change that needs a restart is reported as such.
    std::fs::write(credentials.join("database-url"), postgres::fresh_database()).unwrap();
    let log = gateway.log_shows("restart to apply it").await;
    assert!(log.contains("database.url"), "{log}");
    assert_eq!(statuses(&gateway, OTHER_TOKEN).await, (200, 200));
}

/// A key that is lost for good must not leave a database that no gateway starts on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_of_a_lost_key_are_forgotten_and_entered_again() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let mut bed = Bed::start(backend, &[]).await;
        let (user, id) = (bed.user().await, bed.provider("one", "credential-one", 1).await);
        bed.gateway
            .admin(
                "notifications/updateNotificationSettingsAction",
                json!({"webhookSecret": "a-secret-for-webhooks"}),
            )
            .await;
        assert!(bed.done(&["secret", "forget"]).contains("nothing to remove"));
        let (done, said) = bed.gateway.run(&["secret", "forget", "--yes"]);
        assert!(!done && said.contains("so the secret key is not lost"), "{said}");
        bed.gateway.kill();
        let key = bed.gateway.dir.path().join("data/secret.key");
        std::fs::remove_file(&key).unwrap();
        let (before, said) = (bed.ciphers().await, bed.done(&["secret", "forget"]));
        assert!(said.contains(&format!("the credential of provider {id} (one)")), "{said}");
        assert!(said.contains("the signing secret of webhooks"), "{said}");
        assert_eq!(bed.ciphers().await, before, "only listed");
        assert!(bed.done(&["secret", "forget", "--yes"]).starts_with("removed:\n"));
        assert!(!key.exists());
        bed.restart().await;
        the_missing_credential_is_named(&bed, &user, id).await;
        let change = json!({"providerId": id, "key": "credential-new"});
        bed.gateway.admin("providers/editProvider", change).await;
        assert_eq!(bed.credential_used(&user).await, Ok("credential-new".to_owned()));
        let audit = bed.gateway.admin("audit/getAuditLog", json!({})).await.to_string();
        assert!(audit.contains("secret.forget"), "{audit}");
    }
}

/// The others' formats cannot express the request, and the client is not blamed for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_credential_is_named_if_the_others_cannot_take_the_request() {
    let bed = Bed::start(Backend::Sqlite, &[("TOLLGATE_SECRET_KEY", OLD)]).await;
    let user = bed.user().await;
    let ask = async |body: serde_json::Value| {
        let ask = bed.gateway.client.post(format!("{}/v1/responses", bed.gateway.proxy));
        let answer = ask.header("x-api-key", &user).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let own = bed.gateway.provider("responses", &bed.upstream.url, json!({"name": "own"})).await;
    bed.provider("other", "another-credential", 9).await;
    let stored = json!({"model": "m", "input": "x", "previous_response_id": "resp_1"});
    assert_eq!(ask(stored.clone()).await.0, 200);
    bed.meddle("UPDATE providers SET key_cipher = 'v2:AAAA' WHERE name = 'own'").await;
    bed.gateway.readiness_shows(|_, parts| super::is_degraded(parts)).await;
    let (status, said) = ask(stored.clone()).await;
    assert!(status == 503 && said.contains("enter the credential of a provider"), "{said}");
    // What the other one can express, it serves.
    assert_eq!(ask(json!({"model": "m", "input": "x"})).await.0, 200);
    // Without the first provider it is the request.
    bed.gateway.admin("providers/removeProvider", json!({"providerId": own})).await;
    assert_eq!(ask(stored).await.0, 400);
}

/// It is not a matter of the key's groups, and an operator learns what to do.
async fn the_missing_credential_is_named(bed: &Bed, user: &str, id: i64) {
    let body =
        json!({"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}]});
    let ask = bed.gateway.client.post(format!("{}/v1/messages", bed.gateway.proxy));
    let answer = ask.header("x-api-key", user).json(&body).send().await.unwrap();
    let (status, wait) = (answer.status().as_u16(), answer.headers().contains_key("retry-after"));
    let answer: serde_json::Value = answer.json().await.unwrap();
    assert_eq!((status, wait), (503, true), "{answer}");
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("an administrator must enter the credential of a provider"), "{said}");
    let row = bed.gateway.logs(1).await.swap_remove(0);
    let step = &row["decisionChain"][0];
    assert_eq!((&step["providerName"], &step["step"]), (&json!("one"), &json!("disabled")));
    assert_eq!(step["detail"], "its stored credential cannot be opened: enter it again", "{row}");
    let named = format!("the credential of provider {id} (one) is missing: enter it again");
    for command in ["check", "doctor"] {
        let said = bed.gateway.run(&[command]).1;
        assert!(said.contains(&named), "{command}: {said}");
    }
    assert!(bed.gateway.log().contains(&named));
    let (_, parts) = bed.gateway.readiness().await;
    assert!(super::is_degraded(&parts) && parts["providers"] != "ok", "{parts}");
    let overview = bed.gateway.admin("overview/getOverviewData", json!({})).await;
    let problems = overview["attention"]["problems"].as_array().unwrap();
    let kinds: Vec<&str> = problems.iter().map(|found| found["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["no_provider_usable", "provider_without_credential"], "{problems:?}");
    assert!(problems.iter().all(|found| found["message"].to_string().contains(&named)));
    let params = &problems[1]["params"];
    assert_eq!((&params["providerId"], &params["providerName"]), (&json!(id), &json!("one")));
}
