//! Counters on two Redis servers: user 1 and provider 2 are on the second, user 2 and provider 1 on
//! the first. A provider elsewhere costs no further wait, its last place is given out once, and
//! what one server loses concerns its users and providers alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::overflow::{Node, Written};
use super::server::Redis;
use super::stoppable::{Rows, Stoppable};
use super::wire::{Who, admit, calls, limited, redis};
use super::{NOON, TIME_LIMIT, asks, key, runtime, user};
use crate::config::OnRedisLoss;
use crate::domain::ids::{RequestId, SessionId};
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::secret::Secret;
use crate::limits::{Admission, Counters, MOST_WAITING, Refused, SharedSettings, TimeSource};
use crate::redis::Server;

/// The place of a user's server, and of a provider's, among two.
const USER_1: usize = 1;
const PROVIDER_1: usize = 0;

pub(super) fn start() -> (Vec<Redis>, Vec<String>) {
    let servers = vec![Redis::start(), Redis::start()];
    let urls = servers.iter().map(Redis::url).collect();
    (servers, urls)
}

pub(super) fn node(urls: &[String]) -> Node {
    Node::start_with(urls, &Arc::default(), (TIME_LIMIT, MOST_WAITING))
}

pub(super) async fn soon(reached: impl AsyncFn() -> bool) {
    let waiting = async {
        while !reached().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(TIME_LIMIT, waiting).await.is_ok(), "it does not come");
}

#[test]
fn a_cost_that_came_late_counts_once_for_the_user_and_once_for_the_provider() {
    let (mut servers, urls) = start();
    let ledger = Arc::<Written>::default();
    let node = Node::start_with(&urls, &ledger, (TIME_LIMIT, MOST_WAITING));
    runtime().block_on(async {
        node.serve(1, &ledger).await;
        node.priced_late(&ledger, NOON.plus_ms(1_000));
        node.0.flushed().await;
        let at = super::provider(Limits::default());
        let spent = async || {
            let of_user = node.0.user_usage(&user(0, Limits::default()), NOON).await.total.current;
            (of_user, node.0.provider_usage(&at, NOON).await.total.current)
        };
        let twice = (NanoUsd(2_000), NanoUsd(2_000));
        assert_eq!(spent().await, twice);
        servers.iter_mut().for_each(Redis::kill);
        soon(async || node.0.server_states().iter().all(|state| !state.up)).await;
        assert_eq!(spent().await, twice);
    });
}

#[test]
fn the_ledger_is_read_together_for_all_servers() {
    let (server, ledger) = (Redis::start(), Arc::<Written>::default());
    let urls: Vec<String> = (0..4).map(|number| format!("{}/{number}", server.url())).collect();
    let node = Node::start_with(&urls, &ledger, (TIME_LIMIT, MOST_WAITING));
    // To rebuild the counters of all, and perhaps once more for what other nodes spent meanwhile.
    let reads = ledger.reads.load(Ordering::Relaxed);
    assert!((1..4).contains(&reads), "{reads} times for four servers");
    drop(node);
}

