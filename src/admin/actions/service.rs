//! The service's own operation: health. `admin::table` has the one that describes them all.

use schemars::JsonSchema;
use serde::Serialize;

use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::operation::Operation;
use crate::admin::records::Iso;

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::document("actions/health", health)
            .doc("Whether the administration surface answers, and its version."),
    ]
}

/// The service answers. `/readyz` on the metrics listener says whether it is ready to proxy.
#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
    timestamp: Iso,
    version: &'static str,
}

async fn health(call: Call) -> Result<Health, ApiError> {
    Ok(Health { status: "ok", timestamp: Iso(call.now), version: call.ctx.version })
}
