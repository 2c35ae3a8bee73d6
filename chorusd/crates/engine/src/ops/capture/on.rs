//! The operation `capture.on`.

use chorus_base::error::Result;
use chorus_proto::methods::capture::{OnParams, StatusResult};

use crate::capture::{CaptureService, CaptureSource};
use crate::ops::session::import::OnProgress;

/// Turns capture on for sources, and waits until what is there has been read. If the client goes away, the reading
/// continues.
///
/// # Errors
/// `invalid_params` for an unknown source, `storage_failed`.
pub async fn on(capture: &CaptureService, params: OnParams, mut progress: OnProgress) -> Result<StatusResult> {
    let sources = CaptureSource::from_names(&params.sources)?;
    let added = sources.clone();
    let change = capture.change(move |settings| {
        settings.on.extend(added);
        settings.paused = false;
        settings.redact = params.redact.or(settings.redact);
    });
    let change = change.await?;
    // Says that it is on, although files may still be read with the settings of before.
    progress(0, 0);
    capture.wait_until_read(change, &mut progress).await;
    capture.describe(sources).await
}
