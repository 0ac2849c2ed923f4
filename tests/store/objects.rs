//! Batches and files of keys: found by their own key, listed page by page, and billed for good.

use tollgate::domain::batch::BatchAsk;
use tollgate::domain::ids::{CredentialId, KeyId, ProviderId};
use tollgate::store::{AccountObject, ObjectPage};

use super::make::NOON;
use super::{Place, on_both};

on_both!(an_object_is_its_keys_and_keeps_what_is_known_for_good, pages_go_both_ways);

const FILES: &str = "files";

fn object(key: i64, id: &str, at_ms: i64) -> AccountObject {
    AccountObject {
        key: KeyId(key),
        id: id.to_owned(),
        collection: FILES,
        provider: ProviderId(3),
        credential: CredentialId(2),
        created_at: NOON.plus_ms(at_ms),
        is_open: true,
        batch: Some("batch".to_owned()),
        body: format!("{{\"id\":\"{id}\"}}"),
        requests: Some(BatchAsk {
            path: "/v1/responses".to_owned(),
            models: vec!["m".to_owned()],
            ..BatchAsk::default()
        }),
    }
}

async fn an_object_is_its_keys_and_keeps_what_is_known_for_good(place: Place) {
    let store = place.ready().await;
    let one = object(1, "a", 0);
    store.put_object(&one).await.unwrap();
    let find = async |key, collection| store.object(KeyId(key), collection, "a").await.unwrap();
    assert_eq!(find(1, FILES).await, Some(one.clone()));
    assert_eq!(find(2, FILES).await, None);
    assert_eq!(find(1, "batches").await, None);
    let later = AccountObject {
        created_at: NOON.plus_ms(9),
        is_open: false,
        batch: None,
        body: "{}".to_owned(),
        requests: None,
        ..one.clone()
    };
    store.put_object(&later).await.unwrap();
    let billed = AccountObject { is_open: false, body: "{}".to_owned(), ..one.clone() };
    assert_eq!(find(1, FILES).await, Some(billed.clone()));
    store.put_object(&one).await.unwrap();
    let body = one.body.clone();
    assert_eq!(find(1, FILES).await, Some(AccountObject { body, ..billed }));
    store.add_object(&AccountObject { body: "[]".to_owned(), ..one.clone() }).await.unwrap();
    assert_ne!(find(1, FILES).await.unwrap().body, "[]");
    let open = AccountObject { id: "b".to_owned(), ..one.clone() };
    store.add_object(&open).await.unwrap();
    store.close_object(KeyId(1), "b").await.unwrap();
    let closed = store.object(KeyId(1), FILES, "b").await.unwrap();
    assert_eq!(closed, Some(AccountObject { is_open: false, ..open }));
    store.delete_object(KeyId(2), "a").await.unwrap();
    assert!(find(1, FILES).await.is_some());
    store.delete_object(KeyId(1), "a").await.unwrap();
    assert_eq!(find(1, FILES).await, None);
}

async fn pages_go_both_ways(place: Place) {
    let store = place.ready().await;
    // Two of each millisecond.
    for (at, id) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        store.put_object(&object(1, id, i64::try_from(at / 2).unwrap())).await.unwrap();
    }
    store.put_object(&object(2, "z", 0)).await.unwrap();
    for (from, is_before, ascending, expected) in [
        (None, false, false, "ed"),
        (None, false, true, "ab"),
        (Some("d"), false, false, "cb"),
        (Some("d"), false, true, "e"),
        (Some("b"), true, false, "dc"),
        (Some("e"), true, false, ""),
        (Some("none"), false, false, ""),
    ] {
        let page = ObjectPage { collection: FILES, from, is_before, ascending, most: 2 };
        let bodies = store.objects(KeyId(1), page).await.unwrap();
        let ids: String = bodies.iter().map(|body| &body[7..8]).collect();
        assert_eq!(ids, expected, "{page:?}");
    }
}
