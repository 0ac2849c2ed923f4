//! Requests that wait at the same time, to be admitted or to enter a provider, share a call, and
//! none depends on another one's client.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{join_all, poll_immediate};
use futures_util::{FutureExt as _, join, poll};
use tollgate::domain::ids::UserId;
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::limits::{MOST_WAITING, Permit};

use super::overflow::Node;
use super::wire::{Who, admit, calls, limited, redis};
use super::{NOON, TIME_LIMIT, runtime};
use crate::support::redis::Redis;
use crate::support::wait;

fn node(server: &Redis) -> Node {
    Node::start_with(&server.url(), &Arc::default(), (TIME_LIMIT, MOST_WAITING))
}

/// Reserved by the user of all these tests, and requests of the minute.
async fn held(node: &Node) -> (NanoUsd, u64) {
    node.0.flushed().await;
    let mut user = super::user(0, Limits::default());
    user.id = UserId(1);
    let usage = node.0.user_usage(&user, NOON).await;
    (usage.money.total.reserved, usage.rpm.current)
}

#[test]
fn admissions_that_wait_at_the_same_time_share_calls_and_each_has_its_own_answer() {
    let server = Redis::start();
    let node = node(&server);
    let at = limited(1, 7);
    runtime().block_on(async {
        let _: () = redis(&server, &["CONFIG", "RESETSTAT"]);
        let who: Vec<_> = (0..200).map(|n| Who::new(n % 20 + 1, &format!("s{n}"))).collect();
        let permits = join_all(who.iter().map(|who| admit(&node, who, NOON, Some(&at)))).await;
        let calls = calls(&server, "evalsha") + calls(&server, "eval");
        assert!(calls < 20, "{calls}");
        let placed = permits.iter().filter(|permit| permit.provider() == Some(at.id)).count();
        assert_eq!(placed, 7, "the last place is taken once");
        // Ten sessions of each user, in any order of the answers.
        assert_eq!(held(&node).await, (NanoUsd(50), 10));
        assert_eq!(node.0.provider_usage(&at, NOON).await.sessions.current, 7);
        drop(permits);
        assert_eq!(held(&node).await.0, NanoUsd::ZERO);
    });
}

/// Starts so many admissions while Redis does not answer. Those that `gives_up` returns true for
/// are dropped before it answers again.
async fn answered(server: &Redis, node: &Node, gives_up: impl Fn(usize) -> bool) -> Vec<Permit> {
    let who = Who::new(1, "s");
    server.hang();
    let mut waiting: Vec<_> = (0..40).map(|_| admit(node, &who, NOON, None).boxed()).collect();
    for one in &mut waiting {
        assert!(matches!(poll!(&mut *one), Poll::Pending));
    }
    let mut place = 0;
    waiting.retain(|_| {
        place += 1;
        !gives_up(place - 1)
    });
    server.go_on();
    tokio::time::timeout(TIME_LIMIT, join_all(waiting)).await.expect("all are answered")
}

#[test]
fn a_request_that_gives_up_is_not_counted_and_leaves_the_others_their_answers() {
    let server = Redis::start();
    let node = node(&server);
    runtime().block_on(async {
        drop(admit(&node, &Who::new(1, "s"), NOON, None).await);
        type GivesUp = fn(usize) -> bool;
        let cases: [(&str, GivesUp); 4] = [
            ("those whose calls are in flight", |n| n < 2),
            ("those that wait", |n| (10..30).contains(&n)),
            ("every second one", |n| n % 2 == 0),
            ("all but the last", |n| n < 39),
        ];
        for (name, gives_up) in cases {
            let permits = answered(&server, &node, gives_up).await;
            let count = (0..40).filter(|n| !gives_up(*n)).count();
            assert_eq!(permits.len(), count, "{name}");
            let expected = NanoUsd(5 * i64::try_from(count).unwrap());
            assert_eq!(held(&node).await.0, expected, "{name}");
            drop(permits);
            assert_eq!(held(&node).await, (NanoUsd::ZERO, 0), "{name}");
        }
        // No request is left to continue with the calls: the next one makes its own.
        answered(&server, &node, |_| true).await;
        let who = Who::new(1, "s");
        drop(poll_immediate(admit(&node, &who, NOON, None)).await);
        let wait = tokio::time::timeout(Duration::from_secs(20), held(&node));
        assert_eq!(wait.await.expect("it answers"), (NanoUsd::ZERO, 0));
        let state = node.0.shared_state().unwrap();
        assert_eq!((state.errors, state.losses, state.backoffs), (0, 0, 0));
    });
}

