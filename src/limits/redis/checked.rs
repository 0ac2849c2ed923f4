//! Whether the counters of an epoch were checked in the process of Redis that has them now.
//!
//! A server that starts may have older data than it had before. A node that counted there notices:
//! the number of its last batch or heartbeat is missing ([`super::reconcile`]). A node that did not
//! count there goes by the server's script cache, which ends with the process and is neither saved
//! nor replicated. A node that built the counters, or found its own number in them, puts a script
//! there whose text names their epoch.
//!
//! Without the script, a node that starts rebuilds the counters: needlessly if the cache was
//! flushed, or if the server has none.

use redis::aio::MultiplexedConnection;
use redis::{Script, Value};

use super::Shared;
use super::link::{Fault, TIME_LIMIT, within};

impl Shared {
    /// Whether a node has checked the counters of this epoch since the server's process began.
    pub(super) async fn is_checked(
        &self,
        connection: &mut MultiplexedConnection,
        epoch: &str,
    ) -> Result<bool, Fault> {
        let script = Script::new(&text(epoch));
        match self.call_script(connection, "EVALSHA", script.get_hash()).await {
            Err(fault) if fault.is_unknown_script() => Ok(false),
            answer => answer.map(|_| true),
        }
    }

    /// Notes that the counters of this epoch have everything that was confirmed.
    pub(super) async fn set_checked(
        &self,
        connection: &mut MultiplexedConnection,
        epoch: &str,
    ) -> Result<(), Fault> {
        self.call_script(connection, "EVAL", &text(epoch)).await.map(|_| ())
    }

    /// With a name of the counters, so that only their server runs it.
    async fn call_script(
        &self,
        connection: &mut MultiplexedConnection,
        command: &'static str,
        script: &str,
    ) -> Result<Value, Fault> {
        let mut call = redis::cmd(command);
        call.arg(script).arg(1).arg(format!("{}epoch", self.space));
        within(TIME_LIMIT, call.query_async(connection)).await
    }
}

/// The text of the script.
fn text(epoch: &str) -> String {
    format!("return '{}'", hex::encode(epoch))
}
