//! Counters on two Redis servers, as in [`super::servers`]: a request or a session moves to a
//! provider on the other server; a clock is set; a server that other nodes use is lost.

use std::sync::Arc;

use super::servers::{node, soon, start};
use super::stoppable::{Rows, Stoppable};
use super::wire::{Who, admit, limited};
use super::{NOON, TIME_LIMIT, asks, key, runtime, settings, user};
use crate::config::OnRedisLoss;
use crate::domain::clock::{Clock as _, SystemClock};
use crate::domain::ids::{RequestId, SessionId};
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::secret::Secret;
use crate::limits::{Admission, Counters, Ledger, MOST_WAITING, SharedSettings, TimeSource};
use crate::redis::Server;

#[test]
fn a_place_taken_after_another_was_reserved_elsewhere_is_kept_and_the_session_stays_there() {
    let (_servers, urls) = start();
    let node = node(&urls);
    // Of user 1, the first is on the other server.
    let (first, second) = (limited(1, 100), limited(2, 100));
    runtime().block_on(async {
        let mut permits = Vec::new();
        for n in 0..30 {
            let who = Who::new(1, &format!("s{n}"));
            let mut permit = admit(&node, &who, NOON, Some(&first)).await;
            assert_eq!(permit.provider(), Some(first.id));
            // This call reaches the user's server before the queued note of the first place.
            assert!(permit.enter(&second, NOON).await);
            permits.push(permit);
        }
        node.0.flushed().await;
        assert_eq!(node.0.provider_usage(&first, NOON).await.sessions.current, 0);
        let usage = node.0.provider_usage(&second, NOON).await;
        assert_eq!((usage.sessions.current, usage.total.reserved), (30, NanoUsd(150)));
        let live = node.0.live_sessions(NOON).await;
        assert!(live.len() == 30 && live.iter().all(|one| one.provider == Some(second.id)));
    });
}

#[test]
fn a_session_that_another_node_moved_and_that_moves_back_is_known_to_be_back() {
    let (_servers, urls) = start();
    let nodes = [node(&urls), node(&urls)];
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
    let (_servers, urls) = start();
    let shared = SharedSettings {
        servers: urls.iter().map(|url| Server::new(Secret::new(url.as_str()))).collect(),
        prefix: "clock".to_owned(),
        timeout: TIME_LIMIT,
        lease: TIME_LIMIT,
        on_loss: OnRedisLoss::Closed,
        most_waiting: MOST_WAITING,
        time: TimeSource::Redis,
        unclean: false,
    };
    let counters = Counters::shared(settings(chrono_tz::Tz::UTC), shared).unwrap();
    let ledger: Arc<dyn Ledger> = Arc::new(Rows::default());
    let keeper = counters.keeper(ledger, Arc::new(SystemClock)).unwrap();
    runtime().spawn(keeper.run(std::future::pending()));
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
        // One provider on each server. The node's clock is an hour ahead of its last comparison
        // with Redis.
        for id in [1, 2] {
            let at = limited(id, 1);
            assert!(permit.enter(&at, now.plus_ms(3_600_000)).await, "provider {id}");
            // It was counted there: its only place is taken.
            let other = SessionId::from("other");
            let mut other =
                counters.bypass(RequestId::new(), &other, NanoUsd(5), now.plus_ms(3_600_000));
            assert!(!other.enter(&at, now.plus_ms(3_600_000)).await, "provider {id}");
        }
    });
}

#[test]
fn a_server_of_nodes_with_another_list_that_is_lost_is_reported_as_lost() {
    let (mut servers, urls) = start();
    let ledger = Arc::new(Rows::default());
    let before = Stoppable::start(&urls, &ledger);
    runtime().block_on(async {
        before.counters.connected().await;
        let other = Stoppable::start(&urls[..1], &ledger);
        soon(async || other.counters.server_states()[0].is_of_others).await;
        servers[0].kill();
        soon(async || !other.counters.server_states()[0].is_of_others).await;
        let fault = other.counters.shared_fault().unwrap();
        assert_eq!(fault, "is lost: this node counts for itself");
    });
}