#[test]
fn a_provider_on_another_server_is_asked_at_the_same_time_as_the_user() {
    let (servers, urls) = start();
    let node = node(&urls);
    let at = limited(1, 1_000);
    runtime().block_on(async {
        let who = Who::new(1, "s");
        drop(admit(&node, &who, NOON, Some(&at)).await);
        node.0.flushed().await;
        let reset = || {
            servers.iter().for_each(|server| {
                let () = redis(server, &["CONFIG", "RESETSTAT"]);
            });
        };
        reset();
        let mut permits = Vec::new();
        for _ in 0..20 {
            let mut permit = admit(&node, &who, NOON, Some(&at)).await;
            assert!(permit.enter(&at, NOON).await, "the place is already taken");
            permits.push(permit);
        }
        let called = |of: usize| calls(&servers[of], "evalsha");
        let inside = ["hexists", "hget", "hmget", "hset", "zadd", "zcard", "hincrby", "get"];
        let commands: u64 = inside.iter().map(|command| calls(&servers[PROVIDER_1], command)).sum();
        // The fence and the note; the provider with the session; each written back.
        assert!(commands <= 20 * 5 + 30, "{commands}");
        // A heartbeat may be among them; and the session's provider, once, is news for the user's
        // server.
        assert!((20..=21).contains(&called(PROVIDER_1)), "{}", called(PROVIDER_1));
        assert!((20..=22).contains(&called(USER_1)), "{}", called(USER_1));
        let usage = node.0.provider_usage(&at, NOON).await;
        assert_eq!((usage.total.reserved, usage.sessions.current), (NanoUsd(100), 1));
        // While the user's server hangs, the provider's has already been asked.
        reset();
        servers[USER_1].hang();
        let mut waiting = Box::pin(admit(&node, &who, NOON, Some(&at)));
        assert!(waiting.as_mut().now_or_never().is_none());
        soon(async || called(PROVIDER_1) >= 1).await;
        servers[USER_1].go_on();
        permits.push(waiting.await);
        permits.into_iter().for_each(|permit| permit.settle(NOON, NanoUsd(7), Some(at.id)));
        node.0.flushed().await;
        let usage = node.0.provider_usage(&at, NOON).await;
        assert_eq!((usage.total.reserved, usage.total.current), (NanoUsd(0), NanoUsd(147)));
        let spent = node.0.user_usage(&user(0, Limits::default()), NOON).await.total;
        assert_eq!((spent.current, spent.reserved), (NanoUsd(147), NanoUsd(0)));
    });
}

#[test]
fn requests_at_a_provider_of_another_server_share_calls_there() {
    let (servers, urls) = start();
    let node = node(&urls);
    let at = limited(1, 1_000);
    runtime().block_on(async {
        // A live session each, so that most need only the head of the provider's record.
        for round in 0..2 {
            let _: () = redis(&servers[PROVIDER_1], &["CONFIG", "RESETSTAT"]);
            let asked = (0..100_i64).map(|n| {
                let (node, at) = (&node, &at);
                async move { admit(node, &Who::new(1, &format!("s{n}")), NOON, Some(at)).await }
            });
            let permits = futures_util::future::join_all(asked).await;
            assert!(permits.iter().all(|permit| permit.provider() == Some(at.id)));
            let calls = calls(&servers[PROVIDER_1], "evalsha");
            assert!(calls < 20, "{calls}");
            let usage = node.0.provider_usage(&at, NOON).await;
            assert_eq!((usage.sessions.current, usage.total.reserved), (100, NanoUsd(500)));
            permits.into_iter().for_each(|permit| permit.settle(NOON, NanoUsd(7), Some(at.id)));
            node.0.flushed().await;
            let usage = node.0.provider_usage(&at, NOON).await;
            let spent = NanoUsd(700 * (round + 1));
            assert_eq!((usage.total.reserved, usage.total.current), (NanoUsd(0), spent));
        }
    });
}

#[test]
fn last_places_at_a_provider_are_given_out_once_over_two_nodes_and_servers() {
    let (_servers, urls) = start();
    let nodes = [node(&urls), node(&urls)];
    let at = limited(1, 3);
    runtime().block_on(async {
        let asked = (0..40_i64).map(|n| {
            let (node, at) = (&nodes[usize::from(n % 2 == 0)], &at);
            async move {
                let who = Who::new(n % 6 + 1, &format!("s{n}"));
                let mut permit = admit(node, &who, NOON, Some(at)).await;
                (permit.enter(at, NOON).await, permit)
            }
        });
        let entered = futures_util::future::join_all(asked).await;
        assert_eq!(entered.iter().filter(|(inside, _)| *inside).count(), 3);
        assert_eq!(nodes[1].0.provider_usage(&at, NOON).await.sessions.current, 3);
        drop(entered);
        for node in &nodes {
            node.0.flushed().await;
        }
        let usage = nodes[0].0.provider_usage(&at, NOON).await;
        assert_eq!((usage.sessions.current, usage.total.reserved), (0, NanoUsd::ZERO));
        assert!(nodes[1].0.live_sessions(NOON).await.is_empty());
    });
}

