//! The operation `tasks.stop`.

use chorus_base::error::Result;
use chorus_proto::methods::tasks::{StopParams, StopResult};

use super::{find_task, single_task};
use crate::ops::Ops;

/// Stops a task and waits until it has ended. Does nothing if it has ended already.
pub async fn stop(ops: &Ops, params: StopParams) -> Result<StopResult> {
    let id = find_task(ops, &params.id).await?.id;
    let stopped = ops.tasks.stop(&id).await;
    Ok(StopResult { task: single_task(ops, find_task(ops, &id).await?).await?, stopped })
}
