//! A sealed credential is bound to one provider: it does not open for another.

use serde_json::json;
use tollgate::store::Backend;

use super::{Bed, OLD, is_degraded, on_both, sealed_by_the_first_release};

on_both!(
    a_credential_that_was_moved_to_another_provider_is_refused_and_the_others_serve,
    credentials_of_an_earlier_version_are_bound_at_the_next_opportunity,
);

const MOVE: &str = "UPDATE providers SET key_cipher = (SELECT key_cipher FROM providers \
    WHERE name = 'dear') WHERE name = 'mine'";

async fn a_credential_that_was_moved_to_another_provider_is_refused_and_the_others_serve(
    backend: Backend,
) {
    let mut bed = Bed::start(backend, &[("TOLLGATE_SECRET_KEY", OLD)]).await;
    let user = bed.user().await;
    bed.provider("dear", "the-dear-credential", 2).await;
    let mine = bed.provider("mine", "my-own-credential", 1).await;
    assert_eq!(bed.credential_used(&user).await, Ok("my-own-credential".to_owned()));
    // While it runs, and at a start.
    bed.meddle(MOVE).await;
    for at_start in [false, true] {
        if at_start {
            bed.restart().await;
        }
        bed.gateway.readiness_shows(|ready, parts| ready && is_degraded(parts)).await;
        let (_, parts) = bed.gateway.readiness().await;
        let problem = parts["snapshot"].as_str().unwrap().to_owned();
        assert!(
            problem.contains(&format!("provider {mine} (mine) was altered, or moved here")),
            "{problem}"
        );
        assert_eq!(
            bed.credential_used(&user).await,
            Ok("the-dear-credential".to_owned()),
            "by the provider it belongs to"
        );
        bed.gateway.log_shows("a provider is left out").await;
        bed.gateway.metric_shows("tollgate_providers_left_out", |count| count == 1.0).await;
    }
    let (good, said) = bed.gateway.check();
    assert!(
        !good && said.contains("(mine) was altered, or moved here from another provider"),
        "{said}"
    );
    // Only the moved one exists: the gateway starts nevertheless, and it can be fixed.
    bed.meddle("UPDATE providers SET deleted_at = 1 WHERE name = 'dear'").await;
    bed.restart().await;
    assert!(bed.credential_used(&user).await.is_err());
    bed.gateway
        .admin("providers/editProvider", json!({"providerId": mine, "key": "entered-again"}))
        .await;
    assert_eq!(bed.credential_used(&user).await, Ok("entered-again".to_owned()));
    let (_, parts) = bed.gateway.readiness().await;
    assert!(!is_degraded(&parts), "{parts}");
    bed.gateway.metric_shows("tollgate_providers_left_out", |count| count == 0.0).await;
    assert!(bed.gateway.check().0);
}

async fn credentials_of_an_earlier_version_are_bound_at_the_next_opportunity(backend: Backend) {
    let mut bed = Bed::start(backend, &[("TOLLGATE_SECRET_KEY", OLD)]).await;
    let user = bed.user().await;
    let first = bed.provider("first", "replaced", 1).await;
    bed.provider("second", "replaced", 2).await;
    let secret = json!({"webhookSecret": "a-secret-for-webhooks"});
    bed.gateway.admin("notifications/updateNotificationSettingsAction", secret).await;
    for (table, column, text) in [
        ("providers", "key_cipher", "an-older-credential"),
        ("notification_settings", "secret_cipher", "a-secret-for-webhooks"),
    ] {
        bed.meddle(&format!(
            "UPDATE {table} SET {column} = '{}'",
            sealed_by_the_first_release(OLD, text)
        ))
        .await;
    }
    bed.restart().await;
    assert_eq!(bed.credential_used(&user).await, Ok("an-older-credential".to_owned()));
    if backend == Backend::Postgres {
        // Another node may be of a version that cannot open the new form: nothing is changed
        // without a request.
        assert_eq!(bed.key_ids().await, ["v1"]);
        bed.gateway.log_shows("is not bound to their providers").await;
        let (good, said) = bed.gateway.check();
        assert!(
            good && said
                .contains("3 stored credentials are sealed in the form of an earlier version"),
            "{said}"
        );
        bed.gateway
            .admin("providers/editProvider", json!({"providerId": first, "weight": 2}))
            .await;
        let forms: Vec<String> =
            bed.ciphers().await.into_iter().map(|(_, text)| text[..3].to_owned()).collect();
        assert_eq!(forms, ["v2:", "v1:", "v1:"], "the write bound what it wrote");
        let said = bed.done(&["secret", "rotate"]);
        assert!(said.contains("re-encrypted 2 of 3 stored texts"), "{said}");
    } else {
        bed.gateway.log_shows("bound stored credentials to their providers").await;
    }
    let ids = bed.key_ids().await;
    assert!(ids.len() == 1 && ids[0] != "v1", "{ids:?}");
    let (good, said) = bed.gateway.check();
    assert!(good && !said.contains("earlier version"), "{said}");
    bed.restart().await;
    assert_eq!(bed.credential_used(&user).await, Ok("an-older-credential".to_owned()));
}

/// A hand-over: the previous process may be of a version that cannot open the new form.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_leaves_the_old_process_what_it_can_open() {
    let mut bed = Bed::start(Backend::Sqlite, &[("TOLLGATE_SECRET_KEY", OLD)]).await;
    bed.provider("only", "replaced", 1).await;
    let text = sealed_by_the_first_release(OLD, "an-older-credential");
    bed.meddle(&format!("UPDATE providers SET key_cipher = '{text}'")).await;
    let mut old = bed.gateway.upgrade().await;
    bed.gateway.ready().await;
    assert_eq!(bed.key_ids().await, ["v1"]);
    let _ = old.kill();
    let _ = old.wait();
}
