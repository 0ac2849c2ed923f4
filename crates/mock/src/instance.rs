//! One mock: its records, and the directives that operators gave it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::background::BackgroundReplies;
use super::directive::Layer;
use super::held::HeldObjects;
use super::records::Records;
use super::socket::Sockets;

/// One mock instance.
#[derive(Debug, Default)]
pub(super) struct Mock {
    pub records: Arc<Records>,
    pub plans: Mutex<Plans>,
    pub background: BackgroundReplies,
    pub sockets: Sockets,
    pub held: HeldObjects,
}

/// By credential; the empty one applies to all.
#[derive(Debug, Default)]
pub(super) struct Plans {
    pub defaults: HashMap<String, Layer>,
    pub scripts: HashMap<String, VecDeque<Layer>>,
}

impl Mock {
    /// The layers for a request with this credential: defaults, and for a generating request the
    /// script's next entry.
    pub(super) fn layers(&self, key: &str, generating: bool) -> (Vec<Layer>, Option<Layer>) {
        let mut plans = self.plans.lock();
        let own = plans.defaults.get(key).filter(|_| !key.is_empty());
        let defaults = plans.defaults.get("").into_iter().chain(own).cloned().collect();
        let mut next = |key: &str| plans.scripts.get_mut(key).and_then(VecDeque::pop_front);
        let scripted = if generating { next(key).or_else(|| next("")) } else { None };
        (defaults, scripted)
    }
}
