//! The operation `tasks.show`.

use chorus_base::error::Result;
use chorus_proto::methods::tasks::{ShowParams, ShowResult};

use super::{find_task, single_task};
use crate::ops::Ops;

/// Shows one task of any agent.
pub async fn show(ops: &Ops, params: ShowParams) -> Result<ShowResult> {
    Ok(ShowResult { task: single_task(ops, find_task(ops, &params.id).await?).await? })
}
