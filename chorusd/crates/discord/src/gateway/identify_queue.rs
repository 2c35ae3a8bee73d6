//! Permission to begin a new session. The gateway library asks for it before it sends IDENTIFY.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_engine::ops::Ops;
use chorus_engine::ops::discord::identify_budget;
use chorus_runtime::SpawnTracked as _;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use twilight_gateway::queue::Queue;

use crate::app::DiscordApp;

/// Discord accepts one IDENTIFY in five seconds, measured at its end.
const IDENTIFY_INTERVAL: Duration = Duration::from_millis(5_500);

/// Why a new session may not be begun.
#[derive(Debug)]
pub(super) enum IdentifyDenied {
    /// The budget is used up until this time.
    Until(Timestamp),
    /// The budget cannot be read or written.
    BudgetUnavailable(Error),
}

/// Counts new sessions against the budget; one for each connection.
#[derive(Debug, Clone)]
pub(super) struct IdentifyQueue {
    pub app: Arc<DiscordApp>,
    /// Receives the denials. The library's permission channel goes with it: if it were dropped, the library would ask
    /// again at once.
    pub denied: mpsc::Sender<(IdentifyDenied, oneshot::Sender<()>)>,
}

impl Queue for IdentifyQueue {
    fn enqueue(&self, _: u32) -> oneshot::Receiver<()> {
        let (leave, given) = oneshot::channel();
        let Self { app, denied: refused } = self.clone();
        let tasks = app.tasks.clone();
        let stop = app.term();
        tasks.spawn_tracked(async move {
            let taken = tokio::select! {
                taken = take_identify(&app.ops, &leave) => taken,
                () = stop.cancelled() => return,
            };
            match taken {
                Ok(Ok(())) => drop(leave.send(())),
                Ok(Err(at)) => drop(refused.try_send((IdentifyDenied::Until(at), leave))),
                Err(failure) => drop(refused.try_send((IdentifyDenied::BudgetUnavailable(failure), leave))),
            }
        });
        given
    }
}

/// Takes one identify from the budget; it is on disk when this returns. The inner error is the time at which the budget
/// allows one again.
async fn take_identify(ops: &Ops, leave: &oneshot::Sender<()>) -> Result<Result<(), Timestamp>> {
    let newest = identify_budget::read_budget(ops).await?.last_at;
    let since = newest.and_then(|newest| Duration::try_from(ops.clock.now().duration_since(newest)).ok());
    // Wait once, and do not look at the clock again: it may stand still.
    if let Some(left) = since.and_then(|since| IDENTIFY_INTERVAL.checked_sub(since)) {
        sleep(left).await;
    }
    if leave.is_closed() {
        return Err(Error::internal("the connection was closed"));
    }
    identify_budget::spend(ops).await
}
