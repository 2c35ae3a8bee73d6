//! The operation `capture.off`.

use chorus_base::error::Result;
use chorus_proto::methods::capture::{OffParams, StatusResult};

use crate::capture::{CaptureService, CaptureSource};

/// Turns capture off for sources. What was captured stays.
///
/// # Errors
/// `invalid_params` for an unknown source, or one that config.toml turns on; `storage_failed`.
pub async fn off(capture: &CaptureService, params: OffParams) -> Result<StatusResult> {
    let sources = CaptureSource::from_names(&params.sources)?;
    for source in &sources {
        // Without names, what the file turns on stays on, which the result shows.
        if !params.sources.is_empty() {
            capture.check_not_in_file(Some(*source), None)?;
        }
    }
    let removed = sources.clone();
    capture.change(move |settings| settings.on.retain(|source| !removed.contains(source))).await?;
    capture.describe(sources).await
}
