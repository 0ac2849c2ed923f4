//! Creates and registers a metric in one step.

use prometheus::{
    CounterVec, Error, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

/// A histogram: its name, its help text, and the upper bounds of its buckets, ascending.
#[derive(Clone, Copy)]
pub(super) struct Buckets {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) bounds: &'static [f64],
}

impl Buckets {
    pub(super) fn options(self) -> HistogramOpts {
        HistogramOpts::new(self.name, self.help).buckets(self.bounds.to_vec())
    }
}

/// Makes and registers in one step.
pub(super) struct Registration<'a>(&'a Registry);

impl<'a> Registration<'a> {
    pub(super) const fn new(registry: &'a Registry) -> Self {
        Self(registry)
    }

    pub(super) fn build_info(&self) -> Result<(), Error> {
        let info =
            self.gauges("tollgate_build_info", "Always 1; the version is a label.", &["version"])?;
        info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Ok(())
    }

    fn keep<M: prometheus::core::Collector + Clone + 'static>(
        &self,
        metric: M,
    ) -> Result<M, Error> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.keep(IntCounter::new(name, help)?)
    }

    pub(super) fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<IntCounterVec, Error> {
        self.keep(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    pub(super) fn sums(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<CounterVec, Error> {
        self.keep(CounterVec::new(Opts::new(name, help), labels)?)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.keep(IntGauge::new(name, help)?)
    }

    pub(super) fn gauges(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<IntGaugeVec, Error> {
        self.keep(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    pub(super) fn histograms(
        &self,
        opts: HistogramOpts,
        labels: &[&str],
    ) -> Result<HistogramVec, Error> {
        self.keep(HistogramVec::new(opts, labels)?)
    }

    pub(super) fn histogram(&self, buckets: Buckets) -> Result<Histogram, Error> {
        self.keep(Histogram::with_opts(buckets.options())?)
    }
}
