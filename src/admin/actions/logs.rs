//! `usage-logs/*`: requests with their callers, costs (and how these were computed) and outcomes,
//! and the values to filter by.

use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Body, DayEdge, Field, Kind, Patch, Values};
use crate::admin::live::client;
use crate::admin::records::cost::LogDetail;
use crate::admin::records::log::LogPageRecord;
use crate::admin::records::rejected::RejectedPage;
use crate::admin::table::{Operation, Permission};
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use crate::store::{LogFilter, LogPageAsk, StoreError};

const TEXT: Kind = Kind::text(1, 512);

/// Filters and the page; every filter that is sent must match.
pub const FILTERS: &[Field] = &[
    Field::new("startDate", Kind::Moment(DayEdge::Start), "From this time, or the start of this day.").nullable(),
    Field::new("endDate", Kind::Moment(DayEdge::End), "Up to and with this time, or the end of this day.").nullable(),
    Field::new("model", TEXT, "As the client asked for it, exactly.").nullable(),
    Field::new("statusCode", Kind::Integer { min: 100, max: 599 }, "").nullable(),
    Field::new("userId", Kind::ID, "").nullable(),
    Field::new("keyId", Kind::ID, "").nullable(),
    Field::new("providerId", Kind::ID, "").nullable(),
    Field::new("sessionId", TEXT, "").nullable(),
    Field::new("requestId", Kind::text(1, 64), "One request, by its header `x-tollgate-request-id`.").nullable(),
    Field::new("endpoint", TEXT, "The request's path, exactly.").nullable(),
    Field::new("minRetryCount", Kind::Integer { min: 0, max: 100 }, "At least so many attempts beyond the first.")
        .nullable(),
    Field::new("excludeStatusCode200", Kind::Boolean, "").or_false(),
    Field::new(
        "page",
        Kind::Integer { min: 1, max: 1_000_000 },
        "Counted from 1; for deep pages send `cursor` instead.",
    )
    .or_integer(1),
    Field::new("pageSize", Kind::Integer { min: 1, max: 100 }, "").or_integer(50),
    Field::new("cursor", Kind::text(1, 100), "The `nextCursor` of the page before.").nullable(),
];

const REQUEST_ID: &[Field] = &[Field::new(
    "requestId",
    Kind::text(1, 64),
    "The `requestId` of an entry, or the header `x-tollgate-request-id`.",
)
.required()];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/usage-logs/getUsageLogs", Permission::User, Body::of(&[], FILTERS), get_usage_logs)
            .doc("A page of the usage log, newest first; users see their own requests only."),
        Operation::action("actions/usage-logs/getModelList", Permission::User, Body::EMPTY, get_model_list)
            .doc("The models that were ever asked for, sorted, at most 1000; by the user themselves, for a user."),
        Operation::action("actions/usage-logs/getStatusCodeList", Permission::User, Body::EMPTY, get_status_code_list)
            .doc("The statuses that requests were ever answered with, sorted; a user's own, for a user."),
        Operation::action(
            "actions/usage-logs/getUsageLogDetail",
            Permission::User,
            Body::of(REQUEST_ID, &[]),
            get_usage_log_detail,
        )
        .doc("One request, with its cost line by line at the prices in force now.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/usage-logs/getRejectedRequests",
            Permission::Admin,
            Body::EMPTY,
            get_rejected_requests,
        )
        .doc("Requests to the node that answers that failed authentication, the latest first: equal ones share an entry. They are kept in memory, and not in the usage log."),
    ]
}

async fn get_rejected_requests(call: Call) -> Result<RejectedPage, ApiError> {
    let (entries, total, since) = call.ctx.rejected.all();
    Ok(RejectedPage::new(&entries, total, since, &call.ctx.state.snapshot()))
}

async fn get_usage_logs(call: Call) -> Result<LogPageRecord, ApiError> {
    let who = call.who()?;
    let mut filter = filter(&call.values);
    if !who.is_admin() {
        if let Some(asked) = filter.user_id {
            who.must_own(asked)?;
        }
        let own = who.user_id().ok_or_else(|| ApiError::denied("this credential is no user's"))?;
        filter.scope = Some(own);
    }
    page(&call, &filter).await
}

/// The requested page of the rows that match the filter.
pub async fn page(call: &Call, filter: &LogFilter) -> Result<LogPageRecord, ApiError> {
    let ask = LogPageAsk {
        page: call.values.count("page").set().unwrap_or(1),
        page_size: call.values.count("pageSize").set().unwrap_or(50),
        cursor: call.values.text("cursor").set(),
    };
    let found = call.ctx.store.usage_logs(filter, &ask).await.map_err(|error| match error {
        StoreError::Missing { .. } => ApiError::field(Code::INVALID_FORMAT, "cursor", "cursor: is not one of ours"),
        other => other.into(),
    })?;
    Ok(LogPageRecord::new(found, ask.page, ask.page_size))
}

async fn get_model_list(call: Call) -> Result<Vec<String>, ApiError> {
    Ok(call.ctx.store.models_asked_for(client::scope(call.who()?)).await?)
}

async fn get_status_code_list(call: Call) -> Result<Vec<u16>, ApiError> {
    Ok(call.ctx.store.statuses_answered(client::scope(call.who()?)).await?)
}

async fn get_usage_log_detail(call: Call) -> Result<LogDetail, ApiError> {
    let who = call.who()?;
    let text = call.values.text("requestId").set().unwrap_or_default();
    let missing = || ApiError::new(Code::NOT_FOUND, "there is no such request in the log");
    let id = RequestId::parse(&text).ok_or_else(missing)?;
    let row = call.ctx.store.usage_log(id).await?.ok_or_else(missing)?;
    // Another user's request counts as missing: the answer to an id reveals nothing.
    if !who.is_admin() && row.record.user_id != who.user_id() {
        return Err(missing());
    }
    let snapshot = call.ctx.state.snapshot();
    let upstream = row.record.upstream_model.as_deref().unwrap_or(&row.record.model);
    let priced_by = row.record.price_model.as_deref().and_then(|entry| snapshot.prices.get(entry));
    let price = priced_by.or_else(|| snapshot.price_for(&row.record.model, upstream));
    Ok(LogDetail::new(&row.record, price.map(AsRef::as_ref)))
}

fn filter(values: &Values) -> LogFilter {
    LogFilter {
        user_id: values.integer("userId").set().map(UserId),
        key_id: values.integer("keyId").set().map(KeyId),
        provider_id: values.integer("providerId").set().map(ProviderId),
        ..common(values)
    }
}

/// The filters that every caller may use.
pub fn common(values: &Values) -> LogFilter {
    LogFilter {
        start: values.moment("startDate").set(),
        // The store's end is exclusive, the wire's inclusive, to the millisecond.
        end: values.moment("endDate").set().map(|end| end.plus_ms(1)),
        model: values.text("model").set(),
        status_code: values.count("statusCode").set().and_then(|code| u16::try_from(code).ok()),
        session_id: values.text("sessionId").set(),
        // An invalid id matches nothing.
        request_id: values.text("requestId").set().map(|text| RequestId::parse(text.trim()).unwrap_or(RequestId::NONE)),
        endpoint: values.text("endpoint").set(),
        min_retry_count: values.count("minRetryCount").set(),
        exclude_status_200: matches!(values.boolean("excludeStatusCode200"), Patch::Set(true)),
        ..LogFilter::default()
    }
}
