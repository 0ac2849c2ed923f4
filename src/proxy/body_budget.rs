//! The body budget: a bound on the bytes of request bodies, and of replies that are converted in
//! one piece, that the process holds at once.
//!
//! A body reserves its declared length before it is read, or grows its reservation as it is read,
//! and releases it when it is dropped. Nothing waits: a body that does not fit is refused with 503,
//! so memory stays bounded whatever clients send. Only body bytes count.
//!
//! No user can take the whole budget: a user that holds part of it gets more only while at least as
//! much stays free. One user alone gets half, two users get a third each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::domain::ids::UserId;

/// Number of per-user shares. Users whose ids are equal modulo this number share one.
const SHARES: usize = 1024;

/// The bytes that all bodies hold now, in total and by user.
#[derive(Debug)]
pub struct BodyBudget {
    all: AtomicUsize,
    shares: Box<[AtomicUsize]>,
}

impl Default for BodyBudget {
    fn default() -> Self {
        Self {
            all: AtomicUsize::new(0),
            shares: (0..SHARES).map(|_| AtomicUsize::new(0)).collect(),
        }
    }
}

impl BodyBudget {
    /// Bytes held now.
    pub fn held(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }
}

/// What an element of a list takes while a request or a reply is converted, in bytes.
pub const ELEMENT_WEIGHT: usize = 192;

/// The budget does not have that many bytes left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetExceeded;

/// The part of the budget that one body holds; released on drop.
#[derive(Debug)]
pub struct BodyReservation {
    budget: Arc<BodyBudget>,
    share: usize,
    bytes: usize,
}

impl BodyReservation {
    /// An empty reservation. Requests without a user share one budget.
    pub fn new(budget: &Arc<BodyBudget>, user: Option<UserId>) -> Self {
        let id = user.map_or(0, |user| user.0);
        let share = usize::try_from(id.unsigned_abs()).unwrap_or(0) % SHARES;
        Self { budget: Arc::clone(budget), share, bytes: 0 }
    }

    /// Bytes held.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the reservation to `bytes`. All bodies together hold at most `most` bytes.
    ///
    /// # Errors
    /// When the budget, or this user's part of it, is used up. The reservation is then unchanged.
    pub fn hold(&mut self, bytes: usize, most: usize) -> Result<(), BudgetExceeded> {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            let (all, own) = self.add(more);
            // A user's only body may take all free bytes.
            let fits = most.checked_sub(all).is_some_and(|free| own <= bytes || own <= free);
            if !fits {
                self.release(more);
                return Err(BudgetExceeded);
            }
        }
        self.release(self.bytes.saturating_sub(bytes));
        self.bytes = bytes;
        Ok(())
    }

    /// Changes the reservation to `bytes` for what is made of a body that has a reservation of its
    /// own: the user's part was checked there.
    ///
    /// # Errors
    /// When the budget is used up. The reservation is then unchanged.
    pub fn hold_beside_body(&mut self, bytes: usize, most: usize) -> Result<(), BudgetExceeded> {
        let more = bytes.saturating_sub(self.bytes);
        if self.add(more).0 > most {
            self.release(more);
            return Err(BudgetExceeded);
        }
        self.bytes += more;
        Ok(())
    }

    /// Adds to both sums and returns the new ones.
    fn add(&self, bytes: usize) -> (usize, usize) {
        let plus =
            |sum: &AtomicUsize| sum.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        (plus(&self.budget.all), self.budget.shares.get(self.share).map_or(0, plus))
    }

    fn release(&self, bytes: usize) {
        if bytes > 0 {
            self.budget.all.fetch_sub(bytes, Ordering::Relaxed);
            if let Some(share) = self.budget.shares.get(self.share) {
                share.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(budget: &BodyBudget) -> usize {
        budget.shares.iter().map(|share| share.load(Ordering::Relaxed)).sum()
    }

    #[test]
    fn reservations_share_one_bound_and_give_back() {
        let budget = Arc::new(BodyBudget::default());
        let of = |id| BodyReservation::new(&budget, Some(UserId(id)));
        let (mut one, mut two) = (of(1), of(2));
        assert_eq!((one.hold(60, 100), two.hold(40, 100)), (Ok(()), Ok(())));
        assert_eq!(two.hold(41, 100), Err(BudgetExceeded), "full");
        assert_eq!(budget.held(), 100, "a refusal leaves what was held");
        assert_eq!(
            (one.hold(10, 100), two.hold(90, 100)),
            (Ok(()), Ok(())),
            "what is given back can be taken"
        );
        drop(two);
        assert_eq!(budget.held(), 10);
        drop(one);
        assert_eq!(of(3).hold(usize::MAX, 100), Err(BudgetExceeded));
        assert_eq!((budget.held(), shares(&budget)), (0, 0));
    }

    /// The ten-byte bodies that one user can place in a budget of a thousand bytes.
    fn fill(budget: &Arc<BodyBudget>, user: Option<UserId>) -> Vec<BodyReservation> {
        std::iter::repeat_with(|| BodyReservation::new(budget, user))
            .map_while(|mut body| body.hold(10, 1_000).is_ok().then_some(body))
            .collect()
    }

    #[test]
    fn no_user_takes_the_whole_budget() {
        let budget = Arc::new(BodyBudget::default());
        let first = fill(&budget, Some(UserId(7)));
        assert_eq!(first.len(), 50, "half");
        let second = fill(&budget, Some(UserId(8)));
        assert_eq!(second.len(), 25, "half of what was left");
        let without_user = fill(&budget, None);
        assert_eq!(without_user.len(), 12);
        let mut large = BodyReservation::new(&budget, Some(UserId(9)));
        assert_eq!(
            (large.hold(130, 1_000), large.hold(131, 1_000)),
            (Ok(()), Err(BudgetExceeded)),
            "all that is left, once"
        );
        drop((first, second, without_user, large));
        assert_eq!((budget.held(), shares(&budget)), (0, 0));
    }
}
