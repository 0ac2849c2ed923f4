//! `configuration/*`: the whole configuration as one document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::admin::actions::keys::fields;
use crate::admin::bodies::{Document, OneOf, Word};
use crate::admin::call::Call;
use crate::admin::declarative::{self, By, Desk, MAX_DOCUMENT, Order, Plan, Secrets};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};

/// The body of `configuration/applyConfiguration`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplyConfiguration {
    /// The document, as `getConfiguration` answers it and `tollgate apply` reads it from a file.
    pub document: Document<MAX_DOCUMENT>,
    /// Tells what would be changed, and changes nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Removes what a section of the document does not name.
    #[serde(default)]
    pub prune: bool,
}

/// The body of `configuration/getConfiguration`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetConfiguration {
    /// `sealed`: encrypted, for a gateway with the same secret key.
    #[serde(default)]
    pub secrets: OneOf<Secrets>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/configuration/getConfiguration",
            Permission::Admin,
            get_configuration,
        )
        .reads()
        .doc("The whole configuration as one document, keys as hashes."),
        Operation::action(
            "actions/configuration/applyConfiguration",
            Permission::Admin,
            apply_configuration,
        )
        .doc(
            "Puts a document in effect, in one transaction. Sections that it lacks are left alone; \
             a record that it names is described whole, and what is left out of it has its \
             default. Every fault is answered with its `pointer` into the document.",
        )
        .errors(&[
            Code::NOT_FOUND,
            Code::DUPLICATE_NAME,
            Code::DUPLICATE_WORD,
            Code::DUPLICATE_RULE,
            Code::CANNOT_DISABLE_LAST_KEY,
        ])
        .errors(&fields::above_users())
        .errors(&[Code::OPERATION_FAILED])
        .max_body(MAX_DOCUMENT + 1024),
    ]
}

impl Word for Secrets {
    const ALL: &'static [Self] = &[Self::Masked, Self::Sealed];

    fn word(self) -> &'static str {
        match self {
            Self::Masked => "masked",
            Self::Sealed => "sealed",
        }
    }
}

/// The configuration.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    document: Map<String, Value>,
}

async fn get_configuration(call: Call, body: GetConfiguration) -> Result<Configuration, ApiError> {
    let whole = call.ctx.node.store.load_whole().await?;
    let document = declarative::export(call.ctx.node.state.vault(), &whole, body.secrets.0)?;
    Ok(Configuration { document })
}

async fn apply_configuration(call: Call, body: ApplyConfiguration) -> Result<Plan, ApiError> {
    let dry_run = body.dry_run;
    let order =
        Order { document: body.document.0, prune: body.prune, dry_run, may_take_last_key: false };
    let by = By { actor: call.who()?.label(), client: call.client };
    let desk = Desk {
        vault: call.ctx.node.state.vault(),
        webhooks: &call.ctx.webhooks,
        time_zone: call.ctx.time_zone,
        now: call.now,
    };
    let mut tx = call.ctx.node.store.begin().await?;
    let mut applied = declarative::apply(desk, &mut tx, order, by).await?;
    if dry_run || applied.plan.changes.is_empty() {
        return Ok(applied.plan);
    }
    call.commit(tx).await?;
    applied.end_logins(&call.ctx.node.store).await?;
    if applied.prices_changed {
        call.ctx.jobs.reprice_soon();
    }
    applied.plan.applied = true;
    Ok(applied.plan)
}
