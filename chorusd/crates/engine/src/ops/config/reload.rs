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
    let _one_at_a_time = reloader.effective.lock_file().await;
    let Applied { changed, restart } = reloader.reload().await?;
    let file = reloader.effective.base().file.clone();
    let file = ConfigFile { path: file.path.to_string_lossy().into_owned(), exists: file.exists };
    Ok(ReloadResult { file, changed, restart })
}
