//! The operation `capture.resume`.

use chorus_base::error::Result;
use chorus_proto::methods::capture::{ResumeParams, StatusResult};

use crate::capture::{CaptureService, CaptureSource};

/// Continues after a pause, with everything that was written since.
///
/// # Errors
/// `storage_failed`.
pub async fn resume(capture: &CaptureService, _params: ResumeParams) -> Result<StatusResult> {
    capture.change(|settings| settings.paused = false).await?;
    capture.describe(CaptureSource::ALL.to_vec()).await
}
