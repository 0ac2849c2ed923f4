//! Versions of clients on several nodes, combined in the database.

use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::UserId;
use tollgate::policy::client_version::{Client, Version};
use tollgate::state::ClientVersions;

use super::make::NOON;
use super::{Place, on_both};

on_both!(
    nodes_agree_on_the_newest_version_that_two_users_run,
    a_database_that_is_away_makes_nothing_forgotten
);

const DAY: i64 = 24 * 3_600_000;

fn version(text: &str) -> (Client, Version) {
    (Client::ClaudeCode, Version::parse(text).unwrap())
}

fn newest(node: &ClientVersions) -> Option<String> {
    node.newest(Client::ClaudeCode).map(|version| version.to_string())
}

async fn nodes_agree_on_the_newest_version_that_two_users_run(place: Place) {
    let store = place.ready().await;
    let (one, other) = (ClientVersions::default(), ClientVersions::default());
    let both = async |now: Timestamp| {
        for node in [&one, &other, &one] {
            node.exchange(&store, now).await.unwrap();
        }
    };
    one.note(UserId(1), version("2.0.9"), NOON);
    other.note(UserId(1), version("2.0.9"), NOON);
    both(NOON.plus_ms(1)).await;
    assert_eq!((newest(&one), newest(&other)), (None, None), "one user on two nodes is one user");
    other.note(UserId(2), version("2.0.9"), NOON.plus_ms(2));
    both(NOON.plus_ms(60_000)).await;
    assert_eq!(
        (newest(&one).as_deref(), newest(&other).as_deref()),
        (Some("2.0.9"), Some("2.0.9"))
    );
    // Compared as numbers, not letters; and a user who has upgraded counts for the present and the
    // former version.
    one.note(UserId(1), version("2.0.10"), NOON.plus_ms(DAY));
    other.note(UserId(3), version("2.0.10"), NOON.plus_ms(DAY));
    both(NOON.plus_ms(DAY + 1)).await;
    assert_eq!(
        (newest(&one).as_deref(), newest(&other).as_deref()),
        (Some("2.0.10"), Some("2.0.10"))
    );
    // A restarted node has it after its first exchange.
    let third = ClientVersions::default();
    third.exchange(&store, NOON.plus_ms(7 * DAY)).await.unwrap();
    assert_eq!(newest(&third).as_deref(), Some("2.0.10"));
    // After seven days without use nothing is required of others.
    both(NOON.plus_ms(8 * DAY + 1)).await;
    assert_eq!((newest(&one), newest(&other)), (None, None));
}

async fn a_database_that_is_away_makes_nothing_forgotten(place: Place) {
    let store = place.ready().await;
    let node = ClientVersions::default();
    place.meddle("ALTER TABLE client_versions RENAME TO away").await;
    for user in [1, 2] {
        node.note(UserId(user), version("3.1.4"), NOON);
    }
    assert!(node.exchange(&store, NOON.plus_ms(1)).await.is_err());
    assert_eq!(newest(&node).as_deref(), Some("3.1.4"));
    place.meddle("ALTER TABLE away RENAME TO client_versions").await;
    node.exchange(&store, NOON.plus_ms(60_000)).await.unwrap();
    let fresh = ClientVersions::default();
    fresh.exchange(&store, NOON.plus_ms(60_001)).await.unwrap();
    assert_eq!(newest(&fresh).as_deref(), Some("3.1.4"));
}
