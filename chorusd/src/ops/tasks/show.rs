//! `tasks.show`.

use chorus_proto::methods::tasks::{ShowParams, ShowResult};

use super::{find, one};
use crate::failure::Result;
use crate::ops::Ops;

/// One task, of whatever agent.
///
/// # Errors
/// `not_found`, or a database that cannot be read.
pub async fn show(ops: &Ops, params: ShowParams) -> Result<ShowResult> {
    Ok(ShowResult { task: one(ops, find(ops, &params.id).await?).await? })
}
