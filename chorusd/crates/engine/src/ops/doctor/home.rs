//! Checks the home: permissions, free space, and the socket.

use std::ffi::OsString;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_proto::paths::HOME_SOCKET;

use super::{check, check_with, join_some};
use crate::tools::worktree::WORKTREES_DIR;

/// Less free space than this in bytes causes a warning.
const LOW_SPACE_BYTES: u64 = 512 << 20;
/// Less free space than this in bytes is a failure.
const NO_SPACE_BYTES: u64 = 16 << 20;

/// Checks that only the owner can access the home, except for the contents of workspaces and of the cache.
pub(super) fn check_permissions(home: &Path) -> Check {
    const NAME: &str = "permissions";
    let (mut open, mut writable) = (Vec::new(), false);
    let mut looked_at = 0_u64;
    let (mut folders, cache) = (vec![home.to_owned()], home.join("cache"));
    let mut look = |path: &Path| -> Option<bool> {
        let metadata = path.symlink_metadata().ok().filter(|metadata| !metadata.is_symlink())?;
        looked_at += 1;
        if metadata.mode() & 0o077 != 0 {
            let below = path.strip_prefix(home).ok().filter(|below| !below.as_os_str().is_empty());
            open.push(below.unwrap_or(path).display().to_string());
            writable |= metadata.mode() & 0o022 != 0;
        }
        Some(metadata.is_dir())
    };
    look(home);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_moved = name.starts_with("workspace.moved") || name.starts_with("worktrees.moved");
            let is_workspace = name == "workspace" || is_moved || is_worktree(&path) || path == cache;
            if look(&path) == Some(true) && !is_workspace {
                folders.push(path);
            }
        }
    }
    if open.is_empty() {
        return check(NAME, Verdict::Ok, format!("{looked_at} files and directories, private"));
    }
    let (verdict, may) = if writable { (Verdict::Fail, "changed") } else { (Verdict::Warn, "read") };
    let text = format!("{} may be {may} by others: {}", open.len(), join_some(&open));
    check_with(NAME, verdict, text, format!("chmod -R go= {}", home.display()))
}

/// Returns true for the worktree of a conversation, which is a workspace, too.
fn is_worktree(path: &Path) -> bool {
    path.parent().and_then(Path::file_name) == Some(WORKTREES_DIR.as_ref())
}

/// Checks the free disk space.
pub(super) fn check_space(home: &Path) -> Check {
    const NAME: &str = "free space";
    let Ok(disk) = rustix::fs::statvfs(home) else {
        return check(NAME, Verdict::Warn, "unknown");
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let text = match free >> 20 {
        mib @ ..10_240 => format!("{mib} MiB"),
        mib => format!("{} GiB", mib >> 10),
    };
    match free {
        ..NO_SPACE_BYTES => check_with(NAME, Verdict::Fail, text, "free disk space: nothing more can be stored"),
        NO_SPACE_BYTES..LOW_SPACE_BYTES => check_with(NAME, Verdict::Warn, text, "free disk space soon"),
        _ => check(NAME, Verdict::Ok, text),
    }
}

/// Checks the socket, and reports why it is in the home if that is only the fallback.
pub(super) fn check_socket(path: &Path, home: &Path) -> Check {
    let shown = path.display();
    match path.symlink_metadata() {
        Ok(there) if there.file_type().is_socket() => {
            let fallback = Some(path).filter(|path| **path == home.join(HOME_SOCKET));
            match fallback.and_then(|_| no_runtime_dir(|name| std::env::var_os(name))) {
                Some(why) => {
                    check("socket", Verdict::Info, format!("{shown}, because {why}; clients find it automatically"))
                }
                None => check("socket", Verdict::Ok, shown.to_string()),
            }
        }
        Ok(_) => {
            let hint = "move it, or set another socket with --socket or CHORUS_SOCKET";
            check_with("socket", Verdict::Fail, format!("{shown} is not a socket"), hint)
        }
        Err(_) => check("socket", Verdict::Info, format!("no daemon is listening on {shown}")),
    }
}

/// Returns the reason why a daemon with this environment has no socket in a runtime directory. `None` if the
/// environment names a home or a socket, so that no runtime directory is expected.
fn no_runtime_dir(env: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    if set("CHORUS_HOME").is_some() || set("CHORUS_SOCKET").is_some() {
        return None;
    }
    Some(match set("XDG_RUNTIME_DIR") {
        None => "the daemon was started without XDG_RUNTIME_DIR".to_owned(),
        Some(dir) => format!("the runtime directory {} (XDG_RUNTIME_DIR) is not usable", Path::new(&dir).display()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_socket_is_in_the_home_for_a_reason() {
        let why = |vars: &[(&str, &str)]| {
            let find =
                |asked: &str| vars.iter().find(|(name, _)| *name == asked).map(|(_, value)| OsString::from(*value));
            no_runtime_dir(find)
        };
        assert!(why(&[]).is_some_and(|why| why.contains("without XDG_RUNTIME_DIR")));
        assert_eq!(why(&[("XDG_RUNTIME_DIR", "")]), why(&[]));
        assert!(why(&[("XDG_RUNTIME_DIR", "/gone")]).is_some_and(|why| why.contains("/gone")));
        for name in ["CHORUS_HOME", "CHORUS_SOCKET"] {
            assert_eq!(why(&[(name, "/x")]), None);
        }
    }

    #[test]
    fn open_doors_are_named_workspaces_excepted() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        let set = |below: &str, mode| std::fs::set_permissions(home.path().join(below), Permissions::from_mode(mode));
        std::fs::create_dir_all(home.path().join("agents/a/workspace/src"))?;
        std::fs::create_dir_all(home.path().join("agents/a/worktrees/review/src"))?;
        for dir in ["", "agents", "agents/a", "agents/a/workspace", "agents/a/worktrees", "agents/a/worktrees/review"] {
            set(dir, 0o700)?;
        }
        set("agents/a/workspace/src", 0o777)?;
        set("agents/a/worktrees/review/src", 0o777)?;
        std::fs::write(home.path().join("config.toml"), "")?;
        set("config.toml", 0o600)?;
        assert_eq!(check_permissions(home.path()).verdict, Verdict::Ok);
        set("config.toml", 0o644)?;
        let found = check_permissions(home.path());
        assert_eq!((found.verdict, &*found.text), (Verdict::Warn, "1 may be read by others: config.toml"));
        set("config.toml", 0o620)?;
        assert_eq!(check_permissions(home.path()).verdict, Verdict::Fail);
        Ok(())
    }
}
