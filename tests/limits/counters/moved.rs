//! Shared counters: a request or a session moves between providers and nodes, a clock is set, and
//! Redis is lost and comes back empty.

use std::sync::Arc;

use tollgate::domain::clock::{Clock as _, SystemClock};
use tollgate::domain::ids::{RequestId, SessionId};
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::secret::Secret;
use tollgate::limits::OnRedisLoss;
use tollgate::limits::{
    Admission, CounterSource, Counters, MOST_WAITING, Refused, SharedSettings, TimeSource,
};
use tollgate::redis::Server;

use super::overflow::{Node, Written};
use super::stoppable::{Rows, Stoppable, soon};
use super::wire::{Who, admit, limited, redis};
use super::{NOON, TIME_LIMIT, asks, key, runtime, settings, user};
use crate::support::redis::Redis;

fn node(server: &Redis) -> Node {
    Node::start_with(&server.url(), &Arc::default(), (TIME_LIMIT, MOST_WAITING))
}

#[test]
fn a_cost_that_came_late_counts_once_for_the_user_and_once_for_the_provider() {
    let (mut server, ledger) = (Redis::start(), Arc::<Written>::default());
    let node = Node::start_with(&server.url(), &ledger, (TIME_LIMIT, MOST_WAITING));
    runtime().block_on(async {
        node.serve(1, &ledger).await;
        node.priced_late(&ledger, NOON.plus_ms(1_000));
        node.0.flushed().await;
        let at = super::provider(Limits::default());
        let spent = async || {
            let of_user =
                node.0.user_usage(&user(0, Limits::default()), NOON).await.money.total.current;
            (of_user, node.0.provider_usage(&at, NOON).await.money.total.current)
        };
        let twice = (NanoUsd(2_000), NanoUsd(2_000));
        assert_eq!(spent().await, twice);
        server.kill();
        soon(async || !node.0.shared_state().unwrap().up).await;
        assert_eq!(spent().await, twice);
    });
}

#[test]
fn a_refused_user_takes_no_place_and_a_request_that_moves_gives_its_place_back() {
    let server = Redis::start();
    let node = node(&server);
    let (first, second) = (limited(1, 2), limited(2, 5));
    let (key, limited_user) = (key(1, Limits::default()), user(1, Limits::default()));
    let session = SessionId::from("s");
    let asks = asks("m");
    let ask = || Admission {
        request: RequestId::new(),
        now: NOON,
        key: &key,
        user: &limited_user,
        session: &session,
        estimate: NanoUsd(5),
        asks: &asks,
    };
    runtime().block_on(async {
        let mut permit = node.0.admit_to(&ask(), Some(&second)).await.unwrap();
        assert!(permit.enter(&second, NOON).await);
        for _ in 0..10 {
            assert!(node.0.admit_to(&ask(), Some(&first)).await.is_err());
        }
        node.0.flushed().await;
        let usage = node.0.provider_usage(&first, NOON).await;
        assert_eq!((usage.sessions.current, usage.money.total.reserved), (0, NanoUsd::ZERO));
        // Its session is served by the second provider.
        let unlimited = user(0, Limits::default());
        for _ in 0..2 {
            let again = Admission { user: &unlimited, ..ask() };
            let other = node.0.admit_to(&again, Some(&first)).await.unwrap();
            assert_eq!((other.session_provider(), other.provider()), (Some(second.id), None));
        }
        node.0.flushed().await;
        assert_eq!(node.0.provider_usage(&first, NOON).await.sessions.current, 0);
        // A failover moves the request and its session.
        assert!(permit.enter(&first, NOON).await);
        node.0.flushed().await;
        assert_eq!(node.0.provider_usage(&second, NOON).await.sessions.current, 0);
        assert_eq!(node.0.provider_usage(&first, NOON).await.sessions.current, 1);
        assert_eq!(node.0.live_sessions(NOON).await[0].provider, Some(first.id));
        permit.settle(NOON, NanoUsd(9), Some(first.id));
        node.0.flushed().await;
        assert_eq!(node.0.provider_usage(&first, NOON).await.money.total.current, NanoUsd(9));
        // The admin token's traffic has no user.
        let mut bypass = node.0.bypass(RequestId::new(), &session, NanoUsd(5), NOON);
        assert!(bypass.enter(&second, NOON).await && bypass.enter(&first, NOON).await);
        bypass.settle(NOON, NanoUsd(1), Some(first.id));
        node.0.flushed().await;
        let usage = node.0.provider_usage(&first, NOON).await.money.total;
        assert_eq!((usage.current, usage.reserved), (NanoUsd(10), NanoUsd(0)));
        assert_eq!(node.0.provider_usage(&second, NOON).await.money.total.reserved, NanoUsd(0));
    });
    let names: Vec<String> = redis(&server, &["KEYS", "*:n:*"]);
    let noted: Vec<u32> = names.iter().map(|name| redis(&server, &["HLEN", name])).collect();
    assert_eq!(noted, [1], "a fence, and no note of a request");
}

