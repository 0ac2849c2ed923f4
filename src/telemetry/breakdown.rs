//! Requests, tokens, cost and first byte by model; if settings enable it, by user and by key too.
//!
//! The number of series is bounded. Models are those of the price table; in each breakdown, the
//! first [`MODELS`] or [`HOLDERS`] that send a request have separate series. All others share the
//! series `other`. Series stay until the process ends, so that counters do not jump.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use prometheus::{
    Counter, CounterVec, Error, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
};

use super::metrics::usd;
use super::registration::Registration;
use crate::domain::fast_map::FastMap;
use crate::domain::record::{Record, RequestOutcome};

/// Models with separate series.
pub(super) const MODELS: usize = 500;
/// Users, and keys, with separate series.
pub(super) const HOLDERS: usize = 200;

const OTHER: &str = "other";
const RESULTS: [&str; 3] = ["ok", "error", "limited"];
const TOKENS: [&str; 2] = ["input", "output"];
const FIRST_BYTE_S: &[f64] = &[0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The enabled breakdowns.
pub(super) struct Breakdowns {
    models: Breakdown<Box<str>>,
    users: Option<Breakdown<i64>>,
    keys: Option<Breakdown<i64>>,
}

impl Breakdowns {
    pub(super) fn register(
        on: &Registration<'_>,
        per_user: bool,
        per_key: bool,
    ) -> Result<Self, Error> {
        let holders = |wanted: bool, what, labels: &'static [&'static str]| {
            wanted.then(|| Breakdown::register(on, what, labels, HOLDERS)).transpose()
        };
        Ok(Self {
            models: Breakdown::register(on, "model", &["model"], MODELS)?,
            users: holders(per_user, "user", &["user_id", "user"])?,
            keys: holders(per_key, "key", &["key_id", "key", "user"])?,
        })
    }

    /// `model`: the price table's name of the requested model.
    pub(super) fn count(&self, record: &Record, model: Option<&str>) {
        match model {
            Some(model) => self
                .models
                .of(model, |name: &str| Box::from(name), || vec![model.to_owned()])
                .add(record),
            None => self.models.others().add(record),
        }
        let name = |name: &Option<Arc<str>>| name.as_deref().unwrap_or_default().to_owned();
        if let Some(users) = &self.users {
            match record.user_id {
                Some(id) => users
                    .of(&id.0, |id| *id, || vec![id.to_string(), name(&record.user_name)])
                    .add(record),
                None => users.others().add(record),
            }
        }
        if let Some(keys) = &self.keys {
            let labels =
                |id: i64| vec![id.to_string(), name(&record.key_name), name(&record.user_name)];
            match record.key_id {
                Some(id) => keys.of(&id.0, |id| *id, || labels(id.0)).add(record),
                None => keys.others().add(record),
            }
        }
    }
}

/// Four families with the same labels.
struct Breakdown<K> {
    requests: IntCounterVec,
    tokens: IntCounterVec,
    cost: CounterVec,
    first_byte: HistogramVec,
    /// How many labels name the row.
    named_by: usize,
    most: usize,
    rows: RwLock<Rows<K>>,
}

struct Rows<K> {
    known: FastMap<K, Arc<RowSeries>>,
    others: Option<Arc<RowSeries>>,
}

/// One row's series, resolved once.
struct RowSeries {
    requests: [IntCounter; RESULTS.len()],
    tokens: [IntCounter; TOKENS.len()],
    cost: Counter,
    first_byte: Histogram,
}

impl<K: Hash + Eq> Breakdown<K> {
    fn register(
        on: &Registration<'_>,
        what: &str,
        labels: &[&str],
        most: usize,
    ) -> Result<Self, Error> {
        let name = |rest: &str| format!("tollgate_{what}_{rest}");
        let help =
            |of: &str| format!("{of}, by {what}; beyond {most} of them the rest is `other`.");
        let with = |label| labels.iter().copied().chain([label]).collect::<Vec<_>>();
        let opts = HistogramOpts::new(
            name("first_byte_seconds"),
            help("From request to first byte of the reply"),
        );
        Ok(Self {
            requests: on.counters(
                &name("requests_total"),
                &help("Authenticated requests"),
                &with("result"),
            )?,
            tokens: on.counters(&name("tokens_total"), &help("Tokens"), &with("kind"))?,
            cost: on.sums(&name("cost_usd_total"), &help("Cost of priced requests"), labels)?,
            first_byte: on.histograms(opts.buckets(FIRST_BYTE_S.to_vec()), labels)?,
            named_by: labels.len(),
            most,
            rows: RwLock::new(Rows { known: FastMap::default(), others: None }),
        })
    }

    fn of<Q>(
        &self,
        key: &Q,
        own: impl FnOnce(&Q) -> K,
        labels: impl FnOnce() -> Vec<String>,
    ) -> Arc<RowSeries>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        {
            let rows = self.rows.read();
            if let Some(row) = rows.known.get(key) {
                return Arc::clone(row);
            }
            if rows.known.len() >= self.most {
                drop(rows);
                return self.others();
            }
        }
        let row = self.resolve(&labels());
        Arc::clone(self.rows.write().known.entry(own(key)).or_insert(row))
    }

    fn others(&self) -> Arc<RowSeries> {
        if let Some(row) = &self.rows.read().others {
            return Arc::clone(row);
        }
        let row = self.resolve(&vec![OTHER.to_owned(); self.named_by]);
        Arc::clone(self.rows.write().others.get_or_insert(row))
    }

    fn resolve(&self, labels: &[String]) -> Arc<RowSeries> {
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let with = |label| labels.iter().copied().chain([label]).collect::<Vec<_>>();
        Arc::new(RowSeries {
            requests: RESULTS.map(|result| self.requests.with_label_values(&with(result))),
            tokens: TOKENS.map(|kind| self.tokens.with_label_values(&with(kind))),
            cost: self.cost.with_label_values(&labels),
            first_byte: self.first_byte.with_label_values(&labels),
        })
    }
}

impl RowSeries {
    fn add(&self, record: &Record) {
        let result = match record.outcome {
            RequestOutcome::Completed | RequestOutcome::ClientAborted => 0,
            _ if record.is_limit_refusal() => 2,
            _ => 1,
        };
        self.requests[result].inc();
        let usage = &record.usage;
        self.tokens[0].inc_by(usage.total().saturating_sub(usage.output));
        self.tokens[1].inc_by(usage.output);
        if let Some(usd) = usd(record.cost) {
            self.cost.inc_by(usd);
        }
        if let Some(ms) = record.first_byte_ms {
            self.first_byte.observe(Duration::from_millis(ms).as_secs_f64());
        }
    }
}
