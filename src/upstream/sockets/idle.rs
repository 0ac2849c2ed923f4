//! A socket between two requests: read for pings and for its end, until a request asks for it.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

use super::socket::Socket;

/// Asks the task of an idle socket for it.
pub(super) type Ask = oneshot::Sender<oneshot::Sender<Socket>>;

/// Takes a socket that waits; `None`: there is none, or it has ended.
pub(super) async fn take(ask: Option<Ask>) -> Option<Socket> {
    let (to, socket) = oneshot::channel();
    ask?.send(to).ok()?;
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
