//! `keys/*`: a user's API keys.
//!
//! The rules themselves are in `policy::key_rules`; they are called here, inside the write
//! transaction, with its present rows.

mod add;
mod batch;
mod edit;
pub mod fields;
mod remove;
pub mod rules;
mod statistics;

pub use add::blank as blank_key;

use self::fields::OfUser;
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::holdings::{self, LastUses};
use crate::admin::operation::{Operation, Permission};
use crate::admin::records::key::KeyRecord;
use crate::domain::ids::UserId;

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    let above = fields::above_users();
    vec![
        Operation::action("actions/keys/getKeys", Permission::Own, get_keys)
            .reads()
            .doc(
                "The keys of a user, masked, with what each has spent of its tightest limit, and \
                  when it was last used.",
            )
            .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/keys/getKeysWithStatistics",
            Permission::Own,
            statistics::get_keys_with_statistics,
        )
        .report()
        .doc("What each key of a user was used for: today, by model too, and in all.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action("actions/keys/addKey", Permission::Own, add::add_key)
            .creates()
            .doc("Creates a key and shows it, this once.")
            .errors(fields::ADD_ERRORS)
            .errors(&above),
        Operation::action("actions/keys/editKey", Permission::Own, edit::edit_key)
            .updates()
            .doc("Changes what is sent and leaves the rest.")
            .errors(fields::EDIT_ERRORS)
            .errors(&above),
        Operation::action("actions/keys/removeKey", Permission::Own, remove::remove_key)
            .deletes()
            .doc("Deletes a key for good; it stops working at once.")
            .errors(&[
                Code::NOT_FOUND,
                Code::CANNOT_DELETE_LAST_KEY,
                Code::CANNOT_DELETE_LAST_GROUP_KEY,
            ]),
        Operation::action("actions/keys/toggleKeyEnabled", Permission::Own, edit::toggle_key)
            .updates()
            .doc("Enables or disables a key.")
            .errors(&[Code::NOT_FOUND, Code::CANNOT_DISABLE_LAST_KEY]),
        Operation::action("actions/keys/renewKeyExpiresAt", Permission::Own, edit::renew_key)
            .updates()
            .doc("Gives a key a new expiry, and enables it on request.")
            .errors(&[Code::NOT_FOUND, Code::CANNOT_DISABLE_LAST_KEY]),
        Operation::action("actions/keys/batchUpdateKeys", Permission::Admin, batch::update)
            .updates()
            .doc("Changes up to 500 keys: all of them, or none.")
            .errors(fields::BATCH_ERRORS),
    ]
}

async fn get_keys(call: Call, body: OfUser) -> Result<Vec<KeyRecord>, ApiError> {
    let id = UserId(body.user_id.0);
    call.who()?.must_own(id)?;
    let snapshot = call.ctx.node.state.snapshot();
    let user = snapshot.user(id).ok_or_else(|| ApiError::missing("user", id.0))?;
    let mut keys: Vec<_> =
        snapshot.callers().map(|caller| &caller.key).filter(|key| key.user_id == id).collect();
    keys.sort_by_key(|key| key.id);
    let used = LastUses::read(&call.ctx, Some(id)).await?;
    let spent =
        holdings::of_keys(&call.ctx, keys.iter().copied().cloned().collect(), call.now).await;
    let mut records: Vec<_> =
        keys.into_iter().map(|key| KeyRecord::new(key, call.now).of(user, call.now)).collect();
    holdings::show_keys(&mut records, &spent, &used);
    Ok(records)
}
