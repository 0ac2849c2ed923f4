//! `usage-logs/*`: requests with their callers, costs (and how these were computed) and outcomes,
//! and the values to filter by.

use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::bodies::{Id, Moment, Nothing, Plain, Text, Whole};
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::live::client;
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::cost::LogDetail;
use crate::admin::records::log::{Audience, LogPageRecord};
use crate::admin::records::rejected::RejectedPage;
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use crate::store::{LogFilter, LogPageAsk, StoreError};

/// Filters of all users' requests; every filter that is sent must match.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogQuery {
    /// Requests of one user.
    pub user_id: Option<Id>,
    /// Requests of one key.
    pub key_id: Option<Id>,
    /// Requests that one provider answered.
    pub provider_id: Option<Id>,
    /// The filters that every caller may use.
    #[serde(flatten)]
    pub own: OwnLogQuery,
}

/// The filters that every caller may use, and the page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnLogQuery {
    /// From this time, or the start of this day.
    pub start_date: Option<Moment>,
    /// Up to and with this time, or the end of this day.
    pub end_date: Option<Moment>,
    /// As the client asked for it, exactly.
    pub model: Option<Text<1, 512>>,
    /// The status that the client got.
    pub status_code: Option<Whole<u16, 100, 599>>,
    /// Requests of one session.
    pub session_id: Option<Text<1, 512>>,
    /// One request, by its header `x-tollgate-request-id`.
    pub request_id: Option<Text<1, 64>>,
    /// The request's path, exactly.
    pub endpoint: Option<Text<1, 512>>,
    /// At least so many attempts beyond the first.
    pub min_retry_count: Option<Whole<u32, 0, 100>>,
    /// Without requests that were answered with 200.
    #[serde(default)]
    pub exclude_status_code_200: bool,
    /// Counted from 1; for deep pages send `cursor` instead.
    #[serde(default)]
    pub page: Whole<u32, 1, 1_000_000, 1>,
    /// Entries in one answer.
    #[serde(default)]
    pub page_size: Whole<u32, 1, 100, 50>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<Text<1, 100>>,
}

/// Which request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfRequest {
    /// The `requestId` of an entry, or the header `x-tollgate-request-id`.
    pub request_id: Text<1, 64>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/usage-logs/getUsageLogs", Permission::User, get_usage_logs)
            .report()
            .doc("A page of the usage log, newest first; users see their own requests only."),
        Operation::action("actions/usage-logs/getModelList", Permission::User, get_model_list)
            .report()
            .doc("The models that requests named, sorted, at most 1000; users see their own."),
        Operation::action(
            "actions/usage-logs/getStatusCodeList",
            Permission::User,
            get_status_code_list,
        )
        .report()
        .doc(
            "The statuses that requests were ever answered with, sorted; a user's own, for a user.",
        ),
        Operation::action(
            "actions/usage-logs/getUsageLogDetail",
            Permission::User,
            get_usage_log_detail,
        )
        .report()
        .doc("One request, with its cost line by line at the current prices.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/usage-logs/getRejectedRequests",
            Permission::Admin,
            get_rejected_requests,
        )
        .reads()
        .doc(
            "Requests to the node that answers that failed authentication, the latest first: \
              equal ones share an entry. They are kept in memory, and not in the usage log.",
        ),
    ]
}

async fn get_rejected_requests(call: Call, _: Nothing) -> Result<RejectedPage, ApiError> {
    let (entries, total, since) = call.ctx.node.rejected.all();
    Ok(RejectedPage::new(&entries, total, since, &call.ctx.node.state.snapshot()))
}

async fn get_usage_logs(call: Call, body: LogQuery) -> Result<LogPageRecord, ApiError> {
    let who = call.who()?;
    let mut filter = LogFilter {
        user_id: body.user_id.map(|id| UserId(id.0)),
        key_id: body.key_id.map(|id| KeyId(id.0)),
        provider_id: body.provider_id.map(|id| ProviderId(id.0)),
        ..body.own.filter(call.ctx.time_zone)
    };
    if !who.is_admin() {
        if let Some(asked) = filter.user_id {
            who.must_own(asked)?;
        }
        let own = who.user_id().ok_or_else(|| ApiError::denied(Reason::NoUser))?;
        filter.scope = Some(own);
    }
    page(&call, &filter, body.own).await
}

/// The requested page of the rows that match the filter.
pub async fn page(
    call: &Call,
    filter: &LogFilter,
    query: OwnLogQuery,
) -> Result<LogPageRecord, ApiError> {
    let ask = LogPageAsk {
        page: query.page.0,
        page_size: query.page_size.0,
        cursor: query.cursor.plain(),
    };
    let found =
        call.ctx.node.store.usage_logs(filter, &ask).await.map_err(|error| match error {
            StoreError::Missing { .. } => {
                ApiError::because(Code::INVALID_FORMAT, Reason::CursorForeign).field("cursor")
            }
            other => other.into(),
        })?;
    Ok(LogPageRecord::new(found, Audience::of(call.who()?.is_admin()), ask.page, ask.page_size))
}

async fn get_model_list(call: Call, _: Nothing) -> Result<Vec<String>, ApiError> {
    Ok(call.ctx.node.store.models_asked_for(client::scope(call.who()?)).await?)
}

async fn get_status_code_list(call: Call, _: Nothing) -> Result<Vec<u16>, ApiError> {
    Ok(call.ctx.node.store.statuses_answered(client::scope(call.who()?)).await?)
}

async fn get_usage_log_detail(call: Call, body: OfRequest) -> Result<LogDetail, ApiError> {
    let who = call.who()?;
    let missing = || ApiError::by_code(Code::NOT_FOUND, "there is no such request in the log");
    let id = RequestId::parse(&body.request_id.0).ok_or_else(missing)?;
    let row = call.ctx.node.store.usage_log(id).await?.ok_or_else(missing)?;
    // Another user's request counts as missing: the answer to an id reveals nothing.
    if !who.is_admin() && row.record.user_id != who.user_id() {
        return Err(missing());
    }
    let snapshot = call.ctx.node.state.snapshot();
    let upstream = row.record.upstream_model.as_deref().unwrap_or(&row.record.model);
    let priced_by = row.record.price_model.as_deref().and_then(|entry| snapshot.prices.get(entry));
    let price = priced_by.or_else(|| snapshot.price_for(&row.record.model, upstream));
    let reader = Audience::of(who.is_admin());
    let find = |model: &str| snapshot.price_for(model, model).map(AsRef::as_ref);
    Ok(LogDetail::new(&row.record, reader, price.map(AsRef::as_ref), find))
}

impl OwnLogQuery {
    /// The filter; moments without an offset are in `tz`.
    pub fn filter(&self, tz: Tz) -> LogFilter {
        let text = |text: &Option<Text<1, 512>>| text.clone().plain();
        LogFilter {
            start: self.start_date.map(|start| start.start(tz)),
            // The store's end is exclusive, the wire's inclusive, to the millisecond.
            end: self.end_date.map(|end| end.end(tz).plus_ms(1)),
            model: text(&self.model),
            status_code: self.status_code.plain(),
            session_id: text(&self.session_id),
            // An invalid id matches nothing.
            request_id: self
                .request_id
                .as_ref()
                .map(|id| RequestId::parse(&id.0).unwrap_or(RequestId::NONE)),
            endpoint: text(&self.endpoint),
            min_retry_count: self.min_retry_count.plain(),
            exclude_status_200: self.exclude_status_code_200,
            ..LogFilter::default()
        }
    }
}
