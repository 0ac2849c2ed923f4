//! The users whose requests failed in a way that one client alone can cause.

use crate::domain::clock::Timestamp;

/// Requests of so many users must have failed before such failures count.
pub const USERS_NEEDED: usize = 3;

/// Whose request failed, and how many users it takes until that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    /// The user's id; 0 for the admin token.
    pub user: i64,
    /// [`USERS_NEEDED`], or all users, if there are fewer.
    pub needed: usize,
}

/// The users with such a failure since the provider's last success: as many as decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Suspects([Option<(i64, Timestamp)>; USERS_NEEDED]);

impl Suspects {
    fn all(&self) -> impl Iterator<Item = (i64, Timestamp)> {
        self.0.into_iter().flatten()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all().count()
    }

    /// Whether both are the same users.
    pub fn same_users(&self, other: &Self) -> bool {
        self.count() == other.count() && self.all().all(|(user, _)| other.has(user))
    }

    fn has(&self, user: i64) -> bool {
        self.all().any(|(known, _)| known == user)
    }

    /// Adds a user, with the time of its last such failure.
    pub(super) fn add(&mut self, user: i64, at: Timestamp) {
        if let Some((_, last)) = self.0.iter_mut().flatten().find(|(known, _)| *known == user) {
            *last = (*last).max(at);
        } else if let Some(free) = self.0.iter_mut().find(|place| place.is_none()) {
            *free = Some((user, at));
        }
    }

    /// Adds those of another node.
    pub(super) fn merge(&mut self, other: &Self) {
        other.all().for_each(|(user, at)| self.add(user, at));
    }

    /// Drops those from before a success.
    pub(super) fn drop_before(&mut self, success: Option<Timestamp>) {
        for place in &mut self.0 {
            *place = place.filter(|(_, at)| success.is_none_or(|success| *at > success));
        }
    }

    pub(super) fn shift(&mut self, ms: i64) {
        self.0.iter_mut().flatten().for_each(|(_, at)| *at = at.plus_ms(ms));
    }

    /// `USER@TIME` for each, separated by commas; `-` for none.
    pub(super) fn to_text(self) -> String {
        let all: Vec<String> = self.all().map(|(user, at)| format!("{user}@{}", at.0)).collect();
        if all.is_empty() { "-".to_owned() } else { all.join(",") }
    }

    /// Reads [`Self::to_text`]; what is not understood is left out.
    pub(super) fn read(text: &str) -> Self {
        let mut suspects = Self::default();
        for (user, at) in text.split(',').filter_map(|one| one.split_once('@')) {
            if let (Ok(user), Ok(at)) = (user.parse(), at.parse()) {
                suspects.add(user, Timestamp(at));
            }
        }
        suspects
    }
}
