//! The ledger record of one request, collected while the request runs. `settle.rs` settles it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::caller::Principal;
use crate::domain::batch::BatchAsk;
use crate::domain::endpoint::{ApiEndpoint, EndpointAsk, Unit};
use crate::domain::feature_policy::FeatureUse;
use crate::domain::format::WireFormat;
use crate::domain::ids::SessionId;
use crate::domain::prompt_print::PromptPrint;
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, RequestOutcome};
use crate::formats::route::Operation;
use crate::formats::usage::Bill;
use crate::limits::Permit;
use crate::policy::units::{self, Figures};
use crate::policy::{bill, searches};
use crate::state::Snapshot;

/// How a request ended, from the point of view of its reply.
#[derive(Debug, Clone)]
pub struct Ending {
    pub outcome: RequestOutcome,
    pub status: u16,
    pub error: Option<String>,
}

impl Ending {
    /// The gateway itself failed.
    pub fn internal(why: &str) -> Self {
        Self { outcome: RequestOutcome::Internal, status: 500, error: Some(why.to_owned()) }
    }

    /// The client left before its reply was complete.
    pub fn client_aborted() -> Self {
        Self {
            outcome: RequestOutcome::ClientAborted,
            status: 499,
            error: Some("the client left".to_owned()),
        }
    }
}

/// The facts of a body that the record needs; the body itself may be dropped by then.
pub struct BodyFacts {
    /// The model that was asked for: of several that the client's name stands for, the one that the
    /// provider was asked for, or else the first choice.
    pub model: Arc<str>,
    /// The client's name stands for models: whether the cheaper ones are used.
    pub is_degraded: Option<bool>,
    pub session: SessionId,
    pub stream: bool,
    /// Tokens, estimated from the body's size.
    pub estimated_input: u64,
    /// The client's format, and what the request uses.
    pub format: WireFormat,
    pub features: Vec<FeatureUse>,
    /// What is asked of an endpoint.
    pub ask: Option<Arc<EndpointAsk>>,
    /// The fingerprint of the prompt; `None` if cache misses are not explained.
    pub print: Option<Box<PromptPrint>>,
}

/// The provider that answered, or the last one that was tried.
pub struct AskedProvider {
    pub provider: Arc<Provider>,
    pub model: Arc<str>,
    /// Start of the last attempt at this provider.
    pub began: Instant,
    /// The id of its reply, if it may be asked about that in the session's next request.
    pub reply: Option<Arc<str>>,
}

/// The record of a request in flight.
pub struct OpenRecord {
    pub(super) caller: Principal,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) operation: Operation,
    pub body: Option<BodyFacts>,
    pub permit: Option<Permit>,
    pub decisions: Vec<Decision>,
    pub attempts: u32,
    pub asked: Option<AskedProvider>,
    pub bill: Option<Bill>,
    pub first_byte: Option<Duration>,
}

impl OpenRecord {
    /// The record of a request whose caller is known, and nothing else yet.
    pub fn new(caller: Principal, snapshot: Arc<Snapshot>, operation: Operation) -> Self {
        Self {
            caller,
            snapshot,
            operation,
            body: None,
            permit: None,
            decisions: Vec::new(),
            attempts: 0,
            asked: None,
            bill: None,
            first_byte: None,
        }
    }

    /// The caller and the snapshot, after a change of the configuration.
    pub(super) fn renew(&mut self, caller: Principal, snapshot: Arc<Snapshot>) {
        (self.caller, self.snapshot) = (caller, snapshot);
    }

    /// Whether a reply to the request has usage that is billed.
    pub fn is_metered(&self) -> bool {
        self.operation.is_metered()
    }

    /// Notes what a reply is billed by.
    pub fn note_bill(&mut self, mut noted: Option<Bill>) {
        let is_stored = matches!(self.operation, Operation::Stored(_));
        if is_stored || self.operation.endpoint().is_some_and(ApiEndpoint::is_held) {
            return;
        }
        if let Some(bill) = &mut noted {
            self.count_units(bill);
        }
        if let (Some(bill), Some(asked)) = (&mut noted, &self.asked) {
            let format = asked.provider.kind.format();
            let body = self.body.as_ref().filter(|body| body.format == format);
            let features = body.map_or(&[][..], |body| &body.features);
            add_asked(bill, &self.snapshot, (format, &asked.model), features);
        }
        self.bill = noted;
    }

    /// What an attempt is billed by whose reply the client does not get.
    pub fn bill_of_other(&mut self, other: AskedProvider, bill: Bill) -> Option<Bill> {
        let (asked, kept) = (self.asked.replace(other), self.bill.take());
        self.note_bill(Some(bill));
        self.asked = asked;
        std::mem::replace(&mut self.bill, kept)
    }

    /// What a reply of an endpoint is charged for: tokens or units.
    fn count_units(&self, bill: &mut Bill) {
        let asked = self.body.as_ref().and_then(|body| Some((body, body.ask.as_ref()?)));
        let (Some((body, ask)), Some(asked)) = (asked, &self.asked) else { return };
        if !ask.endpoint.has_units() {
            return;
        }
        let find = |name: &str| self.snapshot.price_for(name, name).map(AsRef::as_ref);
        let own = self.snapshot.price_for(&body.model, &asked.model).map(AsRef::as_ref);
        let parts = std::mem::take(&mut bill.parts);
        let reported = Figures { usage: bill.usage, parts, estimated: bill.estimated };
        let Figures { usage, parts, estimated } =
            units::charged(ask, &asked.model, own, find, reported);
        (bill.usage, bill.parts, bill.estimated) = (usage, parts, estimated);
    }

    /// What the request asks for, if it makes a batch.
    pub fn batch(&self) -> Option<Arc<BatchAsk>> {
        let ask = self.body.as_ref()?.ask.as_ref()?;
        ask.batch.clone().filter(|_| ask.endpoint.unit == Unit::Batch)
    }

    /// Input tokens, estimated from the request's size; used if no provider reported them.
    pub fn estimated_input(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.estimated_input)
    }
}

/// Adds what the reply does not say: how many searches are charged at the provider's model, and what
/// only the request says of its features.
pub(super) fn add_asked(
    bill: &mut Bill,
    snapshot: &Snapshot,
    (format, model): (WireFormat, &str),
    features: &[FeatureUse],
) {
    let usage = &mut bill.usage;
    if usage.web_searches > 1 {
        let price = snapshot.price_for(model, model);
        let facts = price.and_then(|price| price.facts.as_ref());
        let own = facts.and_then(|facts| facts.searches.as_ref());
        usage.web_searches = searches::charged(format, model, own, usage.web_searches);
    }
    bill::as_asked(features, usage, &mut bill.parts);
}
