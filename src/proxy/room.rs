//! Room for request bodies: how many bytes of them the process holds, all requests together, and a bound on it.
//!
//! A body takes its room before it is read where its length is declared, and as it grows where it is not; it gives it back
//! when it is let go. Nobody waits here: what there is no room for is refused, so that memory stays within the bound
//! whatever clients send. Bodies are counted by their bytes; what else a request holds is small and is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of all bodies that are held now.
#[derive(Debug, Default)]
pub struct Bodies(AtomicUsize);

impl Bodies {
    /// Bytes held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// There is no room for so many bytes more.
#[derive(Debug, PartialEq, Eq)]
pub struct NoRoom;

/// The room that one body takes; given back when dropped.
#[derive(Debug)]
pub struct Room {
    bodies: Arc<Bodies>,
    bytes: usize,
}

impl Room {
    /// Room for a body of which nothing is there yet.
    #[must_use]
    pub fn new(bodies: &Arc<Bodies>) -> Self {
        Self { bodies: Arc::clone(bodies), bytes: 0 }
    }

    /// Holds `bytes` from now on, more or less than before. All bodies together hold `most` at most.
    ///
    /// # Errors
    /// When there is no room for more; what was held before stays held.
    pub fn hold(&mut self, bytes: usize, most: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes);
        let all = &self.bodies.0;
        if more > 0 && all.fetch_add(more, Ordering::Relaxed).saturating_add(more) > most {
            all.fetch_sub(more, Ordering::Relaxed);
            return Err(NoRoom);
        }
        if let Some(less @ 1..) = self.bytes.checked_sub(bytes) {
            all.fetch_sub(less, Ordering::Relaxed);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.bodies.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_share_one_bound_and_give_back() {
        let bodies = Arc::new(Bodies::default());
        let (mut one, mut two) = (Room::new(&bodies), Room::new(&bodies));
        assert_eq!((one.hold(60, 100), two.hold(40, 100)), (Ok(()), Ok(())));
        assert_eq!(two.hold(41, 100), Err(NoRoom), "full");
        assert_eq!(bodies.held(), 100, "a refusal leaves what was held");
        assert_eq!((one.hold(10, 100), two.hold(90, 100)), (Ok(()), Ok(())), "room that is given back can be taken");
        drop(two);
        assert_eq!(bodies.held(), 10);
        drop(one);
        assert_eq!(bodies.held(), 0);
        assert_eq!(Room::new(&bodies).hold(usize::MAX, 100), Err(NoRoom));
        assert_eq!(bodies.held(), 0);
    }
}
