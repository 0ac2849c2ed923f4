//! What the layout of shared counters promises of Redis: round trips, names, scripts that are
//! forgotten, and memory.

use std::sync::Arc;

use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::provider::Provider;
use tollgate::limits::{Admission, MOST_WAITING, Permit};

use super::overflow::{Node, Written};
use super::{NOON, TIME_LIMIT, TTL_MS, key, provider, runtime, sessions, user};
use crate::support::redis::Redis;
use crate::support::wait;

fn node(server: &Redis, ledger: &Arc<Written>) -> Node {
    Node::start_with(&server.url(), ledger, (TIME_LIMIT, MOST_WAITING))
}

/// Asks Redis directly.
pub(super) fn redis<T: redis::FromRedisValue>(server: &Redis, words: &[&str]) -> T {
    let client = redis::Client::open(server.url()).unwrap();
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| {
        command.arg(*word);
    });
    command.query(&mut client.get_connection().unwrap()).unwrap()
}

/// How often a command was called since the figures were reset.
pub(super) fn calls(server: &Redis, command: &str) -> u64 {
    let info: String = redis(server, &["INFO", "commandstats"]);
    let start = format!("cmdstat_{command}:calls=");
    let line = info.lines().find_map(|line| line.strip_prefix(&start));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

pub(super) struct Who {
    pub(super) user: i64,
    key: i64,
    session: String,
}

impl Who {
    pub(super) fn new(user: i64, session: &str) -> Self {
        Self { user, key: user, session: session.to_owned() }
    }
}

pub(super) async fn admit(
    node: &Node,
    who: &Who,
    now: Timestamp,
    first: Option<&Provider>,
) -> Permit {
    let (mut key, mut user) = (key(who.key, Limits::default()), user(0, Limits::default()));
    (key.user_id, user.id) = (UserId(who.user), UserId(who.user));
    let (session, asks) = (SessionId::from(who.session.as_str()), super::asks("m"));
    let ask = Admission {
        request: RequestId::new(),
        now,
        key: &key,
        user: &user,
        session: &session,
        estimate: NanoUsd(5),
        asks: &asks,
    };
    node.0.admit_to(&ask, first).await.unwrap_or_else(|refused| panic!("{refused}"))
}

pub(super) fn limited(id: i64, cap: u32) -> Provider {
    let limits = Limits { total: Some(NanoUsd(1_000_000)), ..sessions(cap) };
    Provider { id: ProviderId(id), ..provider(limits) }
}

#[test]
fn a_request_at_a_provider_with_limits_waits_for_one_call_and_few_commands() {
    let server = Redis::start();
    let node = node(&server, &Arc::default());
    let at = limited(1, 1_000);
    runtime().block_on(async {
        let who = Who::new(1, "s");
        drop(admit(&node, &who, NOON, Some(&at)).await);
        node.0.flushed().await;
        let _: () = redis(&server, &["CONFIG", "RESETSTAT"]);
        let mut permits = Vec::new();
        for _ in 0..50 {
            let mut permit = admit(&node, &who, NOON, Some(&at)).await;
            assert!(permit.enter(&at, NOON).await);
            assert!(
                node.0
                    .blocked(&[Arc::new(at.clone())], Some(KeyId(1)), &SessionId::from("s"), NOON)
                    .await
                    .is_empty()
            );
            permits.push(permit);
        }
        assert_eq!(calls(&server, "evalsha"), 50);
        let inside = ["hexists", "hget", "hmget", "hset", "zadd", "zcard", "hincrby", "get"];
        let commands: u64 = inside.iter().map(|command| calls(&server, command)).sum();
        // The fence; user, key, session and minute; the provider; each written back; the note.
        assert!(commands <= 50 * 7 + 10, "{commands}");
        let usage = node.0.provider_usage(&at, NOON).await;
        assert_eq!((usage.money.total.reserved, usage.sessions.current), (NanoUsd(250), 1));
        permits.into_iter().for_each(|permit| permit.settle(NOON, NanoUsd(7), Some(at.id)));
        node.0.flushed().await;
        let usage = node.0.provider_usage(&at, NOON).await;
        assert_eq!(
            (usage.money.total.reserved, usage.money.total.current),
            (NanoUsd(0), NanoUsd(350))
        );
    });
}

#[test]
fn the_last_places_of_a_provider_are_given_out_once_with_the_admission_over_two_nodes() {
    let server = Redis::start();
    let ledger = Arc::new(Written::default());
    let nodes = [node(&server, &ledger), node(&server, &ledger)];
    let at = limited(1, 3);
    runtime().block_on(async {
        let mut running = Vec::new();
        for n in 0..24 {
            let who = Who::new(n % 5 + 1, &format!("s{n}"));
            running.push((admit(&nodes[usize::from(n % 2 == 0)], &who, NOON, Some(&at)).await, n));
        }
        let mut inside = 0;
        for (permit, _) in &mut running {
            inside += u32::from(permit.enter(&at, NOON).await);
        }
        assert_eq!(inside, 3);
        drop(running);
        nodes[0].0.flushed().await;
        nodes[1].0.flushed().await;
        assert_eq!(nodes[0].0.provider_usage(&at, NOON).await.sessions.current, 0);
    });
}

#[test]
fn a_place_is_not_taken_where_the_session_is_served_by_another_provider() {
    let server = Redis::start();
    let node = node(&server, &Arc::default());
    let (first, second) = (limited(1, 5), limited(2, 5));
    runtime().block_on(async {
        let who = Who::new(1, "s");
        let mut permit = admit(&node, &who, NOON, Some(&second)).await;
        assert!(permit.enter(&second, NOON).await);
        permit.settle(NOON, NanoUsd(1), Some(second.id));
        node.0.flushed().await;
        let permit = admit(&node, &who, NOON, Some(&first)).await;
        assert_eq!(permit.session_provider(), Some(second.id));
        assert_eq!(node.0.provider_usage(&first, NOON).await.sessions.current, 0);
        // One that was taken in vain is given back when the request goes elsewhere.
        let mut moved = admit(&node, &Who::new(2, "t"), NOON, Some(&first)).await;
        assert_eq!(node.0.provider_usage(&first, NOON).await.sessions.current, 1);
        assert!(moved.enter(&second, NOON).await);
        node.0.flushed().await;
        let usage = node.0.provider_usage(&first, NOON).await;
        assert_eq!((usage.sessions.current, usage.money.total.reserved), (0, NanoUsd::ZERO));
        drop((permit, moved));
    });
}

/// Its moves before wait to be sent, or are on their way, while the request is back already: none
/// of them may take the place.
#[test]
fn a_request_that_returns_to_a_provider_at_once_keeps_its_place_there() {
    let server = Redis::start();
    let node = node(&server, &Arc::default());
    let (first, second) = (limited(1, 5), limited(2, 5));
    runtime().block_on(async {
        let mut permit = admit(&node, &Who::new(1, "s"), NOON, Some(&first)).await;
        for turn in 1..=20 {
            assert!(permit.enter(&second, NOON).await && permit.enter(&first, NOON).await);
            // Most turns follow while withdrawals of those before are queued, or on their way.
            if turn % 4 != 0 {
                continue;
            }
            node.0.flushed().await;
            let held = async |at: &Provider| {
                let usage = node.0.provider_usage(at, NOON).await;
                (usage.sessions.current, usage.money.total.reserved)
            };
            assert_eq!(held(&first).await, (1, NanoUsd(5)), "turn {turn}");
            assert_eq!(held(&second).await, (0, NanoUsd::ZERO), "turn {turn}");
        }
        permit.settle(NOON, NanoUsd(7), Some(first.id));
        node.0.flushed().await;
        let usage = node.0.provider_usage(&first, NOON).await.money.total;
        assert_eq!((usage.reserved, usage.current), (NanoUsd::ZERO, NanoUsd(7)));
    });
}

#[test]
fn scripts_that_redis_forgets_or_may_not_load_ahead_cost_no_request() {
    let server = Redis::start();
    let user = ["ACL", "SETUSER", "gate", "on", ">word", "~overflow:*", "&overflow:*"];
    let user = [&user[..], &["+@all", "-@admin", "-@dangerous", "-script"]].concat();
    let _: () = redis(&server, &user);
    let url = server.url().replace("redis://", "redis://gate:word@");
    let node = Node::start_with(&url, &Arc::default(), (TIME_LIMIT, MOST_WAITING));
    runtime().block_on(async {
        for n in 0..6 {
            let permit = admit(&node, &Who::new(1, "s"), NOON, None).await;
            let _: () = redis(&server, &["SCRIPT", "FLUSH"]);
            permit.settle(NOON, NanoUsd(10), None);
            node.0.flushed().await;
            let mut user = super::user(0, Limits::default());
            user.id = UserId(1);
            assert_eq!(
                node.0.user_usage(&user, NOON).await.money.total.current,
                NanoUsd(10 * (n + 1))
            );
        }
        let state = node.0.shared_state().unwrap();
        assert_eq!((state.errors, state.losses), (0, 0));
    });
}

#[test]
fn all_names_have_one_hash_tag_and_what_ended_leaves_nothing_but_sums() {
    let server = Redis::start();
    let node = node(&server, &Arc::default());
    runtime().block_on(async {
        for n in 0..1_500 {
            let permit = admit(&node, &Who::new(n % 500 + 1, &format!("s{n}")), NOON, None).await;
            permit.settle(NOON, NanoUsd(1), Some(ProviderId(1)));
        }
        node.0.flushed().await;
        assert_eq!(node.0.live_sessions(NOON).await.len(), 1_500);
        let names: Vec<String> = redis(&server, &["KEYS", "*"]);
        let others = |name: &&String| !name.starts_with("overflow:{3}:") && !name.contains(":zone");
        assert_eq!(names.iter().filter(others).count(), 0, "{names:?}");
        // One other user, after all have ended: a few batches sweep them out.
        let later = NOON.plus_ms(TTL_MS + 60_000);
        node.1.set(later);
        for _ in 0..8 {
            let permit = admit(&node, &Who::new(1_000, "s"), later, None).await;
            permit.settle(later, NanoUsd(1), None);
            node.0.flushed().await;
        }
        let names: Vec<String> = redis(&server, &["KEYS", "*"]);
        let sorted = names.iter().filter(|name| {
            let kind: String = redis(&server, &["TYPE", name]);
            kind == "zset"
        });
        let mut left: Vec<&str> = sorted
            .map(|name| {
                name.rsplit_once("e-").map_or("nodes", |(_, own)| own.split_once(':').unwrap().1)
            })
            .collect();
        left.sort_unstable();
        assert_eq!(left, ["kz:1000", "nodes", "uz:1000", "z"]);
        let of_user = names.iter().find(|name| name.ends_with(":u:7")).unwrap();
        let mut fields: Vec<String> = redis(&server, &["HKEYS", of_user]);
        fields.sort_unstable();
        assert_eq!(fields, ["K7", "U", "k7", "r", "u"]);
    });
}

/// Waits until the names of connections hold this many entries in Redis: a fence each, and the
/// connection's requests in flight.
async fn in_flight(server: &Redis, wanted: &[i64]) {
    let held = || -> Vec<i64> {
        let names: Vec<String> = redis(server, &["KEYS", "overflow:{3}:*:n:*"]);
        names.iter().map(|name| redis(server, &["HLEN", name])).collect()
    };
    wait::until(|| format!("{:?}, not {wanted:?}", held()), async || held() == wanted).await;
}

fn cut_connections(server: &Redis) {
    let killed: u32 = redis(server, &["CLIENT", "KILL", "TYPE", "normal"]);
    assert!(killed > 0);
}

#[test]
fn more_requests_than_one_scan_finds_are_given_back_when_their_connection_ends() {
    let server = Redis::start();
    let node = node(&server, &Arc::default());
    runtime().block_on(async {
        let mut running = Vec::new();
        for _ in 0..9_000 {
            running.push(admit(&node, &Who::new(1, "s"), NOON, None).await);
        }
        in_flight(&server, &[9_001]).await;
        cut_connections(&server);
        // The new connection settles the old one's requests, and registers those that still run.
        running.push(admit(&node, &Who::new(1, "s"), NOON, None).await);
        in_flight(&server, &[9_002]).await;
        drop(running);
        in_flight(&server, &[1]).await;
    });
}

#[test]
fn requests_of_the_past_minute_are_registered_again_in_few_commands_and_count_as_before() {
    let server = Redis::start();
    let node = node(&server, &Arc::default());
    let mut user = super::user(0, Limits::default());
    user.id = UserId(1);
    runtime().block_on(async {
        let mut running = Vec::new();
        for n in 0..600 {
            let now = NOON.plus_ms(20 * n);
            node.1.set(now);
            running.push(admit(&node, &Who::new(1, "s"), now, None).await);
        }
        in_flight(&server, &[601]).await;
        let _: () = redis(&server, &["CONFIG", "RESETSTAT"]);
        cut_connections(&server);
        let last = NOON.plus_ms(20 * 600);
        node.1.set(last);
        running.push(admit(&node, &Who::new(1, "s"), last, None).await);
        in_flight(&server, &[602]).await;
        // 600 slots are 37 pieces of sixteen. One rewrite a request would be 20 000 commands.
        let written = calls(&server, "rpush");
        assert!(written < 400, "{written}");
        for (after, counted) in [(12_000, 601), (66_000, 300), (71_999, 1), (72_000, 0)] {
            let now = NOON.plus_ms(after);
            node.1.set(now);
            assert_eq!(node.0.user_usage(&user, now).await.rpm.current, counted, "{after}");
        }
    });
}
