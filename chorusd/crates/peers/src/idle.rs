//! A connection without a tunnel, until it gets one or ends.

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::hello::Control;
use crate::limits::PoolLimits;
use crate::transport::Connection;

/// Asks for the connection.
pub(crate) type Claim = oneshot::Sender<Connection>;

/// Keeps a connection until it is claimed. It ends if the other side closes it or sends something, if a ping is not answered,
/// or after the idle time. Whoever claims it while a ping is on its way gets it after the answer.
pub(crate) async fn keep(mut connection: Connection, mut claims: oneshot::Receiver<Claim>, limits: PoolLimits) {
    let idle_until = Instant::now() + limits.idle_limit;
    loop {
        let claimed = tokio::select! {
            biased;
            claimed = &mut claims => Some(claimed),
            _ = connection.reader.next_control() => return,
            () = sleep_until(idle_until) => return,
            () = sleep(limits.ping_interval) => None,
        };
        match claimed {
            Some(Ok(claim)) => {
                // The other side may have closed it just now.
                if connection.reader.next_control().now_or_never().is_none() {
                    let _ = claim.send(connection);
                }
                return;
            }
            Some(Err(_)) => return,
            None => {}
        }
        if !matches!(timeout(limits.ping_timeout, ping(&mut connection)).await, Ok(Some(()))) {
            return tracing::debug!(node = connection.peer.id, "a connection without a tunnel does not answer");
        }
    }
}

async fn ping(connection: &mut Connection) -> Option<()> {
    connection.writer.send_control(&Control::Ping).await.ok()?;
    let answer = connection.reader.next_control().await.ok()?;
    matches!(serde_json::from_slice(&answer), Ok(Control::Pong)).then_some(())
}
