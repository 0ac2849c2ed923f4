//! `tollgate secret rotate`: online and offline, on both databases, interrupted and repeated.

use serde_json::json;
use tollgate::store::Backend;

use super::{Bed, NEW, OLD, is_degraded, on_both};
use crate::support::gateway::Gateway;
use crate::support::wait;

on_both!(
    configured_keys_are_rotated_while_the_gateway_serves,
    a_text_that_opens_with_neither_key_stops_the_rotation,
    rotations_and_writes_at_once_lose_nothing,
    several_keys_of_a_provider_are_rotated_with_it,
);

async fn furnish(bed: &Bed) -> String {
    let user = bed.user().await;
    bed.provider("one", "credential-one", 1).await;
    bed.provider("two", "credential-two", 2).await;
    let secret = json!({"webhookSecret": "a-secret-for-webhooks"});
    bed.gateway.admin("notifications/updateNotificationSettingsAction", secret).await;
    user
}

async fn configured_keys_are_rotated_while_the_gateway_serves(backend: Backend) {
    let mut bed = Bed::start(backend, &[("TOLLGATE_SECRET_KEY", OLD)]).await;
    let user = furnish(&bed).await;
    let before = bed.key_ids().await;
    let sealed = bed.ciphers().await.into_iter().find(|(name, _)| name == "one").unwrap().1;
    // Both keys are there, and everything is still sealed with the old one.
    bed.gateway.set("TOLLGATE_SECRET_KEY", NEW);
    bed.gateway.set("TOLLGATE_SECRET_KEY_PREVIOUS", OLD);
    bed.restart().await;
    bed.provider("three", "credential-three", 3).await;
    assert_eq!(
        bed.key_ids().await,
        before,
        "a gateway with the old key alone could not open another"
    );
    let (good, said) = bed.gateway.check();
    assert!(
        good && said.contains("4 stored credentials are sealed with an older secret key"),
        "{said}"
    );

    let said = bed.done(&["secret", "rotate"]);
    assert!(said.contains("re-encrypted 4 of 4 stored texts"), "{said}");
    let after = bed.key_ids().await;
    assert!(after.len() == 1 && after != before, "{after:?}");
    assert!(
        bed.done(&["secret", "status"]).contains(&format!("texts sealed with key {}: 4", after[0]))
    );
    assert_eq!(
        bed.credential_used(&user).await,
        Ok("credential-one".to_owned()),
        "the running gateway goes on"
    );
    bed.provider("four", "credential-four", 0).await;
    assert_eq!(bed.key_ids().await, after, "new texts are sealed with the new key");
    assert_eq!(bed.credential_used(&user).await, Ok("credential-four".to_owned()));
    let said = bed.done(&["secret", "rotate"]);
    assert!(said.contains("re-encrypted 0 of 5 stored texts"), "again: {said}");

    // The old key is removed permanently.
    bed.gateway.unset("TOLLGATE_SECRET_KEY_PREVIOUS");
    bed.restart().await;
    assert_eq!(bed.credential_used(&user).await, Ok("credential-four".to_owned()));
    let (good, said) = bed.gateway.check();
    assert!(good && !said.contains("warning: 5 stored") && !said.contains(NEW), "{said}");
    let audit = bed.gateway.admin("audit/getAuditLog", json!({"action": "secret.rotate"})).await;
    assert_eq!(audit["entries"][0]["actor"], "command line", "{audit}");
    // A text that the old key sealed no longer opens.
    bed.meddle(&format!("UPDATE providers SET key_cipher = '{sealed}' WHERE name = 'one'")).await;
    bed.gateway.readiness_shows(|_, parts| is_degraded(parts)).await;
}

async fn several_keys_of_a_provider_are_rotated_with_it(backend: Backend) {
    let mut bed = Bed::start(backend, &[("TOLLGATE_SECRET_KEY", OLD)]).await;
    let user = bed.user().await;
    let id = bed.provider("many", "credential-one", 1).await;
    let further = json!([{"name": "b", "key": "credential-two"}]);
    bed.gateway
        .admin("providers/editProvider", json!({"providerId": id, "credentials": further}))
        .await;
    bed.gateway.set("TOLLGATE_SECRET_KEY", NEW);
    bed.gateway.set("TOLLGATE_SECRET_KEY_PREVIOUS", OLD);
    bed.restart().await;
    let said = bed.done(&["secret", "rotate"]);
    assert!(said.contains("re-encrypted 1 of 1 stored texts"), "{said}");
    bed.gateway.unset("TOLLGATE_SECRET_KEY_PREVIOUS");
    bed.restart().await;
    let mut used = [bed.credential_used(&user).await, bed.credential_used(&user).await];
    used.sort();
    assert_eq!(used, ["credential-one", "credential-two"].map(|key| Ok(key.to_owned())));
    for (_, cipher) in bed.ciphers().await {
        assert!(!cipher.contains("credential"), "{cipher}");
    }
}

