//! `keys/getKeysWithStatistics`: from the database, so it includes the records of every process of
//! the gateway.

use super::fields::OfUser;
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::records::statistics::KeyStatisticsRecord;
use crate::domain::ids::UserId;
use crate::domain::limits::DailyReset;
use crate::policy::window::Window;

pub(super) async fn get_keys_with_statistics(
    call: Call,
    body: OfUser,
) -> Result<Vec<KeyStatisticsRecord>, ApiError> {
    let user = UserId(body.user_id.0);
    call.who()?.must_own(user)?;
    if call.ctx.node.state.snapshot().user(user).is_none() {
        return Err(ApiError::missing("user", user.0));
    }
    // From midnight to midnight, whatever the limits' own days are.
    let today = Window::Daily(DailyReset::default()).calendar(call.now, call.ctx.time_zone);
    let keys = call.ctx.node.store.key_statistics(user, today.start, today.end).await?;
    Ok(keys.into_iter().map(KeyStatisticsRecord::from).collect())
}
