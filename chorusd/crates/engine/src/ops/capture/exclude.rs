//! The operation `capture.exclude`.

use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::capture::{ExcludeParams, StatusResult};

use crate::capture::{CaptureService, CaptureSource};

/// Excludes a path from capture, or includes it again. What was captured before stays.
///
/// # Errors
/// `invalid_params` for a relative path, or one to include that config.toml excludes, `not_found` if a path to include was not excluded, `storage_failed`.
pub async fn exclude(capture: &CaptureService, params: ExcludeParams) -> Result<StatusResult> {
    let ExcludeParams { path, remove } = params;
    if !Path::new(&path).is_absolute() {
        return Err(Error::invalid(format!("not an absolute path: {path}"))
            .hint("use an absolute path: the daemon has its own working directory"));
    }
    if remove {
        capture.check_not_in_file(None, Some(&path))?;
    }
    if remove && !capture.is_excluded(&path) {
        return Err(Error::new(ErrorKind::NotFound, format!("{path} is not excluded"))
            .hint("list excluded paths: chorusctl capture status"));
    }
    if remove {
        // First, because the change starts a look.
        capture.forget_held_back().await?;
    }
    let change = capture.change(move |settings| match remove {
        true => drop(settings.excluded.remove(&path)),
        false => drop(settings.excluded.insert(path)),
    });
    change.await?;
    capture.describe(CaptureSource::ALL.to_vec()).await
}
