//! Versions of clients on several nodes, combined in the database.

use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::UserId;
use tollgate::policy::client_version::{Client, Version};
use tollgate::state::{ClientUser, ClientVersions};

use super::make::NOON;
use super::{Place, on_both};

on_both!(
    nodes_agree_on_the_newest_version_that_two_users_run,
    a_database_that_is_away_makes_nothing_forgotten,
    two_users_of_many_raise_nothing_unless_an_administrator_is_ahead_of_them
);

const DAY: i64 = 24 * 3_600_000;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn user(id: i64) -> ClientUser {
    ClientUser { id: UserId(id), is_administrator: false }
}

fn newest(node: &ClientVersions) -> Option<String> {
    node.required(Client::ClaudeCode).map(|version| version.to_string())
}

async fn nodes_agree_on_the_newest_version_that_two_users_run(place: Place) {
    let store = place.ready().await;
    let (one, other) = (ClientVersions::default(), ClientVersions::default());
    let both = async |now: Timestamp| {
        for node in [&one, &other, &one] {
            node.exchange(&store, now).await.unwrap();
        }
    };
    one.note(user(1), Client::ClaudeCode, version("2.0.9"), NOON);
    other.note(user(1), Client::ClaudeCode, version("2.0.9"), NOON);
    both(NOON.plus_ms(1)).await;
    assert_eq!((newest(&one), newest(&other)), (None, None), "one user on two nodes is one user");
    other.note(user(2), Client::ClaudeCode, version("2.0.9"), NOON.plus_ms(2));
    both(NOON.plus_ms(60_000)).await;
    assert_eq!(
        (newest(&one).as_deref(), newest(&other).as_deref()),
        (Some("2.0.9"), Some("2.0.9"))
    );
    // Compared as numbers, not letters; and a user who has upgraded counts for the present and the
    // former version.
    one.note(user(1), Client::ClaudeCode, version("2.0.10"), NOON.plus_ms(DAY));
    other.note(user(3), Client::ClaudeCode, version("2.0.10"), NOON.plus_ms(DAY));
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
    for id in [1, 2] {
        node.note(user(id), Client::ClaudeCode, version("3.1.4"), NOON);
    }
    assert!(node.exchange(&store, NOON.plus_ms(1)).await.is_err());
    assert_eq!(newest(&node).as_deref(), Some("3.1.4"));
    place.meddle("ALTER TABLE away RENAME TO client_versions").await;
    node.exchange(&store, NOON.plus_ms(60_000)).await.unwrap();
    let fresh = ClientVersions::default();
    fresh.exchange(&store, NOON.plus_ms(60_001)).await.unwrap();
    assert_eq!(newest(&fresh).as_deref(), Some("3.1.4"));
}

async fn two_users_of_many_raise_nothing_unless_an_administrator_is_ahead_of_them(place: Place) {
    let store = place.ready().await;
    let (one, other) = (ClientVersions::default(), ClientVersions::default());
    for id in 1..=9 {
        one.note(user(id), Client::ClaudeCode, version("2.0.9"), NOON);
    }
    for id in 8..=9 {
        one.note(user(id), Client::ClaudeCode, version("2.1.0"), NOON);
        one.note(user(id), Client::ClaudeCode, version("999999999.0.0"), NOON);
    }
    let exchange = async |at: i64| {
        for node in [&one, &other] {
            node.exchange(&store, NOON.plus_ms(at)).await.unwrap();
        }
    };
    exchange(1).await;
    assert_eq!(newest(&one).as_deref(), Some("2.0.9"));
    assert_eq!(newest(&other).as_deref(), Some("2.0.9"), "a node that has seen none of them");
    // The admin token is not a user, and counts on every node.
    one.note(ClientUser::TOKEN, Client::ClaudeCode, version("2.2.0"), NOON.plus_ms(2));
    exchange(60_000).await;
    assert_eq!(newest(&other).as_deref(), Some("2.1.0"));
    assert_eq!(newest(&one).as_deref(), Some("2.1.0"));
}
