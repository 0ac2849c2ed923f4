//! Nodes in another time zone than that of the shared windows: the counters are in the shared one.

use chrono_tz::Tz;
use serde_json::json;
use tollgate::domain::clock::{Clock as _, SystemClock, Timestamp};
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::domain::secret::Secret;
use tollgate::policy::window::Window;
use tollgate::store::Store;

use super::loss::{back, rebuilds};
use super::pair::Pair;
use crate::store::make::bare_record;
use crate::support::postgres;
use crate::support::redis::Redis;

/// Twenty-six hours apart.
const ZONES: [Tz; 2] = [Tz::Pacific__Kiritimati, Tz::Etc__GMTPlus12];

/// When the earlier of week and month begins.
fn begin(zone: Tz, now: Timestamp) -> Timestamp {
    Window::Weekly.start(now, zone).min(Window::Monthly.start(now, zone))
}

fn tell(server: &Redis, words: &[&str]) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| {
        command.arg(*word);
    });
    let () = command.query(&mut client.get_connection().unwrap()).unwrap();
}

/// Windows of the shared zone reach further back than those of the nodes' own.
#[tokio::test(flavor = "multi_thread")]
async fn counters_in_another_zone_are_rebuilt_from_the_begin_of_its_windows() {
    let now = SystemClock.now();
    let mut zones = ZONES;
    zones.sort_by_key(|zone| begin(*zone, now));
    let [shared, own] = zones;
    let redis = Redis::start();
    // What a node with this zone left that connected first, and is still there.
    tell(&redis, &["SET", "tollgate:zone", shared.name()]);
    tell(&redis, &["SET", "tollgate:zone_held", "1"]);
    let database = postgres::fresh_database();
    let env = [("TZ", own.name()), ("TOLLGATE_REDIS_TIMEOUT", "2s")];
    let pair = Pair::over(&database, redis, &env).await;
    back(&pair).await;
    let who = pair.person(json!({}), json!({})).await;
    // From the first minute of the shared week or month.
    let started_at = begin(shared, now).plus_ms(60_000);
    let record = Record {
        request_id: RequestId::new(),
        started_at,
        key_id: Some(KeyId(who.key)),
        user_id: Some(UserId(who.user)),
        provider_id: Some(ProviderId(1)),
        cost: Some(NanoUsd(3_000_000_000)),
        ..bare_record()
    };
    let store = Store::open_postgres(&Secret::new(database.as_str()), 2).await.unwrap();
    assert_eq!(store.append_records(&[record]).await.unwrap(), 1);
    let built = rebuilds(&pair);
    tell(&pair.redis, &["DEL", "tollgate:{3}:epoch"]);
    pair.until(async || rebuilds(&pair) > built).await;
    back(&pair).await;
    let is_month = Window::Monthly.start(now, shared) <= started_at;
    let window = if is_month { "costMonthly" } else { "costWeekly" };
    for node in &pair.nodes {
        let usage = node.admin("users/getUserLimitUsage", json!({"userId": who.user})).await;
        assert_eq!(usage[window]["current"], json!(3), "{window}: {usage}");
    }
}
