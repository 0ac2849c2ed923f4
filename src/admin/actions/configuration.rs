//! `configuration/*`: the whole configuration as one document.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::admin::actions::keys::fields;
use crate::admin::call::Call;
use crate::admin::declarative::{self, By, Desk, MAX_DOCUMENT, Order, Plan, Secrets};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Body, Field, Kind, Patch};
use crate::admin::table::{Operation, Permission};

const DOCUMENT: &[Field] = &[
    Field::new(
        "document",
        Kind::Document { max: MAX_DOCUMENT },
        "The document, as `getConfiguration` answers it and `tollgate apply` reads it from a file.",
    )
    .required(),
    Field::new("dryRun", Kind::Boolean, "Tells what would be changed, and changes nothing.").or_false(),
    Field::new("prune", Kind::Boolean, "Removes what a section of the document does not name.").or_false(),
];

const SECRETS: &[Field] = &[Field::new(
    "secrets",
    Kind::Choice(&["masked", "sealed"]),
    "`sealed`: encrypted, for a gateway with the same secret key.",
)
.or_text("masked")];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/configuration/getConfiguration",
            Permission::Admin,
            Body::of(&[], SECRETS),
            get_configuration,
        )
        .doc("The whole configuration as one document, keys as hashes."),
        Operation::action(
            "actions/configuration/applyConfiguration",
            Permission::Admin,
            Body::of(&[], DOCUMENT),
            apply_configuration,
        )
        .doc(
            "Puts a document in effect, in one transaction. Sections that it lacks are left alone; a record that it \
             names is described whole, and what is left out of it has its default. Every fault is answered with its \
             `pointer` into the document.",
        )
        .errors(&[
            Code::NOT_FOUND,
            Code::DUPLICATE_NAME,
            Code::DUPLICATE_WORD,
            Code::DUPLICATE_RULE,
            Code::CANNOT_DISABLE_LAST_KEY,
            fields::H5,
            fields::DAILY,
            fields::WEEKLY,
            fields::MONTHLY,
            fields::TOTAL,
            fields::CONCURRENT,
            Code::OPERATION_FAILED,
        ])
        .max_body(MAX_DOCUMENT + 1024),
    ]
}

/// The configuration.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    document: Map<String, Value>,
}

async fn get_configuration(call: Call) -> Result<Configuration, ApiError> {
    let how = match call.values.text("secrets").set().as_deref() {
        Some("sealed") => Secrets::Sealed,
        _ => Secrets::Masked,
    };
    let whole = call.ctx.store.load_whole().await?;
    let document = declarative::export(call.ctx.state.vault(), &whole, how)?;
    Ok(Configuration { document })
}

async fn apply_configuration(call: Call) -> Result<Plan, ApiError> {
    let is = |name: &str| call.values.boolean(name) == Patch::Set(true);
    let document = match call.values.document("document").set() {
        Some(Value::Object(document)) => document,
        _ => Map::new(),
    };
    let order = Order { document, prune: is("prune"), dry_run: is("dryRun"), may_take_last_key: false };
    let dry_run = order.dry_run;
    let by = By { actor: call.who()?.label(), client: call.client };
    let desk = Desk {
        vault: call.ctx.state.vault(),
        webhooks: &call.ctx.webhooks,
        time_zone: call.ctx.time_zone,
        now: call.now,
    };
    let mut tx = call.ctx.store.begin().await?;
    let mut applied = declarative::apply(desk, &mut tx, order, by).await?;
    if dry_run || applied.plan.changes.is_empty() {
        return Ok(applied.plan);
    }
    call.commit(tx).await?;
    applied.end_logins(&call.ctx.store).await?;
    if applied.prices_changed {
        call.ctx.jobs.reprice_soon();
    }
    applied.plan.applied = true;
    Ok(applied.plan)
}