#[test]
fn a_request_without_a_user_keeps_its_place_at_the_provider_that_it_moved_to() {
    let server = Redis::start();
    let node = node(&server);
    let (first, second) = (limited(1, 1), limited(3, 1));
    let bypass = |session: &str| {
        node.0.bypass(RequestId::new(), &SessionId::from(session), NanoUsd(5), NOON)
    };
    runtime().block_on(async {
        let mut one = bypass("one");
        assert!(one.enter(&first, NOON).await && one.enter(&second, NOON).await);
        node.0.flushed().await;
        let held = node.0.provider_usage(&second, NOON).await;
        assert_eq!((held.sessions.current, held.money.total.reserved), (1, NanoUsd(5)));
        let mut other = bypass("other");
        assert!(!other.enter(&second, NOON).await, "its only place is taken");
        assert!(other.enter(&first, NOON).await, "this one is free again");
        drop((one, other));
        node.0.flushed().await;
        assert_eq!(node.0.provider_usage(&second, NOON).await.money.total.reserved, NanoUsd::ZERO);
    });
}

#[test]
fn a_place_taken_after_another_was_reserved_is_kept_and_the_session_stays_there() {
    let server = Redis::start();
    let node = node(&server);
    let (first, second) = (limited(1, 100), limited(2, 100));
    runtime().block_on(async {
        let mut permits = Vec::new();
        for n in 0..30 {
            let who = Who::new(1, &format!("s{n}"));
            let mut permit = admit(&node, &who, NOON, Some(&first)).await;
            assert_eq!(permit.provider(), Some(first.id));
            assert!(permit.enter(&second, NOON).await);
            permits.push(permit);
        }
        node.0.flushed().await;
        assert_eq!(node.0.provider_usage(&first, NOON).await.sessions.current, 0);
        let usage = node.0.provider_usage(&second, NOON).await;
        assert_eq!((usage.sessions.current, usage.money.total.reserved), (30, NanoUsd(150)));
        let live = node.0.live_sessions(NOON).await;
        assert!(live.len() == 30 && live.iter().all(|one| one.provider == Some(second.id)));
    });
}

#[test]
fn a_session_that_another_node_moved_and_that_moves_back_is_known_to_be_back() {
    let server = Redis::start();
    let nodes = [node(&server), node(&server)];
    let (first, second) = (limited(1, 100), limited(2, 100));
    let who = Who::new(1, "s");
    runtime().block_on(async {
        for (node, at) in [(&nodes[0], &first), (&nodes[1], &second)] {
            let mut permit = admit(node, &who, NOON, None).await;
            assert!(permit.enter(at, NOON).await);
            permit.settle(NOON, NanoUsd(1), Some(at.id));
            node.0.flushed().await;
        }
        let mut permit = admit(&nodes[0], &who, NOON, None).await;
        assert_eq!(permit.session_provider(), Some(second.id));
        assert!(permit.enter(&first, NOON).await);
        nodes[0].0.flushed().await;
        let other = admit(&nodes[1], &who, NOON, None).await;
        assert_eq!(other.session_provider(), Some(first.id));
    });
}

