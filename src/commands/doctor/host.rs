//! This machine: the data directory, its disk, and the gateway that may run.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;

use crate::config::Config;
use crate::http_client::readiness;
use crate::setup::finding::{Finding, bytes};
use crate::setup::{file_modes, secrets, unfinished_restore};

const DATA: &str = "data directory";
const DISK: &str = "disk";
const GATEWAY: &str = "gateway";
/// Free bytes beside a full journal below which the disk may fill up within a day.
const ROOM: u64 = 1 << 30;

/// Looks at the data directory and its disk.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let dir = config.data_dir.display();
    let fault = file_modes::not_writable(&config.data_dir)
        .map(|fault| Finding::fault(DATA, fault, "A start fails like this."));
    let Ok(metadata) = config.data_dir.metadata() else {
        if let Some(fault) = fault {
            return vec![fault];
        }
        return vec![Finding::note(
            DATA,
            format!("{dir} does not exist yet: the first start creates it"),
        )];
    };
    let mut findings: Vec<Finding> = file_modes::warnings(config)
        .into_iter()
        .map(|text| {
            Finding::warning(
                DATA,
                text,
                "Provider keys and the admin token are in it: let nobody else read it.",
            )
        })
        .collect();
    if let Err(error) = unfinished_restore::refuse(&config.data_dir) {
        findings.push(Finding::fault(
            DATA,
            format!("{error:#}"),
            "Run `tollgate restore` again with the same file.",
        ));
    }
    let own = std::fs::metadata("/proc/self").ok();
    findings.extend(fault.filter(|_| own.as_ref().is_some_and(|own| own.uid() == metadata.uid())));
    if let Some(own) = own
        && own.uid() != metadata.uid()
    {
        let text = format!(
            "{dir} belongs to user {}, and this command runs as user {}",
            metadata.uid(),
            own.uid()
        );
        findings.push(Finding::warning(
            DATA,
            text,
            "Run the command as the user that the gateway runs as.",
        ));
    }
    if config.auth.admin_token.is_none()
        && let Err(error) = secrets::kept_admin_token(config)
    {
        findings.push(Finding::fault(
            DATA,
            format!("{error:#}"),
            "Correct the file, or set auth.admin_token.",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(DATA, format!("{dir}, for its user alone")));
    }
    findings.push(disk(config));
    findings
}

/// A full journal must fit onto the disk: it holds what the database does not take.
fn disk(config: &Config) -> Finding {
    let dir = config.data_dir.display();
    let space = match nix::sys::statvfs::statvfs(&config.data_dir) {
        Ok(space) => space,
        Err(error) => {
            return Finding::warning(
                DISK,
                format!("the disk of {dir} cannot be examined: {error}"),
                "Look at it with `df`.",
            );
        }
    };
    let unit = space.fragment_size();
    let (free, whole) =
        (space.blocks_available().saturating_mul(unit), space.blocks().saturating_mul(unit));
    let journal = config.ledger.max_bytes;
    let text = format!("{} of {} are free at {dir}", bytes(free), bytes(whole));
    let advice = format!(
        "The journal alone may need {} (ledger.max_bytes). Free some space, shorten what is kept \
         (docs/operating.md), or move the data directory.",
        bytes(journal)
    );
    match free {
        _ if free < journal / 4 => Finding::fault(DISK, text, advice),
        _ if free < journal.saturating_add(ROOM) => Finding::warning(DISK, text, advice),
        _ => Finding::ok(DISK, text),
    }
}

/// Asks the gateway of this configuration whether it is ready; if none answers, whether its ports
/// are free.
pub(super) async fn gateway(config: &Config) -> Vec<Finding> {
    match readiness::ask(config.metrics.addr).await {
        Ok(answer) => {
            let faults =
                answer.faults.iter().map(|(part, fault)| (format!("{part} {fault}"), answer.ready));
            let found: Vec<Finding> = faults
                .map(|(text, ready)| {
                    let advice = "The parts below say more; docs/failures.md says what the gateway \
                        does meanwhile.";
                    match ready {
                        true => Finding::warning(GATEWAY, format!("ready, but: {text}"), advice),
                        false => Finding::fault(GATEWAY, format!("not ready: {text}"), advice),
                    }
                })
                .collect();
            if found.is_empty() { vec![Finding::ok(GATEWAY, "runs and is ready")] } else { found }
        }
        Err(why) => {
            let text = format!("none answers on {} (metrics.addr): {why}", config.metrics.addr);
            let listeners = [
                ("proxy.addr", config.proxy.addr),
                ("admin.addr", config.admin.addr),
                ("metrics.addr", config.metrics.addr),
            ];
            let taken = listeners.into_iter().filter_map(|(name, address)| in_use(name, address));
            std::iter::once(Finding::note(GATEWAY, text)).chain(taken).collect()
        }
    }
}

fn in_use(name: &str, address: SocketAddr) -> Option<Finding> {
    let error = TcpListener::bind(address).err()?;
    let advice = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "Another program, or a gateway with another metrics.addr, listens there."
        }
        std::io::ErrorKind::AddrNotAvailable => "This machine does not have that address.",
        _ => "The gateway cannot listen there.",
    };
    Some(Finding::fault(GATEWAY, format!("{name} ({address}): {error}"), advice))
}
