//! The operation `capture.exclude`.

use std::path::Path;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::capture::{ExcludeParams, StatusResult};
use chorus_runtime::run_blocking;

use crate::capture::{CaptureService, CaptureSource, real_path};

/// Excludes a path from capture, or includes it again. What was captured before stays. A path with symbolic links excludes the
/// directory that it leads to, too.
///
/// # Errors
/// `invalid_params` for a relative path, or one to include that config.toml excludes, `not_found` if a path to include was not excluded, `storage_failed`.
pub async fn exclude(capture: &Arc<CaptureService>, params: ExcludeParams) -> Result<StatusResult> {
    let ExcludeParams { path, remove } = params;
    if !Path::new(&path).is_absolute() {
        return Err(Error::invalid(format!("not an absolute path: {path}"))
            .hint("use an absolute path: the daemon has its own working directory"));
    }
    if remove {
        capture.check_not_in_file(None, Some(&path))?;
    }
    let named = path.clone();
    let (excluded, real) = run_blocking({
        let capture = capture.clone();
        move || Ok((capture.excluded_as(&named), real_path(Path::new(&named)).to_string_lossy().into_owned()))
    })
    .await?;
    if remove && excluded.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, format!("{path} is not excluded"))
            .hint("list excluded paths: chorusctl capture status"));
    }
    if remove {
        // First, because the change starts a look.
        capture.forget_held_back().await?;
    }
    let change = capture.change(move |settings| {
        if remove {
            settings.excluded.retain(|path| !excluded.contains(path));
            settings.real_paths.retain(|path, _| !excluded.contains(path));
            return;
        }
        if real != path {
            settings.real_paths.insert(path.clone(), real);
        }
        settings.excluded.insert(path);
    });
    change.await?;
    capture.describe(CaptureSource::ALL.to_vec()).await
}
