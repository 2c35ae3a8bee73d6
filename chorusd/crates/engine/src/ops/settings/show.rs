//! The operation `settings.show`.

use chorus_base::error::Result;
use chorus_proto::methods::settings::{ShowParams, ShowResult};

use crate::ops::Ops;

/// Shows every key with its value and its origin.
pub async fn show(ops: &Ops, _: ShowParams) -> Result<ShowResult> {
    let config = ops.defaults();
    let settings = config.to_entries().into_iter().map(|(key, value)| super::to_setting(&config, key, value)).collect();
    Ok(ShowResult { settings })
}
