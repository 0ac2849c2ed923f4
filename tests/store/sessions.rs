//! Logins of the administration.

use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, UserId};
use tollgate::store::{StoreError, WebSession};

use super::make::{NOON, key, plain_user};
use super::{Place, on_both};

on_both!(sessions_are_found_and_revoked);

async fn sessions_are_found_and_revoked(place: Place) {
    let store = place.ready().await;
    let mut tx = store.begin().await.unwrap();
    let user = tx.insert_user(&plain_user("u")).await.unwrap();
    let one = tx.insert_key(&key(user, "one")).await.unwrap();
    let two = tx.insert_key(&key(user, "two")).await.unwrap();
    tx.commit().await.unwrap();

    let session = |n: u8, key_id: Option<KeyId>, user_id: Option<UserId>| WebSession {
        hash: [n; 32],
        key_id,
        user_id,
        token_check: key_id.is_none().then_some([n; 32]),
        created_at: NOON,
        expires_at: NOON.plus_ms(i64::from(n)),
    };
    let all = [
        session(0, None, None),
        session(1, Some(one), Some(user)),
        session(2, Some(one), Some(user)),
        session(3, Some(two), Some(user)),
    ];
    for session in &all {
        store.insert_web_session(session).await.unwrap();
        assert_eq!(store.web_session(&session.hash).await.unwrap().as_ref(), Some(session));
    }
    let again = store.insert_web_session(&all[1]).await.unwrap_err();
    assert!(matches!(again, StoreError::Constraint { .. }), "{again}");
    let foreign = store.insert_web_session(&session(9, Some(KeyId(99)), None)).await.unwrap_err();
    assert!(matches!(foreign, StoreError::Constraint { .. }), "{foreign}");

    store.delete_web_session(&all[1].hash).await.unwrap();
    store.delete_web_session(&all[1].hash).await.unwrap();
    assert_eq!(store.web_session(&all[1].hash).await.unwrap(), None);
    assert_eq!(store.delete_web_sessions_of_key(one).await.unwrap(), 1);
    assert_eq!(store.delete_web_sessions_of_user(user).await.unwrap(), 1);
    assert_eq!(store.prune_web_sessions(Timestamp(NOON.0 - 1)).await.unwrap(), 0);
    assert_eq!(store.prune_web_sessions(NOON).await.unwrap(), 1);
    assert_eq!(store.web_session(&all[0].hash).await.unwrap(), None);
}
