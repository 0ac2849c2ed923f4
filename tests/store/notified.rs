//! Notifications of changes, from a server that does not answer.

use std::time::Duration;

use tollgate::domain::secret::Secret;
use tollgate::store::{Store, StoreError};

use crate::support::postgres::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_accepts_a_listener_and_does_not_answer_is_given_up() {
    let server = Server::own();
    let store = Store::open_postgres(&Secret::new(server.fresh_database()), 2).await.unwrap();
    server.freeze();
    let listening = tokio::time::timeout(Duration::from_secs(20), store.changes()).await;
    server.thaw();
    assert!(matches!(listening, Ok(Err(StoreError::Busy { .. }))));
}