#[test]
fn a_refused_user_takes_no_place_and_a_session_elsewhere_gives_it_back() {
    let (servers, urls) = start();
    let node = node(&urls);
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
        let () = redis(&servers[PROVIDER_1], &["CONFIG", "RESETSTAT"]);
        for _ in 0..10 {
            assert!(node.0.admit_to(&ask(), Some(&first)).await.is_err());
        }
        node.0.flushed().await;
        // The first refusal's call, and the batch that gives its place back; maybe a heartbeat.
        let called = calls(&servers[PROVIDER_1], "evalsha");
        assert!((2..=3).contains(&called), "{called}");
        let usage = node.0.provider_usage(&first, NOON).await;
        assert_eq!((usage.sessions.current, usage.total.reserved), (0, NanoUsd::ZERO));
        // Its session is served by the second provider.
        let unlimited = user(0, Limits::default());
        for _ in 0..2 {
            let again = Admission { user: &unlimited, ..ask() };
            let other = node.0.admit_to(&again, Some(&first)).await.unwrap();
            assert_eq!((other.session_provider(), other.provider()), (Some(second.id), None));
        }
        node.0.flushed().await;
        assert_eq!(node.0.provider_usage(&first, NOON).await.sessions.current, 0);
        // A failover to a provider on another server moves the request and its session.
        assert!(permit.enter(&first, NOON).await);
        node.0.flushed().await;
        assert_eq!(node.0.provider_usage(&second, NOON).await.sessions.current, 0);
        assert_eq!(node.0.provider_usage(&first, NOON).await.sessions.current, 1);
        assert_eq!(node.0.live_sessions(NOON).await[0].provider, Some(first.id));
        permit.settle(NOON, NanoUsd(9), Some(first.id));
        node.0.flushed().await;
        assert_eq!(node.0.provider_usage(&first, NOON).await.total.current, NanoUsd(9));
        // The admin token's traffic has no user.
        let mut bypass = node.0.bypass(RequestId::new(), &session, NanoUsd(5), NOON);
        assert!(bypass.enter(&second, NOON).await && bypass.enter(&first, NOON).await);
        bypass.settle(NOON, NanoUsd(1), Some(first.id));
        node.0.flushed().await;
        let usage = node.0.provider_usage(&first, NOON).await.total;
        assert_eq!((usage.current, usage.reserved), (NanoUsd(10), NanoUsd(0)));
        assert_eq!(node.0.provider_usage(&second, NOON).await.total.reserved, NanoUsd(0));
    });
    for server in &servers {
        let names: Vec<String> = redis(server, &["KEYS", "*:n:*"]);
        let noted: Vec<u32> = names.iter().map(|name| redis(server, &["HLEN", name])).collect();
        assert_eq!(noted, [1], "a fence, and no note of a request");
    }
}

#[test]
fn a_request_without_a_user_keeps_its_place_at_the_provider_that_it_moved_to() {
    for of in 1..=2 {
        let (_servers, urls) = start();
        let node = node(&urls[..of]);
        // Both on one server, of two too.
        let (first, second) = (limited(1, 1), limited(3, 1));
        let bypass = |session: &str| {
            node.0.bypass(RequestId::new(), &SessionId::from(session), NanoUsd(5), NOON)
        };
        runtime().block_on(async {
            let mut one = bypass("one");
            assert!(one.enter(&first, NOON).await && one.enter(&second, NOON).await);
            node.0.flushed().await;
            let held = node.0.provider_usage(&second, NOON).await;
            assert_eq!((held.sessions.current, held.total.reserved), (1, NanoUsd(5)), "{of}");
            let mut other = bypass("other");
            assert!(!other.enter(&second, NOON).await, "its only place is taken, {of}");
            assert!(other.enter(&first, NOON).await, "this one is free again, {of}");
            drop((one, other));
            node.0.flushed().await;
            let held = node.0.provider_usage(&second, NOON).await;
            assert_eq!(held.total.reserved, NanoUsd::ZERO, "{of}");
        });
    }
}

