//! `settings.show`.

use chorus_proto::methods::settings::{ShowParams, ShowResult};

use crate::failure::Result;
use crate::ops::Ops;

/// Every key with its value, and where that comes from.
///
/// # Errors
/// None.
pub async fn show(ops: &Ops, _: ShowParams) -> Result<ShowResult> {
    let config = ops.defaults();
    let settings = config.shown().into_iter().map(|(key, value)| super::shown(&config, key, value)).collect();
    Ok(ShowResult { settings })
}
