//! The operation `capture.pause`.

use chorus_base::error::Result;
use chorus_proto::methods::capture::{PauseParams, StatusResult};

use crate::capture::{CaptureService, CaptureSource};

/// Captures nothing until it is resumed.
///
/// # Errors
/// `storage_failed`.
pub async fn pause(capture: &CaptureService, _params: PauseParams) -> Result<StatusResult> {
    capture.change(|settings| settings.paused = true).await?;
    capture.describe(CaptureSource::ALL.to_vec()).await
}
