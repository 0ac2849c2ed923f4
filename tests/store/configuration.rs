//! Users, keys, providers, prices, settings: written and read back, including changed rows and
//! deleted ones.

use serde_json::json;
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, ProviderId, UserId};
use tollgate::domain::price::{CostKind, Price, PriceSource, Rate, Rates};
use tollgate::domain::settings::SystemSettings;
use tollgate::domain::usage::ServiceTier;
use tollgate::store::{AuditEntry, StoreError};

use super::make::{NOON, key, plain_user, provider, user};
use super::{Place, on_both};

on_both!(
    users_round_trip,
    keys_round_trip,
    providers_round_trip,
    prices_round_trip_and_replace,
    settings_and_versions,
    names_and_hashes_are_unique_where_they_must_be,
    what_is_dropped_without_commit_never_happened,
    thousands_of_prices_go_in_at_once,
    audit_entries_are_kept,
);

/// Neither has `PartialEq`; their `Debug` shows every field but secrets.
fn same(left: &impl std::fmt::Debug, right: &impl std::fmt::Debug) {
    assert_eq!(format!("{left:#?}"), format!("{right:#?}"));
}

async fn users_round_trip(place: Place) {
    let store = place.ready().await;
    let mut tx = store.begin().await.unwrap();
    let mut full = user();
    let mut plain = plain_user("");
    full.id = tx.insert_user(&full).await.unwrap();
    plain.id = tx.insert_user(&plain).await.unwrap();
    assert!(plain.id > full.id && full.id.0 > 0);
    same(&tx.user(full.id).await.unwrap().unwrap(), &full);
    tx.commit().await.unwrap();
    same(&store.load_all().await.unwrap().users, &[&full, &plain]);

    let mut tx = store.begin().await.unwrap();
    plain.name = "changed".to_owned();
    full.deleted_at = Some(NOON);
    tx.update_user(&plain).await.unwrap();
    tx.update_user(&full).await.unwrap();
    same(&tx.users().await.unwrap(), &[&plain]);
    assert!(tx.user(full.id).await.unwrap().is_none());
    let missing = tx
        .update_user(&tollgate::domain::user::User { id: UserId(99), ..plain.clone() })
        .await
        .unwrap_err();
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    tx.commit().await.unwrap();
}

async fn keys_round_trip(place: Place) {
    let store = place.ready().await;
    let mut tx = store.begin().await.unwrap();
    let owner = tx.insert_user(&plain_user("owner")).await.unwrap();
    let other = tx.insert_user(&plain_user("other")).await.unwrap();
    let mut keys = Vec::new();
    for name in ["default", "zwei", "\u{1f511}"] {
        let mut key = key(owner, name);
        key.id = tx.insert_key(&key).await.unwrap();
        keys.push(key);
    }
    let foreign = tx.insert_key(&key(other, "default")).await.unwrap();
    same(&tx.keys_of(owner).await.unwrap(), &keys);
    same(&tx.key(keys[1].id).await.unwrap().unwrap(), &keys[1]);
    assert_eq!(tx.key(keys[1].id).await.unwrap().unwrap().hash, keys[1].hash);

    keys[2].expires_at = None;
    keys[2].limits = tollgate::domain::limits::Limits::default();
    tx.update_key(&keys[2]).await.unwrap();
    keys[0].deleted_at = Some(NOON);
    tx.update_key(&keys[0]).await.unwrap();
    let wanted = [keys[2].id, keys[0].id, keys[1].id, keys[2].id, KeyId(999)];
    same(&tx.keys(&wanted).await.unwrap(), &[&keys[1], &keys[2]]);
    let many: Vec<KeyId> = (-600..600).map(KeyId).collect();
    assert_eq!(tx.keys(&many).await.unwrap().len(), 3);
    assert!(tx.keys(&[]).await.unwrap().is_empty());
    assert!(tx.key(keys[0].id).await.unwrap().is_none());
    tx.commit().await.unwrap();
    let ids: Vec<KeyId> = store.load_all().await.unwrap().keys.iter().map(|key| key.id).collect();
    assert_eq!(ids, [keys[1].id, keys[2].id, foreign]);
}

async fn providers_round_trip(place: Place) {
    let store = place.ready().await;
    let mut tx = store.begin().await.unwrap();
    let mut provider = provider();
    provider.id = tx.insert_provider(&provider, "sealed-1").await.unwrap();
    provider.note = "changed".to_owned();
    provider.proxy_url = None;
    tx.update_provider(&provider, None).await.unwrap();
    let stored = tx.provider(provider.id).await.unwrap().unwrap();
    same(&stored.provider, &provider);
    assert_eq!(stored.key_cipher, "sealed-1");
    tx.update_provider(&provider, Some("sealed-2")).await.unwrap();
    tx.commit().await.unwrap();
    let everything = store.load_all().await.unwrap();
    same(&everything.providers[0].provider, &provider);
    assert_eq!(everything.providers[0].key_cipher, "sealed-2");

    let mut tx = store.begin().await.unwrap();
    provider.deleted_at = Some(NOON);
    tx.update_provider(&provider, None).await.unwrap();
    assert!(tx.providers().await.unwrap().is_empty());
    assert!(tx.provider(ProviderId(12)).await.unwrap().is_none());
}

