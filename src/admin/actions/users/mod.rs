//! `users/*`: people, and what each of them may use.

pub(in crate::admin) mod edit;
pub mod fields;

use crate::admin::actions::keys::fields::above_users;
use crate::admin::bodies::Nothing;
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::holdings::{self, LastUses};
use crate::admin::operation::{Operation, Permission};
use crate::admin::records::key::KeyRecord;
use crate::admin::records::user::UserRecord;
use crate::domain::user::User;

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/users/getUsers", Permission::Admin, get_users).reads().doc(
            "All users with their keys, what each has spent of its tightest limit, and when \
                  it was last used.",
        ),
        Operation::action("actions/users/addUser", Permission::Admin, edit::add_user)
            .creates()
            .doc("Creates a user and a key named `default`, which is shown this once."),
        Operation::action("actions/users/editUser", Permission::Admin, edit::edit_user)
            .updates()
            .doc(
                "Changes what is sent and leaves the rest. A limit is not set below that of one \
                 of the user's keys.",
            )
            .errors(&[Code::NOT_FOUND])
            .errors(&above_users()),
        Operation::action("actions/users/removeUser", Permission::Admin, edit::remove_user)
            .deletes()
            .doc("Deletes a user; their keys stop working at once. What they used stays on record.")
            .errors(&[Code::NOT_FOUND]),
    ]
}

async fn get_users(call: Call, _: Nothing) -> Result<Vec<UserRecord>, ApiError> {
    let ctx = &*call.ctx;
    let snapshot = ctx.node.state.snapshot();
    let mut keys: Vec<_> = snapshot.callers().map(|caller| &caller.key).collect();
    keys.sort_by_key(|key| (key.user_id, key.id));
    let used = LastUses::read(ctx, None).await?;
    let spent_by_keys =
        holdings::of_keys(ctx, keys.iter().copied().cloned().collect(), call.now).await;
    let keys_of = |user: &User| {
        let first = keys.partition_point(|key| key.user_id < user.id);
        let own = keys[first..].iter().take_while(|key| key.user_id == user.id);
        let mut own: Vec<_> = own.map(|key| KeyRecord::new(key, call.now)).collect();
        holdings::show_keys(&mut own, &spent_by_keys, &used);
        own
    };
    let mut users: Vec<_> = snapshot.users.values().collect();
    users.sort_by_key(|user| user.id);
    let spent_by_users =
        holdings::of_users(ctx, users.iter().copied().cloned().collect(), call.now).await;
    let mut records: Vec<_> =
        users.into_iter().map(|user| UserRecord::new(user, keys_of(user), call.now)).collect();
    holdings::show_users(&mut records, &spent_by_users, &used);
    Ok(records)
}
