//! Room for request bodies: how many bytes of them the process holds, all requests together, and a bound on it.
//!
//! A body takes its room before it is read where its length is declared, and as it grows where it is not; it gives it back
//! when it is let go. Nobody waits here: what there is no room for is refused, so that memory stays within the bound
//! whatever clients send. Bodies are counted by their bytes; what else a request holds is small and is not.
//!
//! Nobody can take all of it from the others: whoever holds some already gets more only while that leaves as much free as
//! they then hold. So one user alone comes to half of the room, two to a third each, and there is always some left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::domain::ids::UserId;

/// Users are told apart by this many shares; those whose ids differ by a multiple of it have one together.
const SHARES: usize = 1024;

/// The bytes of all bodies that are held now, and how they are shared out.
#[derive(Debug)]
pub struct Bodies {
    all: AtomicUsize,
    shares: Box<[AtomicUsize]>,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { all: AtomicUsize::new(0), shares: (0..SHARES).map(|_| AtomicUsize::new(0)).collect() }
    }
}

impl Bodies {
    /// Bytes held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }
}

/// There is no room for so many bytes more.
#[derive(Debug, PartialEq, Eq)]
pub struct NoRoom;

/// The room that one body takes; given back when dropped.
#[derive(Debug)]
pub struct Room {
    bodies: Arc<Bodies>,
    share: usize,
    bytes: usize,
}

impl Room {
    /// Room for a body of which nothing is there yet. `user`: whose it is; all that is no user's has one share.
    #[must_use]
    pub fn new(bodies: &Arc<Bodies>, user: Option<UserId>) -> Self {
        let id = user.map_or(0, |user| user.0);
        let share = usize::try_from(id.unsigned_abs()).unwrap_or(0) % SHARES;
        Self { bodies: Arc::clone(bodies), share, bytes: 0 }
    }

    /// Holds `bytes` from now on, more or less than before. All bodies together hold `most` at most.
    ///
    /// # Errors
    /// When there is no room for more, or none for this user; what was held before stays held.
    pub fn hold(&mut self, bytes: usize, most: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            let (all, own) = self.add(more);
            // The only body of somebody may take what there is.
            let fits = most.checked_sub(all).is_some_and(|free| own <= bytes || own <= free);
            if !fits {
                self.take_away(more);
                return Err(NoRoom);
            }
        }
        self.take_away(self.bytes.saturating_sub(bytes));
        self.bytes = bytes;
        Ok(())
    }

    /// Adds to both sums; what they are then.
    fn add(&self, bytes: usize) -> (usize, usize) {
        let plus = |sum: &AtomicUsize| sum.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        (plus(&self.bodies.all), self.bodies.shares.get(self.share).map_or(0, plus))
    }

    fn take_away(&self, bytes: usize) {
        if bytes > 0 {
            self.bodies.all.fetch_sub(bytes, Ordering::Relaxed);
            if let Some(share) = self.bodies.shares.get(self.share) {
                share.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.take_away(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(bodies: &Bodies) -> usize {
        bodies.shares.iter().map(|share| share.load(Ordering::Relaxed)).sum()
    }

    #[test]
    fn rooms_share_one_bound_and_give_back() {
        let bodies = Arc::new(Bodies::default());
        let of = |id| Room::new(&bodies, Some(UserId(id)));
        let (mut one, mut two) = (of(1), of(2));
        assert_eq!((one.hold(60, 100), two.hold(40, 100)), (Ok(()), Ok(())));
        assert_eq!(two.hold(41, 100), Err(NoRoom), "full");
        assert_eq!(bodies.held(), 100, "a refusal leaves what was held");
        assert_eq!((one.hold(10, 100), two.hold(90, 100)), (Ok(()), Ok(())), "room that is given back can be taken");
        drop(two);
        assert_eq!(bodies.held(), 10);
        drop(one);
        assert_eq!(of(3).hold(usize::MAX, 100), Err(NoRoom));
        assert_eq!((bodies.held(), shares(&bodies)), (0, 0));
    }

    /// How many bodies of ten bytes somebody gets into a room of a thousand.
    fn fill(bodies: &Arc<Bodies>, user: Option<UserId>) -> Vec<Room> {
        std::iter::repeat_with(|| Room::new(bodies, user))
            .map_while(|mut room| room.hold(10, 1_000).is_ok().then_some(room))
            .collect()
    }

    #[test]
    fn nobody_takes_the_room_of_all_others() {
        let bodies = Arc::new(Bodies::default());
        let first = fill(&bodies, Some(UserId(7)));
        assert_eq!(first.len(), 50, "half");
        let second = fill(&bodies, Some(UserId(8)));
        assert_eq!(second.len(), 25, "half of what was left");
        let nobody = fill(&bodies, None);
        assert_eq!(nobody.len(), 12);
        let mut large = Room::new(&bodies, Some(UserId(9)));
        assert_eq!((large.hold(130, 1_000), large.hold(131, 1_000)), (Ok(()), Err(NoRoom)), "all that is left, once");
        drop((first, second, nobody, large));
        assert_eq!((bodies.held(), shares(&bodies)), (0, 0));
    }
}
