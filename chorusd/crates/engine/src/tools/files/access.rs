//! On whose behalf a file is read or written, and the lock that is held meanwhile.

use std::os::fd::OwnedFd;

use rustix::fs::fstat;
use tokio::sync::OwnedMutexGuard;

use super::FileLocks;
use super::versions::ConversationFiles;

/// The access of a tool call to files.
#[derive(Debug, Clone, Copy)]
pub struct FileAccess<'a> {
    pub locks: &'a FileLocks,
    /// The conversation that calls; `None` for a caller that shares the files with no conversation.
    pub conversation: Option<ConversationFiles<'a>>,
}

impl<'a> From<&'a FileLocks> for FileAccess<'a> {
    fn from(locks: &'a FileLocks) -> Self {
        Self { locks, conversation: None }
    }
}

impl FileAccess<'_> {
    /// Waits until nobody writes the file `name` in `folder`, and keeps others from it.
    pub(super) async fn lock(&self, folder: &OwnedFd, name: &str) -> rustix::io::Result<OwnedMutexGuard<()>> {
        let status = fstat(folder)?;
        Ok(self.locks.lock((status.st_dev, status.st_ino, name.to_owned())).await)
    }
}