#[test]
fn a_client_that_closes_while_servers_are_asked_leaves_nothing_counted() {
    let (servers, urls) = start();
    let node = node(&urls);
    let at = limited(1, 5);
    runtime().block_on(async {
        // From now on both servers know the scripts, which takes one call then.
        let who = Who::new(1, "s");
        drop(admit(&node, &who, NOON, Some(&at)).await);
        node.0.flushed().await;
        for hanging in [USER_1, PROVIDER_1] {
            servers[hanging].hang();
            let mut waiting = Box::pin(admit(&node, &who, NOON, Some(&at)));
            assert!(waiting.as_mut().now_or_never().is_none());
            let quick = 1 - hanging;
            let holds = || -> bool {
                let names: Vec<String> = redis(&servers[quick], &["KEYS", "*:n:*"]);
                names.iter().any(|name| redis::<u32>(&servers[quick], &["HLEN", name]) == 2)
            };
            soon(async || holds()).await;
            // The answer is there; it is taken in, and the other is waited for.
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(waiting.as_mut().now_or_never().is_none());
            drop(waiting);
            servers[hanging].go_on();
            node.0.flushed().await;
            let usage = node.0.provider_usage(&at, NOON).await;
            assert_eq!((usage.sessions.current, usage.total.reserved), (0, NanoUsd::ZERO));
            let usage = node.0.user_usage(&user(0, Limits::default()), NOON).await;
            assert_eq!((usage.rpm.current, usage.total.reserved), (0, NanoUsd::ZERO));
        }
    });
}

fn epoch(server: &Redis) -> Option<String> {
    redis(server, &["GET", "several:{3}:epoch"])
}

#[test]
fn a_server_that_is_lost_and_comes_back_empty_concerns_its_users_and_providers_alone() {
    let (mut servers, urls) = start();
    let ledger = Arc::new(Rows::default());
    let nodes = [Stoppable::start(&urls, &ledger), Stoppable::start(&urls, &ledger)];
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
        let epochs = [epoch(&servers[0]), epoch(&servers[1])];
        // Users 1 and 3 lose their counters; provider 1, and users 2 and 4, do not.
        servers[USER_1].kill();
        let away = |node: &Stoppable| {
            let up = node.counters.server_states().into_iter().map(|one| one.up || one.slow);
            up.eq([true, false])
        };
        soon(async || nodes.iter().all(away)).await;
        let fault = nodes[0].counters.shared_fault().unwrap();
        assert!(fault.starts_with("server 2 of 2 is lost: for the users"), "{fault}");
        for n in 0..12 {
            nodes[n % 2].serve(&ledger, i64::try_from(n % 4 + 1).unwrap()).await.unwrap();
        }
        // Limits of the others hold over both nodes: 50 of 100 are spent, 5 requests fit.
        let mut passed = 0;
        for n in 0..12 {
            passed += u32::from(nodes[n % 2].serve(&ledger, 2).await.is_ok());
            soon(async || nodes[n % 2].counters.server_states()[0].waiting == 0).await;
        }
        assert_eq!(passed, 5);
        servers[USER_1].forget();
        servers[USER_1].start_again();
        for node in &nodes {
            node.counters.connected().await;
            node.counters.flushed().await;
        }
        assert_eq!(epoch(&servers[0]), epochs[0], "not rebuilt");
        assert_ne!(epoch(&servers[USER_1]), epochs[USER_1], "rebuilt");
        let at = limited(1, 100);
        for node in &nodes {
            for (who, spent) in [(1, 50), (2, 100), (3, 50), (4, 50)] {
                soon(async || node.spent(who).await == spent).await;
            }
            let usage = node.counters.provider_usage(&at, NOON).await;
            assert_eq!((usage.total.current, usage.total.reserved), (NanoUsd(250), NanoUsd(0)));
        }
        // User 1 is limited over both nodes again.
        let mut passed = 0;
        for n in 0..12 {
            passed += u32::from(nodes[n % 2].serve(&ledger, 1).await.is_ok());
            nodes[n % 2].counters.flushed().await;
        }
        assert_eq!(passed, 5);
    });
}

#[test]
fn where_nothing_may_pass_uncounted_only_what_the_lost_server_counts_is_refused() {
    let (mut servers, urls) = start();
    let node = Stoppable::start_with(&urls, &Arc::default(), OnRedisLoss::Closed);
    let (at_first, at_second) = (limited(1, 100), limited(2, 100));
    runtime().block_on(async {
        node.counters.connected().await;
        servers[PROVIDER_1].kill();
        soon(async || !node.counters.server_states()[PROVIDER_1].up).await;
        assert!(matches!(node.begin(2).await, Err(Refused::Unreachable)));
        let (_, mut permit) = node.begin(1).await.unwrap();
        assert!(!permit.enter(&at_first, NOON).await, "its places are not known");
        assert!(permit.enter(&at_second, NOON).await);
        assert!(node.counters.server_states()[USER_1].up);
    });
}

