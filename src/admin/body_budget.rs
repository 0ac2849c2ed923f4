//! A bound on the bytes of administration bodies that the process holds at once, separate from the
//! data plane's.
//!
//! Bytes count when they arrive, not when they are announced: a slow client holds only its bytes.
//! Users who are not administrators have a small share each and a bound together, so that they
//! cannot block administrators. Bodies of operations that are open to all are a few KiB at most and
//! do not count: the listeners bound the number of connections.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::ids::UserId;

/// Bytes of all bodies together.
const ALL: usize = 64 << 20;
/// Of all users who are not administrators.
const USERS: usize = 16 << 20;
/// Of one of them.
const USER: usize = 4 << 20;

/// The bytes that are held now.
#[derive(Debug, Default)]
pub struct AdminBodyBudget(Mutex<HeldBytes>);

#[derive(Debug, Default)]
struct HeldBytes {
    all: usize,
    users: usize,
    by_user: HashMap<UserId, usize>,
}

/// The budget does not have that many bytes left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AdminBudgetExceeded;

/// The part of the budget that one body holds; released on drop.
#[derive(Debug)]
pub(super) struct AdminBodyReservation {
    budget: Arc<AdminBodyBudget>,
    /// `None` = an administrator's body.
    user: Option<UserId>,
    bytes: usize,
}

impl AdminBodyReservation {
    pub(super) fn new(budget: &Arc<AdminBodyBudget>, user: Option<UserId>) -> Self {
        Self { budget: Arc::clone(budget), user, bytes: 0 }
    }

    /// Whether the body is that of a user who is not an administrator.
    pub(super) const fn is_users(&self) -> bool {
        self.user.is_some()
    }

    /// Reserves `more` bytes.
    ///
    /// # Errors
    /// When the budget, or the caller's part of it, is used up.
    pub(super) fn grow(&mut self, more: usize) -> Result<(), AdminBudgetExceeded> {
        let mut held = self.budget.0.lock();
        if held.all.saturating_add(more) > ALL {
            return Err(AdminBudgetExceeded);
        }
        if let Some(user) = self.user {
            let own = held.by_user.get(&user).copied().unwrap_or_default();
            if own.saturating_add(more) > USER || held.users.saturating_add(more) > USERS {
                return Err(AdminBudgetExceeded);
            }
            held.users += more;
            held.by_user.insert(user, own + more);
        }
        held.all += more;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for AdminBodyReservation {
    fn drop(&mut self) {
        let mut held = self.budget.0.lock();
        held.all -= self.bytes;
        let Some(user) = self.user else { return };
        held.users -= self.bytes;
        if let Some(own) = held.by_user.get_mut(&user) {
            *own -= self.bytes;
            if *own == 0 {
                held.by_user.remove(&user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_keeps_others_out_and_everything_is_given_back() {
        let budget = Arc::new(AdminBodyBudget::default());
        let of = |user: Option<i64>| AdminBodyReservation::new(&budget, user.map(UserId));
        let mut users: Vec<_> = (0..5).map(|id| of(Some(id))).collect();
        for user in &mut users[..4] {
            assert_eq!(user.grow(USER), Ok(()));
            assert_eq!(user.grow(1), Err(AdminBudgetExceeded), "one user's part");
        }
        assert_eq!(users[4].grow(1), Err(AdminBudgetExceeded), "the part of all users");
        let mut admin = of(None);
        assert_eq!(admin.grow(ALL - USERS), Ok(()));
        assert_eq!(admin.grow(1), Err(AdminBudgetExceeded), "the whole budget");
        users.truncate(3);
        assert_eq!(admin.grow(USER), Ok(()));
        drop((users, admin));
        let held = budget.0.lock();
        assert_eq!((held.all, held.users, held.by_user.len()), (0, 0, 0));
    }
}
