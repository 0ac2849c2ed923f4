//! A power failure during the very first start: the secrets that it generates are complete or
//! missing, and stay from the moment at which the gateway serves.

use std::collections::BTreeSet;
use std::path::Path;

use super::disk::{Disk, Left, Reached};
use super::trace::{self, Call};
use crate::support::gateway::Gateway;

/// Below the directory in which the data directory is made, with their lengths.
const SECRETS: [(&str, usize); 2] = [("data/secret.key", 64), ("data/admin.token", 49)];

#[tokio::test(flavor = "multi_thread")]
async fn the_secrets_of_a_first_start_are_whole_or_missing_and_stay() {
    let mut gateway = Gateway::prepare(&[("LOG_LEVEL", "warn")]);
    gateway.unset("ADMIN_TOKEN");
    let below = gateway.dir.path().join("below");
    std::fs::create_dir(&below).unwrap();
    gateway.set("TOLLGATE_DATA_DIR", below.join("data").to_str().unwrap());
    let mut disk = Disk::of(&below);
    let out = gateway.dir.path().join("trace");
    gateway.run_by(trace::runner(&out));
    gateway.spawn();
    gateway.ready().await;
    let pid = gateway.pid();
    gateway.kill();
    let ops: Vec<_> = trace::read(&out, pid, &below, 0).await;
    ops.iter().for_each(|op| disk.run(op));
    // Both secrets are generated before the journal, and nothing is sealed earlier.
    let used =
        |op: &super::Op| matches!(&op.call, Call::MakeDir { path } if path.ends_with("journal"));
    let used = ops.iter().position(used).unwrap();
    let mut tried = BTreeSet::new();
    for (at, _) in ops.iter().enumerate().filter(|(_, op)| !of_the_database(&op.call)) {
        let (certain, open) = disk.at(at);
        for (how, names, contents) in [
            ("nothing", false, false),
            ("everything", true, true),
            ("names", true, false),
            ("contents", false, true),
        ] {
            let kept = open.iter().filter(|change| if change.2 { names } else { contents });
            let reached: Reached =
                certain.clone().into_iter().chain(kept.map(|c| (c.0, Left::Whole))).collect();
            for (secret, length) in SECRETS {
                let state = disk.content(Path::new(secret), &reached);
                let about =
                    format!("power gone after operation {at}, beyond the certain {how}: {secret}");
                assert!(
                    state.as_ref().is_none_or(|bytes| bytes.len() == length),
                    "{about} is torn: {state:?}"
                );
                assert!(at < used || state.is_some(), "{about} is lost");
                tried.insert((secret, state.is_some()));
            }
        }
    }
    assert_eq!(tried.len(), 4, "each secret was seen missing and there: {tried:?}");
}

/// There are many of these, without any secret. Syncs of the directory are not among them.
fn of_the_database(call: &Call) -> bool {
    let (Call::Write { path, .. } | Call::Truncate { path, .. } | Call::Sync { path }) = call
    else {
        return false;
    };
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tollgate.db"))
}
