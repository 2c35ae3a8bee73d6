//! The operation `config.reload`.

use chorus_base::error::Result;
use chorus_proto::methods::config::{ReloadParams, ReloadResult};
use chorus_proto::methods::settings::ConfigFile;

use super::{Applied, ConfigReloader};

/// Reads the configuration file and applies what can be applied without a restart.
///
/// # Errors
/// `invalid_config`; then nothing changes.
pub async fn reload(reloader: &ConfigReloader, _: ReloadParams) -> Result<ReloadResult> {
    reload_by(reloader, "config reload").await
}

/// Like [`reload`], by a command or signal, which the audit log names.
///
/// # Errors
/// As [`reload`].
pub async fn reload_by(reloader: &ConfigReloader, command: &str) -> Result<ReloadResult> {
    let _one_at_a_time = reloader.effective.lock_file().await;
    let Applied { changed, restart } = reloader.reload(command, None).await?;
    let file = reloader.effective.base().file.clone();
    let file = ConfigFile { path: file.path.to_string_lossy().into_owned(), exists: file.exists };
    Ok(ReloadResult { file, changed, restart })
}