async fn a_text_that_opens_with_neither_key_stops_the_rotation(backend: Backend) {
    let mut bed = Bed::start(backend, &[("TOLLGATE_SECRET_KEY", OLD)]).await;
    furnish(&bed).await;
    let strange = "v2:0123456789abcdef:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    bed.meddle(&format!("UPDATE providers SET key_cipher = '{strange}' WHERE name = 'two'")).await;
    bed.gateway.kill();
    let before = bed.ciphers().await;
    bed.gateway.set("TOLLGATE_SECRET_KEY", NEW);
    bed.gateway.set("TOLLGATE_SECRET_KEY_PREVIOUS", OLD);
    for arguments in [&["secret", "rotate"][..], &["secret", "rotate", "--distributed"]] {
        let (good, said) = bed.gateway.run(arguments);
        assert!(
            !good
                && said.contains("nothing was changed")
                && said.contains("(two) was sealed with the secret key 0123456789abcdef"),
            "{said}"
        );
        assert!(!said.contains("(one)"), "{said}");
        assert_eq!(bed.ciphers().await, before);
    }
    // Without the old key at all, none opens; with it in place of the new one, its own do.
    bed.gateway.unset("TOLLGATE_SECRET_KEY_PREVIOUS");
    let (good, said) = bed.gateway.run(&["secret", "rotate"]);
    assert!(!good && said.contains("(one) was sealed with the secret key"), "{said}");
    assert_eq!(bed.ciphers().await, before);
    // Entered again, it is done.
    bed.gateway.set("TOLLGATE_SECRET_KEY_PREVIOUS", OLD);
    bed.gateway.spawn();
    bed.gateway.ready().await;
    let providers = bed.gateway.admin("providers/getProviders", json!({})).await;
    let two =
        providers.as_array().unwrap().iter().find(|p| p["name"] == "two").unwrap()["id"].clone();
    bed.gateway
        .admin("providers/editProvider", json!({"providerId": two, "key": "entered-again"}))
        .await;
    bed.done(&["secret", "rotate"]);
}

