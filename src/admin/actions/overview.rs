//! `overview/getOverviewData`: the figures of the current day.

use crate::admin::bodies::Nothing;
use crate::admin::call::Call;
use crate::admin::context::Context;
use crate::admin::envelope::ApiError;
use crate::admin::live::{Live, Scope, Viewer};
use crate::admin::operation::{Operation, Permission};
use crate::admin::problems;
use crate::admin::records::overview::{Attention, OverviewRecord};
use crate::domain::clock::Timestamp;
use crate::domain::ids::RequestId;
use crate::domain::limits::DailyReset;
use crate::limits::LiveSession;
use crate::policy::window::{Span, Window};
use crate::store::{Figures, OverviewAsk, OverviewFound, StoreError};

/// How many entries of each kind are returned.
const TOP: u32 = 5;

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/overview/getOverviewData", Permission::User, get_overview_data)
            .report()
            .doc(
                "Today's figures; users see their own, unless the system settings let them see \
                  everybody's. Administrators also see what may need attention.",
            ),
    ]
}

async fn get_overview_data(call: Call, _: Nothing) -> Result<OverviewRecord, ApiError> {
    let viewer = Viewer::of(call.who()?);
    let shown = visible(&call.ctx, viewer.scope());
    let found = read(&call.ctx, shown, call.now, &[]).await?;
    let live = call.ctx.node.counters.live_sessions(call.now).await;
    let attention = match viewer {
        Viewer::Everybody => Some(attention(&call.ctx, &call.live).await),
        Viewer::User(_) | Viewer::Key(..) => None,
    };
    Ok(OverviewRecord::new(&found, Figures::default(), sessions(&live, shown), attention))
}

/// What may need an administrator's attention.
pub async fn attention(ctx: &Context, live: &Live) -> Attention {
    let journal = (ctx.journal)();
    Attention::new(
        problems::all(ctx, &journal, ctx.node.clock.now()),
        live.near.look(ctx).await,
        journal,
    )
}

/// The users whose figures are visible to a viewer of the requests of `scope`.
pub fn visible(ctx: &Context, scope: Scope) -> Scope {
    scope.filter(|_| !ctx.node.state.peek().settings.allow_global_usage_view)
}

/// From midnight to midnight.
pub fn today(ctx: &Context, now: Timestamp) -> Span {
    Window::Daily(DailyReset::default()).calendar(now, ctx.time_zone)
}

/// The store's figures of the day so far.
pub async fn read(
    ctx: &Context,
    scope: Scope,
    now: Timestamp,
    pending: &[RequestId],
) -> Result<OverviewFound, StoreError> {
    let day = today(ctx, now);
    let yesterday = today(ctx, day.start.plus_ms(-1)).start;
    ctx.node
        .store
        .overview(&OverviewAsk { scope, today: day.start, yesterday, now, top: TOP, pending })
        .await
}

/// How many of the live sessions belong to the scope.
pub fn sessions(live: &[LiveSession], scope: Scope) -> u64 {
    let of_scope = live.iter().filter(|session| scope.is_none_or(|user| user == session.user));
    u64::try_from(of_scope.count()).unwrap_or(u64::MAX)
}
