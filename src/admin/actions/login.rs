//! Login, logout, the current login and the gateway's name, as operations.

use crate::admin::auth::login::{login, logout};
use crate::admin::auth::whoami::{site, whoami};
use crate::admin::envelope::Code;
use crate::admin::operation::{OPEN_BODY, Operation, Permission};

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::cookie_action("auth/login", Permission::Open, login)
            .reads()
            .doc("Trades an API key or the administrator token for a session cookie.")
            .max_body(OPEN_BODY)
            .errors(&[Code::UNAUTHORIZED, Code::TOO_MANY_ATTEMPTS]),
        Operation::cookie_action("auth/logout", Permission::Open, logout)
            .reads()
            .max_body(OPEN_BODY)
            .doc("Ends the session that the cookie carries."),
        Operation::action("auth/whoami", Permission::Any, whoami).reads().doc(
            "Says who the credential belongs to, and what a web UI must know about this gateway.",
        ),
        Operation::document("auth/site", site).doc("What this gateway is called."),
    ]
}