async fn rotations_and_writes_at_once_lose_nothing(backend: Backend) {
    let mut bed = Bed::start(backend, &[("TOLLGATE_SECRET_KEY", OLD)]).await;
    let user = furnish(&bed).await;
    bed.gateway.set("TOLLGATE_SECRET_KEY", NEW);
    bed.gateway.set("TOLLGATE_SECRET_KEY_PREVIOUS", OLD);
    bed.restart().await;
    let (first, second) = (&bed, &bed);
    std::thread::scope(|scope| {
        let rotations = [(); 3].map(|()| scope.spawn(|| first.gateway.run(&["secret", "rotate"])));
        let writes = async {
            for n in 0..12 {
                second.provider(&format!("meanwhile-{n}"), &format!("credential-{n}"), 5).await;
            }
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(writes));
        for rotation in rotations {
            let (good, said) = rotation.join().unwrap();
            assert!(good, "{said}");
        }
    });
    let ids = bed.key_ids().await;
    assert_eq!(ids.len(), 1, "{ids:?}");
    bed.gateway.unset("TOLLGATE_SECRET_KEY_PREVIOUS");
    bed.restart().await;
    assert_eq!(
        bed.gateway.admin("providers/getProviders", json!({})).await.as_array().unwrap().len(),
        14
    );
    let (_, parts) = bed.gateway.readiness().await;
    assert!(!is_degraded(&parts), "{parts}");
    assert_eq!(bed.credential_used(&user).await, Ok("credential-one".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_data_directorys_key_is_replaced_while_the_gateway_serves() {
    let mut bed = Bed::start(Backend::Sqlite, &[]).await;
    let user = furnish(&bed).await;
    let file = bed.gateway.dir.path().join("data/secret.key");
    let (first, old) = (bed.key_ids().await, std::fs::read_to_string(&file).unwrap());
    bed.done(&["secret", "rotate"]);
    let (second, new) = (bed.key_ids().await, std::fs::read_to_string(&file).unwrap());
    assert!(
        first != second && second.len() == 1 && old != new && new.len() == 64,
        "{first:?} {second:?}"
    );
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    bed.provider("three", "credential-three", 0).await;
    assert_eq!(bed.key_ids().await, second, "the running gateway has the new key");
    assert_eq!(bed.credential_used(&user).await, Ok("credential-three".to_owned()));

    // Interrupted before anything was sealed: the next run continues with the existing new key.
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let third = "3".repeat(64);
    let several = |a: &str, b: &str| format!("tollgate-secret-keys 1\n{}\n{}\n", hex(a), hex(b));
    std::fs::write(&file, several(&third, &new)).unwrap();
    bed.restart().await;
    bed.provider("four", "credential-four", -1).await;
    assert_eq!(bed.key_ids().await, second);
    bed.done(&["secret", "rotate"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), third);
    assert_ne!(bed.key_ids().await, second);
    // Interrupted after everything was sealed: the next run only removes the old key.
    let sealed = bed.ciphers().await;
    std::fs::write(&file, several(&third, &new)).unwrap();
    assert!(bed.done(&["secret", "rotate"]).contains("re-encrypted 0 of 5"));
    assert_eq!(
        (std::fs::read_to_string(&file).unwrap(), bed.ciphers().await),
        (third.clone(), sealed)
    );
    bed.restart().await;
    assert_eq!(bed.credential_used(&user).await, Ok("credential-four".to_owned()));

    // Killed while it waits for its turn: nothing was changed.
    let mut rotation = {
        let mut holder = bed.connect().await;
        sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut holder).await.unwrap();
        let mut rotation = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["secret", "rotate"])
            .env("TOLLGATE_DATA_DIR", bed.gateway.dir.path().join("data"))
            .spawn()
            .unwrap();
        // Sleeps: nothing shows that it waits; a lock of SQLite has no queue.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        rotation.kill().unwrap();
        rotation
    };
    rotation.wait().unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), third);
    bed.done(&["secret", "rotate"]);
    assert_eq!(bed.credential_used(&user).await, Ok("credential-four".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_on_one_database_go_on_through_a_rotation() {
    let bed = Bed::start(Backend::Postgres, &[]).await;
    let user = furnish(&bed).await;
    let database = bed.database.clone().unwrap();
    let file = bed.gateway.dir.path().join("data/secret.key");
    let mut other = Gateway::prepare(&[("DATABASE_URL", &database)]);
    let copy = other.dir.path().join("data/secret.key");
    std::fs::create_dir(other.dir.path().join("data")).unwrap();
    std::fs::copy(&file, &copy).unwrap();
    other.spawn();
    other.ready().await;
    let before = bed.ciphers().await;

    let said = bed.done(&["secret", "rotate", "--distributed"]);
    assert!(said.contains("nothing is sealed with it yet"), "there was none to distribute: {said}");
    assert!(bed.done(&["secret", "rotate"]).contains("--distributed"));
    assert_eq!(bed.ciphers().await, before);
    std::fs::copy(&file, &copy).unwrap();
    bed.done(&["secret", "rotate", "--distributed"]);
    assert_ne!(bed.ciphers().await, before);
    // Both serve, and each opens what the other seals.
    bed.provider("three", "credential-three", 0).await;
    let shown = async || other.admin("providers/getProviders", json!({})).await.to_string();
    assert!(shown().await.contains("cred…hree"), "{}", shown().await);
    other.readiness_shows(|ready, parts| ready && !is_degraded(parts)).await;
    other
        .provider(
            "native",
            &bed.upstream.url,
            json!({"name": "four", "key": "credential-four", "priority": -1}),
        )
        .await;
    bed.gateway.metric_shows("tollgate_snapshot_version", |_| true).await;
    wait::until(
        || bed.gateway.log(),
        async || bed.credential_used(&user).await == Ok("credential-four".to_owned()),
    )
    .await;
    assert_eq!(bed.key_ids().await.len(), 1);
}