#[test]
fn nodes_with_another_list_wait_for_the_last_of_the_others_and_then_have_all_sums() {
    let (servers, urls) = start();
    let third = Redis::start();
    let more = [urls[0].clone(), urls[1].clone(), third.url()];
    let ledger = Arc::new(Rows::default());
    let before = Stoppable::start(&urls, &ledger);
    runtime().block_on(async {
        before.counters.connected().await;
        for n in 1..=6 {
            before.serve(&ledger, n).await.unwrap();
        }
        before.counters.flushed().await;
        let [one, swapped] = [vec![urls[0].clone()], vec![urls[1].clone(), urls[0].clone()]];
        for list in [&one[..], &swapped[..], &more[..]] {
            let other = Stoppable::start(list, &ledger);
            soon(async || other.counters.server_states()[0].is_of_others).await;
            let fault = other.counters.shared_fault().unwrap();
            assert!(fault.contains("another list of servers (redis.urls, "), "{fault}");
            // It serves meanwhile, for itself.
            other.serve(&ledger, 7).await.unwrap();
            if list.len() < 3 {
                other.end().await;
                continue;
            }
            before.serve(&ledger, 2).await.unwrap();
            before.serve(&ledger, 5).await.unwrap();
            let (same, of) = (Stoppable::start(list, &ledger), list.len());
            before.end().await;
            for node in [&other, &same] {
                node.counters.connected().await;
                assert_eq!(node.counters.server_states().len(), of);
                for (who, spent) in [(1, 10), (2, 20), (3, 10), (4, 10), (5, 20), (6, 10), (7, 30)]
                {
                    soon(async || node.spent(who).await == spent).await;
                }
            }
            let noted: Vec<String> = [&servers[0], &servers[1], &third]
                .map(|server| redis(server, &["GET", "several:{3}:servers"]))
                .into();
            assert!(noted.iter().enumerate().all(|(at, n)| n.ends_with(&format!(" {}/3", at + 1))));
            // Back to one server.
            other.end().await;
            same.end().await;
            let single = Stoppable::start(&one, &ledger);
            single.counters.connected().await;
            soon(async || single.spent(2).await == 20 && single.spent(7).await == 30).await;
            let noted: Option<String> = redis(&servers[0], &["GET", "several:{3}:servers"]);
            assert_eq!(noted, None);
            single.end().await;
            return;
        }
    });
}

/// Its names were on one server only: the nodes of the earlier layout had one address, or one part
/// of a cluster.
#[test]
fn when_the_last_node_of_an_earlier_layout_is_gone_all_servers_are_rebuilt() {
    let (servers, urls) = start();
    let ledger = Arc::new(Rows::default());
    let earlier = |words: &[&str]| redis::<()>(&servers[0], words);
    earlier(&["SET", "several:{2}:epoch", "e-1"]);
    earlier(&["ZADD", "several:{2}:nodes", "9999999999999", "another"]);
    let node = Stoppable::start(&urls, &ledger);
    runtime().block_on(async {
        node.counters.connected().await;
        node.serve(&ledger, 1).await.unwrap();
        node.counters.flushed().await;
        // What the other node spends is in the ledger alone.
        ledger.0.lock().extend([1, 2].map(|who| (RequestId::new(), who, 30)));
        earlier(&["DEL", "several:{2}:nodes"]);
        for (who, spent) in [(1, 40), (2, 30)] {
            soon(async || node.spent(who).await == spent).await;
        }
        node.end().await;
    });
}

#[test]
fn a_list_that_names_a_server_twice_is_refused() {
    let url = "redis://me:word@host:1";
    let servers = [url, "redis://host:1/0"].map(|url| Server::new(Secret::new(url)));
    let shared = SharedSettings {
        servers: servers.to_vec(),
        prefix: "p".to_owned(),
        timeout: TIME_LIMIT,
        lease: TIME_LIMIT,
        on_loss: OnRedisLoss::Local,
        most_waiting: MOST_WAITING,
        time: TimeSource::Redis,
        unclean: false,
    };
    let refused = Counters::shared(super::settings(chrono_tz::Tz::UTC), shared).err();
    assert_eq!(refused.as_deref(), Some("it names a server twice"));
}
