//! Finds spending limits that are nearly used up, for administrators.
//!
//! Each check reads a limited number of the keys, users and providers with limits, starting where
//! the last one ended, and keeps the results of the others. So a gateway of any size is covered
//! within a few checks, and each is cheap.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::admin::context::Context;
use crate::admin::records::overview::NearLimit;
use crate::admin::records::{Exact, Iso};
use crate::domain::clock::Timestamp;
use crate::domain::key::Key;
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::domain::user::User;
use crate::limits::MoneyUsage;
use crate::state::Snapshot;

/// Interval between two checks.
const FRESH: Duration = Duration::from_secs(10);
/// Holders per check.
const PER_LOOK: usize = 500;
/// Time bound of one check; the rest is left to the next.
const TIME_LIMIT: Duration = Duration::from_millis(500);
/// A limit counts as nearly used up from this share on, in percent.
const NEAR: i128 = 80;

/// The limits that are nearly used up, and where the next check starts.
#[derive(Default)]
pub struct Watchlist(Mutex<NearInner>);

#[derive(Default)]
struct NearInner {
    near: BTreeMap<Place, (i128, NearLimit)>,
    next: usize,
    looked: Option<Instant>,
}

/// Kind and id: the order of the checks.
type Place = (&'static str, i64);

/// A holder with a spending limit that can send requests, or receive some.
enum Limited {
    Key(Arc<Key>),
    User(Arc<User>),
    Provider(Arc<Provider>),
}

impl Watchlist {
    /// The limits that are nearly used up, nearest first; at most [`FRESH`] old for as many holders
    /// as one check reads.
    pub async fn look(&self, ctx: &Context) -> Vec<NearLimit> {
        let (snapshot, now) = (ctx.node.state.snapshot(), ctx.node.clock.now());
        let holders = limited(&snapshot, now);
        if let Some(from) = self.due(holders.len()) {
            let (begun, mut found) = (Instant::now(), Vec::new());
            for holder in holders.iter().cycle().skip(from).take(holders.len().min(PER_LOOK)) {
                if begun.elapsed() > TIME_LIMIT {
                    break;
                }
                found.push((holder.place(), holder.nearest(ctx, now).await));
            }
            self.keep(found, &holders);
        }
        let mut near: Vec<(i128, NearLimit)> = self.0.lock().near.values().cloned().collect();
        near.sort_by_key(|(share, _)| std::cmp::Reverse(*share));
        near.into_iter().map(|(_, limit)| limit).collect()
    }

    /// Where a check starts, if one is due.
    fn due(&self, holders: usize) -> Option<usize> {
        let mut inner = self.0.lock();
        if inner.looked.is_some_and(|at| at.elapsed() < FRESH) {
            return None;
        }
        inner.looked = Some(Instant::now());
        Some(inner.next.checked_rem(holders).unwrap_or(0))
    }

    fn keep(&self, found: Vec<(Place, Option<(i128, NearLimit)>)>, holders: &[Limited]) {
        let mut inner = self.0.lock();
        inner.next += found.len();
        inner.near.retain(|place, _| holders.binary_search_by_key(place, Limited::place).is_ok());
        for (place, near) in found {
            match near {
                Some(near) => inner.near.insert(place, near),
                None => inner.near.remove(&place),
            };
        }
    }
}

/// Every enabled holder with a spending limit, in order.
fn limited(snapshot: &Snapshot, now: Timestamp) -> Vec<Limited> {
    let users =
        snapshot.users.values().filter(|user| user.limits.of_money() && user.is_active(now));
    let callers = snapshot.callers().filter(|c| c.user.is_active(now) && c.key.is_usable(now));
    let keys = callers.filter(|caller| caller.key.limits.of_money());
    let providers = snapshot
        .providers
        .iter()
        .filter(|provider| provider.is_enabled && provider.limits.of_money());
    let mut holders: Vec<Limited> =
        keys.map(|caller| Limited::Key(Arc::clone(&caller.key))).collect();
    holders.extend(users.map(|user| Limited::User(Arc::clone(user))));
    holders.extend(providers.map(|provider| Limited::Provider(Arc::clone(provider))));
    holders.sort_unstable_by_key(Limited::place);
    holders
}

impl Limited {
    fn place(&self) -> Place {
        match self {
            Self::Key(key) => ("key", key.id.0),
            Self::User(user) => ("user", user.id.0),
            Self::Provider(provider) => ("provider", provider.id.0),
        }
    }

    /// The limit with the highest spent share, with that share, if it is nearly used up.
    async fn nearest(&self, ctx: &Context, now: Timestamp) -> Option<(i128, NearLimit)> {
        let (usage, name, user_id) = match self {
            Self::Key(key) => {
                (ctx.node.counters.key_usage(key, now).await, &key.name, Some(key.user_id.0))
            }
            Self::User(user) => (ctx.node.counters.user_usage(user, now).await, &user.name, None),
            Self::Provider(provider) => {
                (ctx.node.counters.provider_usage(provider, now).await, &provider.name, None)
            }
        };
        let shares = usage
            .money
            .each()
            .into_iter()
            .filter_map(|(window, money)| Some((share(money)?, window, money)));
        let (share, window, money) =
            shares.max_by_key(|(share, ..)| *share).filter(|(share, ..)| *share >= NEAR)?;
        let (kind, id) = self.place();
        let near = NearLimit {
            kind,
            id,
            name: name.clone(),
            user_id,
            window: window.as_str(),
            current: Exact::usd(money.current),
            limit: Exact::usd(money.limit?),
            reset_at: money.reset_at.map(Iso),
        };
        Some((share, near))
    }
}

/// The spent share of a limit, in percent. A limit of zero is meant to refuse, and is never
/// reported.
fn share(money: MoneyUsage) -> Option<i128> {
    let limit = money.limit.filter(|limit| *limit > NanoUsd::ZERO)?;
    (i128::from(money.current.0) * 100).checked_div(i128::from(limit.0))
}
