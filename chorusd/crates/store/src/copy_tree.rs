//! Copies a directory to another file system.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use chorus_base::private_fs::{create_private, sync, sync_dir};

/// Copies a directory with its links and permissions, and makes the copy durable. Leaves out sockets and devices, and what
/// this user may not read, with a warning. Blocks.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    create_private(to)?;
    let entries = match fs::read_dir(from) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return warn_unreadable(from),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let (source, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            copy_file(&source, &target)?;
        }
    }
    sync_dir(to)?;
    // Last: it may forbid what is written into it.
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = match fs::File::open(from) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return warn_unreadable(from),
        source => source?,
    };
    let mut target = fs::File::create_new(to)?;
    io::copy(&mut source, &mut target)?;
    sync(&target)?;
    target.set_permissions(source.metadata()?.permissions())
}

#[expect(clippy::unnecessary_wraps, reason = "it takes the place of a copy")]
fn warn_unreadable(path: &Path) -> io::Result<()> {
    tracing::warn!("{} may not be read, and is not in the copy", path.display());
    Ok(())
}
