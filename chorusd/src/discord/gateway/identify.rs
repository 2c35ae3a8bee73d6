//! Leave to begin a new session. The gateway's library asks for it before it sends IDENTIFY.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use twilight_gateway::queue::Queue;

use crate::discord::bridge::Bridge;
use crate::failure::{Failure, Result};
use crate::ops::discord::identifies;

/// Discord takes one in five seconds, as it hears them.
const APART: Duration = Duration::from_millis(5_500);

/// No leave: why.
#[derive(Debug)]
pub enum Refused {
    /// The budget is used up until then.
    Until(Timestamp),
    /// It cannot be counted.
    Uncounted(Failure),
}

/// Who counts new sessions; one for each connection.
#[derive(Debug, Clone)]
pub struct Identify {
    pub bridge: Arc<Bridge>,
    /// Hears of a refusal. What would give leave goes with it: dropped sooner, it would be asked for again at once.
    pub refused: mpsc::Sender<(Refused, oneshot::Sender<()>)>,
}

impl Queue for Identify {
    fn enqueue(&self, _: u32) -> oneshot::Receiver<()> {
        let (leave, given) = oneshot::channel();
        let Self { bridge, refused } = self.clone();
        let tasks = bridge.tasks.clone();
        tasks.spawn(async move {
            let taken = tokio::select! {
                taken = take(&bridge, &leave) => taken,
                () = bridge.stop.cancelled() => return,
            };
            match taken {
                Ok(Ok(())) => drop(leave.send(())),
                Ok(Err(at)) => drop(refused.try_send((Refused::Until(at), leave))),
                Err(failure) => drop(refused.try_send((Refused::Uncounted(failure), leave))),
            }
        });
        given
    }
}

/// It is on the disk when this returns.
async fn take(bridge: &Bridge, leave: &oneshot::Sender<()>) -> Result<Result<(), Timestamp>> {
    let newest = identifies::budget(&bridge.ops).await?.newest;
    let since = newest.and_then(|newest| Duration::try_from(bridge.ops.clock.now().duration_since(newest)).ok());
    // Once, whatever the clock says: it may stand still.
    if let Some(left) = since.and_then(|since| APART.checked_sub(since)) {
        sleep(left).await;
    }
    if leave.is_closed() {
        return Err(Failure::internal("the connection is gone"));
    }
    identifies::take(&bridge.ops).await
}
