//! Configuration writers are serialised: a rule that counts rows holds even if two violate it at
//! once.

use tollgate::domain::ids::{KeyId, UserId};
use tollgate::store::Store;

use super::make::{key, plain_user};
use super::{Place, on_both};

on_both!(the_last_usable_key_survives_a_race, versions_count_every_commit_of_many_writers);

/// Disables the key unless it is the user's last enabled one. Returns whether it did.
async fn disable(store: &Store, user: UserId, id: KeyId) -> bool {
    let mut tx = store.begin().await.unwrap();
    let keys = tx.keys_of(user).await.unwrap();
    // gives the other writer every chance to read the same
    tokio::task::yield_now().await;
    if keys.iter().filter(|key| key.is_enabled).count() < 2 {
        return false;
    }
    let mut key = tx.key(id).await.unwrap().unwrap();
    key.is_enabled = false;
    tx.update_key(&key).await.unwrap();
    tx.commit().await.unwrap();
    true
}

async fn the_last_usable_key_survives_a_race(place: Place) {
    // two processes
    let (left, right) = (place.ready().await, place.open().await);
    for round in 0..10 {
        let mut tx = left.begin().await.unwrap();
        let user = tx.insert_user(&plain_user(&format!("u{round}"))).await.unwrap();
        let one = tx.insert_key(&key(user, "one")).await.unwrap();
        let two = tx.insert_key(&key(user, "two")).await.unwrap();
        tx.commit().await.unwrap();
        let done = tokio::join!(disable(&left, user, one), disable(&right, user, two));
        assert!(done.0 ^ done.1, "round {round}: {done:?}");
    }
}

async fn versions_count_every_commit_of_many_writers(place: Place) {
    let stores = [place.ready().await, place.open().await];
    let add = async |store: &Store, name: &str| {
        for n in 0..10 {
            let mut tx = store.begin().await.unwrap();
            tx.insert_user(&plain_user(&format!("{name}{n}"))).await.unwrap();
            tx.commit().await.unwrap();
        }
    };
    tokio::join!(
        add(&stores[0], "a"),
        add(&stores[1], "b"),
        add(&stores[0], "c"),
        add(&stores[1], "d")
    );
    let everything = stores[0].load_all().await.unwrap();
    assert_eq!((everything.version, everything.users.len()), (40, 40));
}
