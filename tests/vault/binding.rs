//! A sealed credential is bound to one provider: it does not open for another.

use serde_json::json;
use tollgate::store::Backend;

use super::{Bed, OLD, is_degraded, on_both};

on_both!(a_credential_that_was_moved_to_another_provider_is_refused_and_the_others_serve,);

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
