//! The operation `capture.status`.

use chorus_base::error::Result;
use chorus_proto::methods::capture::{StatusParams, StatusResult};

use crate::capture::{CaptureService, CaptureSource};

/// Describes what is captured, from where, and what could not be read.
///
/// # Errors
/// `invalid_params` for an unknown source.
pub async fn status(capture: &CaptureService, params: StatusParams) -> Result<StatusResult> {
    capture.describe(CaptureSource::from_names(&params.sources)?).await
}
