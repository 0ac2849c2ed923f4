//! The list of Redis servers, which must be the same on all nodes: another one counts a user
//! elsewhere. The parts of a cluster are servers of the list, so their number must be the same too.
//!
//! Each server of several notes in `servers` which list it belongs to, and its place in it. A node
//! with another list, or with a single server, does not count there while nodes of that list do: it
//! counts for itself. When the last of them is gone it takes the server over, and rebuilds the
//! counters of all its servers from the ledger, since users have moved between them.

use std::sync::atomic::Ordering;

use redis::aio::MultiplexedConnection;
use sha2::{Digest as _, Sha256};

use super::Shared;
use super::earlier::live_nodes;
use super::examine::forget;
use super::link::{Fault, TIME_LIMIT, within};
use crate::redis::Server;

/// What each server of a list notes: a fingerprint of the list, the place, and how many there are.
/// `None` for a single server.
///
/// # Errors
/// When an address is invalid, or is in the list twice.
pub(super) fn notes(servers: &[Server]) -> Result<Vec<Option<String>>, String> {
    if servers.len() == 1 {
        return Ok(vec![None]);
    }
    let place = |server: &Server| match server.part.label() {
        // A single cluster has the notes itself: nodes may reach it by different addresses.
        Some(part) if server.part.of() == servers.len() => Ok(part),
        _ => server.place(),
    };
    let places = servers.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    for (at, place) in places.iter().enumerate() {
        if places[..at].contains(place) {
            return Err("it names a server twice".to_owned());
        }
    }
    let list = Sha256::digest(places.join("\n"));
    let list = hex::encode(&list[..6]);
    let of = servers.len();
    Ok((1..=of).map(|place| Some(format!("{list} {place}/{of}"))).collect())
}

impl Shared {
    /// Whether this node has just taken the server over from nodes with another list.
    ///
    /// # Errors
    /// [`Fault::OtherList`] while such nodes count there.
    pub(super) async fn agree_on_list(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<bool, Fault> {
        let name = format!("{}{NAME}", self.space);
        let found: Option<String> =
            within(TIME_LIMIT, redis::cmd("GET").arg(&name).query_async(connection)).await?;
        if found == self.note {
            self.is_of_others.store(false, Ordering::Relaxed);
            return Ok(false);
        }
        let epoch = format!("{}epoch", self.space);
        let counts: bool =
            within(TIME_LIMIT, redis::cmd("EXISTS").arg(epoch).query_async(connection)).await?;
        if counts && live_nodes(connection, &format!("{}nodes", self.space)).await? > 0 {
            self.is_of_others.store(true, Ordering::Relaxed);
            return Err(Fault::OtherList);
        }
        if counts {
            // First: if this node dies before it has rebuilt the counters, another one must.
            forget(connection, &self.space).await?;
        }
        match &self.note {
            Some(note) => {
                let set = redis::cmd("SET").arg(&name).arg(note).to_owned();
                within(TIME_LIMIT, set.query_async::<()>(connection)).await?;
            }
            None => {
                let del = redis::cmd("DEL").arg(&name).to_owned();
                within(TIME_LIMIT, del.query_async::<i64>(connection)).await?;
            }
        }
        self.is_of_others.store(false, Ordering::Relaxed);
        if counts {
            tracing::warn!(
                server = self.part.number(),
                of = self.part.of,
                "no node with another list of Redis servers is left: the counters of all are \
                 rebuilt from the ledger"
            );
            self.moves.fetch_add(1, Ordering::SeqCst);
        }
        Ok(counts)
    }
}

/// The name of the note, after what all names begin with.
pub(super) const NAME: &str = "servers";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::Secret;

    #[test]
    fn notes_differ_by_list_order_and_place_and_not_by_the_password() {
        let list = |urls: &[&str]| {
            let servers: Vec<_> = urls.iter().map(|url| Server::new(Secret::new(*url))).collect();
            notes(&servers)
        };
        let (a, b) = ("redis://me:one@a:1", "rediss://b/2");
        let made = list(&[a, b]).unwrap();
        assert_eq!(made, list(&["redis://other@A:1/0", b]).unwrap());
        assert!(made[0].as_ref().unwrap().ends_with(" 1/2") && made[0] != made[1]);
        assert_ne!(made, list(&[b, a]).unwrap());
        assert_ne!(made, list(&[a, "redis://b/3"]).unwrap());
        assert_ne!(made[..], list(&[a, b, "redis://c"]).unwrap()[..2]);
        assert_eq!(list(&[a]), Ok(vec![None]));
        // Each node may reach a server by a separate address, if it has a name.
        let named = list(&["redis://near:1#one", "redis://near:2#two"]).unwrap();
        assert_eq!(named, list(&["redis://me:word@other:7#one", "redis://a#two"]).unwrap());
        let twice = list(&[a, b, "redis://a:1"]).unwrap_err();
        assert!(twice.contains("twice"), "{twice}");
    }

    #[test]
    fn notes_differ_by_the_number_of_parts_of_a_cluster() {
        let list = |urls: &[&str], parts: usize| {
            let server = |url: &&str| Server::new(Secret::new(*url)).divided(parts);
            notes(&urls.iter().flat_map(server).collect::<Vec<_>>())
        };
        let (a, b) = ("redis+cluster://a:1,b:2", "redis+cluster://c:3");
        assert_eq!(list(&[a], 1), Ok(vec![None]));
        let three = list(&[a], 3).unwrap();
        assert!(three.len() == 3 && three[2].as_ref().unwrap().ends_with(" 3/3"));
        assert_eq!(list(&["redis+cluster://b:2"], 3).unwrap(), three);
        assert_ne!(list(&[a], 4).unwrap()[..3], three[..]);
        let both = list(&[a, b], 3).unwrap();
        assert_ne!(both, list(&[b, a], 3).unwrap());
        assert!(list(&[a, a], 3).unwrap_err().contains("twice"));
        let named = list(&["redis+cluster://a#one", "redis+cluster://b#two"], 3);
        assert_eq!(named, list(&["redis+cluster://c#one", "redis+cluster://d#two"], 3));
    }
}
