//! Login and logout as operations.

use crate::admin::auth::login::{LOGIN, login, logout};
use crate::admin::envelope::Code;
use crate::admin::fields::Body;
use crate::admin::table::{Operation, Permission};

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::cookie_action("auth/login", Permission::Open, Body::of(&[], LOGIN), login)
            .doc("Trades an API key or the administrator token for a session cookie.")
            .errors(&[Code::UNAUTHORIZED, Code::TOO_MANY_ATTEMPTS]),
        Operation::cookie_action("auth/logout", Permission::Open, Body::EMPTY, logout)
            .doc("Ends the session that the cookie carries."),
    ]
}
