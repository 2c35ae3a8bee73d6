//! The operation `settings.show`.

use chorus_base::error::Result;
use chorus_proto::methods::settings::{ConfigFile, ShowParams, ShowResult};

use super::EffectiveConfig;

/// Shows every key with its value and its origin.
pub async fn show(config: &EffectiveConfig, _: ShowParams) -> Result<ShowResult> {
    let restart = config.pending_keys();
    let problem = config.read_again().await.err().map(|failure| failure.message);
    let config = config.current();
    let settings = config.to_entries().into_iter().map(|(key, value)| super::to_setting(&config, key, value)).collect();
    let file = ConfigFile { path: config.file.path.to_string_lossy().into_owned(), exists: config.file.exists };
    Ok(ShowResult { settings, file: Some(file), restart, problem })
}