/// Requests that fail over to a provider with limits, or come without a place there.
#[test]
fn requests_that_enter_a_provider_at_the_same_time_share_calls_and_each_has_its_own_answer() {
    let server = Redis::start();
    let node = node(&server);
    let (first, second) = (limited(1, 7), limited(2, 9));
    runtime().block_on(async {
        let who: Vec<_> = (0..100).map(|n| Who::new(n % 20 + 1, &format!("s{n}"))).collect();
        let mut permits = join_all(who.iter().map(|who| admit(&node, who, NOON, None))).await;
        node.0.flushed().await;
        let _: () = redis(&server, &["CONFIG", "RESETSTAT"]);
        let enter = permits.iter_mut().enumerate().map(|(n, permit)| {
            let at = if n % 2 == 0 { &first } else { &second };
            async move { (at.id, permit.enter(at, NOON).await) }
        });
        let entered = join_all(enter).await;
        let calls = calls(&server, "evalsha") + calls(&server, "eval");
        assert!(calls < 20, "{calls}");
        let at = |wanted| entered.iter().filter(|(id, inside)| *inside && *id == wanted).count();
        assert_eq!((at(first.id), at(second.id)), (7, 9), "the last places are taken once");
        for (at, places) in [(&first, 7), (&second, 9)] {
            let usage = node.0.provider_usage(at, NOON).await;
            let held = (usage.sessions.current, usage.money.total.reserved);
            assert_eq!(held, (places, NanoUsd(5 * i64::try_from(places).unwrap())));
        }
        drop(permits);
        node.0.flushed().await;
        for at in [&first, &second] {
            let usage = node.0.provider_usage(at, NOON).await;
            assert_eq!((usage.sessions.current, usage.money.total.reserved), (0, NanoUsd::ZERO));
        }
    });
}

#[test]
fn a_request_that_gives_up_while_it_enters_a_provider_holds_no_place_and_others_get_theirs() {
    let server = Redis::start();
    let node = node(&server);
    let at = limited(1, 1_000);
    runtime().block_on(async {
        for gives_up in [|n| n < 2, |n| (10..30).contains(&n), |n| n % 2 == 0, |n| n < 39, |_| true]
            as [fn(usize) -> bool; 5]
        {
            let mut permits = Vec::new();
            for n in 0..40 {
                permits.push(admit(&node, &Who::new(1, &format!("s{n}")), NOON, None).await);
            }
            node.0.flushed().await;
            server.hang();
            let enter = |mut permit: Permit| {
                let at = &at;
                async move { (permit.enter(at, NOON).await, permit) }.boxed()
            };
            let mut waiting: Vec<_> = permits.into_iter().map(enter).collect();
            for one in &mut waiting {
                assert!(matches!(poll!(&mut *one), Poll::Pending));
            }
            let mut place = 0;
            waiting.retain(|_| {
                place += 1;
                !gives_up(place - 1)
            });
            server.go_on();
            let all = tokio::time::timeout(TIME_LIMIT, join_all(waiting)).await;
            let entered = all.expect("all are answered");
            assert!(entered.iter().all(|(inside, _)| *inside));
            node.0.flushed().await;
            let usage = node.0.provider_usage(&at, NOON).await;
            let left = i64::try_from(entered.len()).unwrap();
            let held = (usage.sessions.current, usage.money.total.reserved);
            assert_eq!(held, (entered.len() as u64, NanoUsd(5 * left)));
            drop(entered);
            node.0.flushed().await;
            let usage = node.0.provider_usage(&at, NOON).await;
            assert_eq!((usage.sessions.current, usage.money.total.reserved), (0, NanoUsd::ZERO));
        }
        let state = node.0.shared_state().unwrap();
        assert_eq!((state.errors, state.losses, state.backoffs), (0, 0, 0));
    });
}