fn price(model: &str, source: PriceSource) -> Price {
    let data = json!({
        "mode": "chat", "input_cost_per_token": 3e-6, "output_cost_per_token": "0.0000000000000000000000000001",
        "output_cost_per_image_token": 999_999.5, "input_cost_per_request": 0,
        "cache_read_input_token_cost_above_200k_tokens_flex": 0.5, "z": {"unknown": [1, null]}, "a": "first?",
    });
    let rates = [
        (CostKind::Input, ServiceTier::Standard, 0, "0.000003"),
        (CostKind::Output, ServiceTier::Standard, 0, "0.0000000000000000000000000001"),
        (CostKind::ImageOutput, ServiceTier::Standard, 0, "999999.5"),
        (CostKind::Request, ServiceTier::Standard, 0, "0"),
        (CostKind::CacheRead, ServiceTier::Flex, 200_000, "0.5"),
    ];
    let rates =
        rates.map(|(kind, tier, above, usd)| Rate { kind, tier, above, usd: usd.parse().unwrap() });
    Price::new(model.to_owned(), source, &data, Rates::new(rates.to_vec()), NOON)
}

async fn prices_round_trip_and_replace(place: Place) {
    let store = place.ready().await;
    let mut tx = store.begin().await.unwrap();
    let first = price("model-b", PriceSource::Seed);
    let other = price("model-a", PriceSource::Sync);
    tx.upsert_prices(&[first.clone(), other.clone()]).await.unwrap();
    same(&tx.prices().await.unwrap(), &[&other, &first]);
    let mut newer = price("model-b", PriceSource::Manual);
    newer.rates = Rates::default();
    newer.data = (&json!({})).into();
    // twice in one call: the last one counts
    tx.upsert_prices(&[first.clone(), newer.clone()]).await.unwrap();
    tx.upsert_prices(&[]).await.unwrap();
    tx.commit().await.unwrap();
    let prices = store.load_all().await.unwrap().prices;
    same(&prices, &[&other, &newer]);
    assert_eq!(
        prices[0].data.parse().to_string(),
        other.data.parse().to_string(),
        "the entry keeps its order"
    );
}

async fn thousands_of_prices_go_in_at_once(place: Place) {
    let store = place.ready().await;
    let mut tx = store.begin().await.unwrap();
    let prices: Vec<Price> =
        (0..2_345).map(|n| price(&format!("model-{n:04}"), PriceSource::Sync)).collect();
    tx.upsert_prices(&prices).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(store.load_all().await.unwrap().prices.len(), 2_345);
}

async fn settings_and_versions(place: Place) {
    let store = place.ready().await;
    assert_eq!(store.config_version().await.unwrap(), 0);
    assert_eq!(store.load_all().await.unwrap().settings, SystemSettings::default());
    for n in 1..=2 {
        let mut tx = store.begin().await.unwrap();
        let settings = SystemSettings {
            site_title: format!("Maut {n} ü"),
            cleanup_retention_days: n,
            ..Default::default()
        };
        tx.save_settings(&settings).await.unwrap();
        tx.commit().await.unwrap();
        let everything = store.load_all().await.unwrap();
        assert_eq!((everything.version, &everything.settings), (i64::from(n), &settings));
        assert_eq!(store.config_version().await.unwrap(), i64::from(n));
    }
    place.meddle("UPDATE system_settings SET data = '{\"siteTitle\": \"old\"}'").await;
    assert_eq!(store.load_all().await.unwrap().settings.cleanup_retention_days, 30);
    place.meddle("UPDATE system_settings SET data = 'no json'").await;
    let error = store.load_all().await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Corrupt { what } if what.starts_with("system_settings.data")),
        "{error}"
    );
}

async fn names_and_hashes_are_unique_where_they_must_be(place: Place) {
    let store = place.ready().await;
    let mut tx = store.begin().await.unwrap();
    let owner = tx.insert_user(&plain_user("owner")).await.unwrap();
    let mut first = key(owner, "default");
    first.id = tx.insert_key(&first).await.unwrap();
    tx.commit().await.unwrap();

    let refused = async |key| {
        let error = store.begin().await.unwrap().insert_key(&key).await.unwrap_err();
        assert!(matches!(error, StoreError::Constraint { .. }), "{error}");
    };
    let mut same_name = key(owner, "default");
    same_name.hash.0[0] ^= 1;
    refused(same_name.clone()).await;
    let mut same_hash = first.clone();
    same_hash.name = "other".to_owned();
    refused(same_hash).await;
    refused(key(UserId(77), "nobody's")).await;

    // a deleted key gives its name free
    let mut tx = store.begin().await.unwrap();
    first.deleted_at = Some(Timestamp(5));
    tx.update_key(&first).await.unwrap();
    tx.insert_key(&same_name).await.unwrap();
    tx.commit().await.unwrap();
}

async fn what_is_dropped_without_commit_never_happened(place: Place) {
    let store = place.ready().await;
    for _ in 0..3 {
        let mut tx = store.begin().await.unwrap();
        tx.insert_user(&plain_user("ghost")).await.unwrap();
        drop(tx);
    }
    let everything = store.load_all().await.unwrap();
    assert!(everything.users.is_empty());
    assert_eq!(everything.version, 0);
}

async fn audit_entries_are_kept(place: Place) {
    let store = place.ready().await;
    let mut tx = store.begin().await.unwrap();
    let entry = AuditEntry {
        at: NOON,
        actor: "admin token".to_owned(),
        action: "keys/editKey".to_owned(),
        target: "key 1".to_owned(),
        before: Some(json!({"name": "a\u{0}b"})),
        after: None,
        client_addr: Some("::1".to_owned()),
    };
    tx.audit(&entry).await.unwrap();
    tx.audit(&AuditEntry { before: None, client_addr: None, ..entry }).await.unwrap();
    tx.commit().await.unwrap();
    // the check refuses the insert unless both rows are there
    place
        .meddle(
            "CREATE TABLE proof (n BIGINT CHECK (n = 2)); INSERT INTO proof SELECT COUNT(*) \
             FROM audit_log WHERE actor = 'admin token' AND state_after IS NULL \
             AND happened_at > 0",
        )
        .await;
}
