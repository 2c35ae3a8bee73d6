//! The operation `backup.create`.

use std::path::PathBuf;

use chorus_base::error::{Error, Result};
use chorus_proto::methods::backup::{CreateParams, Summary};
use chorus_runtime::run_blocking;

use super::Backups;
use crate::backup::{DirectorySink, HomeIdentity};
use crate::ops::session::import::OnProgress;

/// Backs up the home into a directory.
///
/// # Errors
/// `invalid_params`, `denied`, `busy`, `disk_full`, `storage_failed`; the previous backup is left intact then.
pub async fn create(backups: &Backups, params: CreateParams, mut progress: OnProgress) -> Result<Summary> {
    let _alone = backups.start()?;
    let (dir, home) = (PathBuf::from(&params.dir), backups.agents.home.clone());
    if !dir.is_absolute() {
        return Err(Error::invalid(format!("not an absolute path: {}", dir.display()))
            .hint("use an absolute path: the daemon has its own working directory"));
    }
    let open = move || {
        let of = HomeIdentity::load(&home)?;
        Ok((DirectorySink::open(&dir, (&home, of.clone()), params.prune)?, of))
    };
    let (directory, of) = run_blocking(open).await?;
    let total = directory.previous_size();
    super::make_backup(backups, of, directory, Box::new(move |done| progress(done.min(total), total))).await
}