/// Redis has lost its scripts (a restart, SCRIPT FLUSH) when a call of many requests arrives. It is
/// not executed, and is sent again with the script's text: without those that gave up meanwhile.
#[test]
fn a_request_that_gives_up_before_its_call_is_sent_again_is_not_counted() {
    let server = Redis::start();
    let node = node(&server);
    runtime().block_on(async {
        let who = Who::new(1, "s");
        drop(admit(&node, &who, NOON, None).await);
        node.0.flushed().await;
        server.hang();
        let mut waiting: Vec<_> = (0..40).map(|_| admit(&node, &who, NOON, None).boxed()).collect();
        for one in &mut waiting {
            assert!(matches!(poll!(&mut *one), Poll::Pending));
        }
        // Two calls are in flight, of one request each. Redis executes the first before it loses
        // the scripts; the next call has the 38 others.
        server.go_on();
        let mut waiting = waiting.into_iter();
        let first = waiting.next().unwrap().await;
        let _: () = redis(&server, &["SCRIPT", "FLUSH"]);
        let second = waiting.next().unwrap();
        let mut lead = waiting.next().unwrap();
        assert!(matches!(poll!(&mut lead), Poll::Pending));
        let mut others: Vec<_> = waiting.collect();
        drop(others.split_off(17));
        // What they take back is sent once the calls have ended.
        let (second, lead, others, ()) = join!(second, lead, join_all(others), node.0.flushed());
        let mut permits = vec![first, second, lead];
        permits.extend(others);
        assert_eq!(held(&node).await, (NanoUsd(5 * 20), 20));
        drop(permits);
        assert_eq!(held(&node).await, (NanoUsd::ZERO, 0));
    });
}

fn clients(server: &Redis) -> Vec<String> {
    let list: String = redis(server, &["CLIENT", "LIST"]);
    list.lines().map(str::to_owned).collect()
}

fn id(client: &str) -> String {
    client.split([' ', '=']).nth(1).unwrap().to_owned()
}

/// The first admission makes the connection. Returns when one has used it.
async fn connected(server: &Redis, node: &Node, who: &Who) {
    let before: Vec<String> = clients(server).iter().map(|client| id(client)).collect();
    let is_used = |client: &String| client.contains(" cmd=eval") && !before.contains(&id(client));
    let used = async || {
        drop(admit(node, who, NOON, None).await);
        clients(server).iter().any(is_used)
    };
    wait::until(|| clients(server).join("\n"), used).await;
}

/// Redis (its `timeout`), a load balancer or a firewall closes connections that are idle.
#[test]
fn the_connection_of_admissions_does_not_become_idle_while_no_request_comes() {
    let server = Redis::start();
    let lease = Duration::from_millis(900);
    let node = Node::start_with(&server.url(), &Arc::default(), (lease, MOST_WAITING));
    runtime().block_on(async {
        let who = Who::new(1, "s");
        connected(&server, &node, &who).await;
        let _: () = redis(&server, &["CONFIG", "SET", "timeout", "1"]);
        // Sleeps: the time-out is of Redis, by its own clock.
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        let _permit = admit(&node, &who, NOON, None).await;
        assert_eq!(held(&node).await, (NanoUsd(5), 1));
        let state = node.0.shared_state().unwrap();
        assert_eq!((state.errors, state.losses, state.backoffs), (0, 0, 0));
    });
}

/// Only the connection of the admission breaks, while Redis has the call and has not executed it.
#[test]
fn a_request_whose_call_fails_is_counted_once_and_ends_once() {
    let server = Redis::start();
    let node = node(&server);
    runtime().block_on(async {
        let who = Who::new(1, "s");
        connected(&server, &node, &who).await;
        assert_eq!(held(&node).await, (NanoUsd::ZERO, 0));
        let _: () = redis(&server, &["CLIENT", "PAUSE", "20000", "WRITE"]);
        let asking = admit(&node, &who, NOON, None);
        let breaking = async {
            let waits = |client: &str| client.contains(" flags=b ");
            let look = async || clients(&server).into_iter().find(|client| waits(client));
            let blocked = id(&wait::found(|| "no call".to_owned(), look).await);
            let _: i64 = redis(&server, &["CLIENT", "KILL", "ID", &blocked]);
            let _: () = redis(&server, &["CLIENT", "UNPAUSE"]);
        };
        let both = async { join!(asking, breaking) };
        let (permit, ()) = tokio::time::timeout(TIME_LIMIT, both).await.expect("it breaks");
        assert_eq!(held(&node).await, (NanoUsd(5), 1));
        drop(permit);
        assert_eq!(held(&node).await, (NanoUsd::ZERO, 0));
        assert_eq!(node.0.shared_state().unwrap().losses, 1);
    });
}