#[test]
fn a_provider_is_asked_again_after_the_clock_was_set_where_nothing_may_pass_uncounted() {
    let server = Redis::start();
    let shared = SharedSettings {
        server: Server::new(Secret::new(server.url())),
        prefix: "clock".to_owned(),
        timeout: TIME_LIMIT,
        lease: TIME_LIMIT,
        on_loss: OnRedisLoss::Closed,
        most_waiting: MOST_WAITING,
        time: TimeSource::Redis,
        unclean: false,
    };
    let counters = Counters::shared(settings(chrono_tz::Tz::UTC), shared).unwrap();
    let ledger: Arc<dyn CounterSource> = Arc::new(Rows::default());
    let connection_task = counters.connection_task(ledger, Arc::new(SystemClock)).unwrap();
    runtime().spawn(connection_task.run(std::future::pending()));
    let (session, asks) = (SessionId::from("s"), asks("m"));
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    runtime().block_on(async {
        counters.connected().await;
        let now = SystemClock.now();
        let ask = Admission {
            request: RequestId::new(),
            now,
            key: &key,
            user: &user,
            session: &session,
            estimate: NanoUsd(5),
            asks: &asks,
        };
        let mut permit = counters.admit(&ask).await.unwrap();
        let (at, later) = (limited(1, 1), now.plus_ms(3_600_000));
        // The node's clock is an hour ahead of its last comparison with Redis.
        assert!(permit.enter(&at, later).await);
        // It was counted there: its only place is taken.
        let other = SessionId::from("other");
        let mut other = counters.bypass(RequestId::new(), &other, NanoUsd(5), later);
        assert!(!other.enter(&at, later).await);
    });
}

#[test]
fn counters_of_a_redis_that_is_lost_and_comes_back_empty_are_rebuilt_for_all_nodes() {
    let (mut server, ledger) = (Redis::start(), Arc::new(Rows::default()));
    let url = server.url();
    let nodes = [Stoppable::start(&url, &ledger), Stoppable::start(&url, &ledger)];
    runtime().block_on(async {
        for node in &nodes {
            node.counters.connected().await;
        }
        for n in 0..8 {
            nodes[n % 2].serve(&ledger, i64::try_from(n % 4 + 1).unwrap()).await.unwrap();
        }
        for node in &nodes {
            node.counters.flushed().await;
        }
        server.kill();
        let away = |node: &Stoppable| {
            let state = node.counters.shared_state().unwrap();
            !(state.up || state.slow)
        };
        soon(async || nodes.iter().all(away)).await;
        let fault = nodes[0].counters.shared_fault().unwrap();
        assert_eq!(fault, "is lost: this node counts for itself");
        for n in 0..12 {
            nodes[n % 2].serve(&ledger, i64::try_from(n % 4 + 1).unwrap()).await.unwrap();
        }
        server.forget();
        server.start_again();
        for node in &nodes {
            node.counters.connected().await;
            node.counters.flushed().await;
        }
        let at = limited(1, 100);
        for node in &nodes {
            for who in 1..=4 {
                soon(async || node.spent(who).await == 50).await;
            }
            let usage = node.counters.provider_usage(&at, NOON).await;
            assert_eq!(
                (usage.money.total.current, usage.money.total.reserved),
                (NanoUsd(200), NanoUsd(0))
            );
        }
        // Limits hold over both nodes again: 50 of 100 are spent, 5 requests fit.
        let mut passed = 0;
        for n in 0..12 {
            passed += u32::from(nodes[n % 2].serve(&ledger, 1).await.is_ok());
            nodes[n % 2].counters.flushed().await;
        }
        assert_eq!(passed, 5);
    });
}

#[test]
fn where_nothing_may_pass_uncounted_requests_are_refused_while_redis_is_lost() {
    let mut server = Redis::start();
    let node = Stoppable::start_with(&server.url(), &Arc::default(), OnRedisLoss::Closed);
    runtime().block_on(async {
        node.counters.connected().await;
        server.kill();
        soon(async || !node.counters.shared_state().unwrap().up).await;
        assert!(matches!(node.begin(2).await, Err(Refused::Unreachable)));
    });
}
