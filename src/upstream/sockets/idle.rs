//! A socket between two requests: read for pings and for its end, until a request asks for it.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

use super::IdleSocket;
use super::socket::Socket;

/// Takes a socket that waits; `None`: there is none, or it has ended.
pub(super) async fn take(idle: Option<IdleSocket>) -> Option<Socket> {
    let (to, socket) = oneshot::channel();
    idle?.ask.send(to).ok()?;
    socket.await.ok()
}

/// Watches a socket until a request asks for it, it ends, or the time is over.
pub(super) async fn watch(
    mut socket: Socket,
    mut asked: oneshot::Receiver<oneshot::Sender<Socket>>,
    time: Duration,
) {
    tokio::select! {
        to = &mut asked => {
            if let Ok(to) = to {
                // Dropped if the request has ended meanwhile.
                let _ = to.send(socket);
            }
        }
        () = socket.until_closed() => {}
        () = sleep(time) => {
            // From now on a request gets none.
            drop(asked);
            socket.close().await;
        }
    }
}
