//! `backup.create`.

use std::path::PathBuf;

use chorus_proto::methods::backup::{CreateParams, Summary};

use crate::backup::{Directory, Identity};
use crate::failure::{Failure, Result};
use crate::ops::session::import::OnProgress;
use crate::ops::{Ops, blocking};

/// Backs the home up into a directory.
///
/// # Errors
/// `invalid_params`, `denied`, `busy`, `disk_full`, `storage_failed`; the backup before is as it was then.
pub async fn create(ops: &Ops, params: CreateParams, mut progress: OnProgress) -> Result<Summary> {
    let _alone = ops.backups.begin()?;
    let (dir, home) = (PathBuf::from(&params.dir), ops.home.clone());
    if !dir.is_absolute() {
        return Err(Failure::invalid(format!("{} is not an absolute path", dir.display()))
            .hint("name the directory from the root on: the daemon has a working directory of its own"));
    }
    let open = move || {
        let of = Identity::of(&home)?;
        Ok((Directory::open(&dir, (&home, of.clone()), params.prune)?, of))
    };
    let (directory, of) = blocking(open).await?;
    let total = directory.size_before();
    super::make(ops, of, directory, Box::new(move |done| progress(done.min(total), total))).await
}
