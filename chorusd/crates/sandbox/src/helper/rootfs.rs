//! Builds the root file system of a command from parts of the host's.

use std::fs::{self, DirBuilder, File};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};

use super::memory_watchdog::INODE_OVERHEAD;
use super::with_context;
use crate::protocol::MountStep;

/// Where the host's root and the new root are while the latter is built.
const OLD_ROOT: &str = "/old";
const NEW_ROOT: &str = "/new";
/// Mount point for building; any directory that exists everywhere will do.
const STAGING_DIR: &str = "/tmp";

/// Device files that are harmless.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links in `/dev`.
const DEV_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
/// Entries of `/proc` that do not belong to processes. Their owner, who may be the daemon's user, could write to them.
const READ_ONLY_PROC_ENTRIES: [&str; 6] = ["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi"];

fn base_mount_flags() -> MountFlags {
    MountFlags::NOSUID | MountFlags::NODEV
}

/// Builds the root file system and makes it the root of this process and those it starts.
pub(super) fn build(steps: &[MountStep]) -> Result<(), String> {
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave).map_err(with_context("cannot make mounts private"))?;
    let memory = |at: &Path| mount("tmpfs", at, "tmpfs", base_mount_flags(), Some(c"mode=0755"));
    let place = Path::new(STAGING_DIR);
    memory(place).map_err(with_context("cannot mount a tmpfs"))?;
    let (new, old) = (place.join("new"), place.join("old"));
    for dir in [&new, &old] {
        fs::create_dir(dir).map_err(with_context("cannot make a directory"))?;
    }
    memory(&new).map_err(with_context("cannot mount a tmpfs"))?;
    pivot_root(place, &old).map_err(with_context("cannot change the tree"))?;
    chdir("/").map_err(with_context("cannot enter the tree"))?;
    let mut read_only = ReadOnlyMounts::default();
    for step in steps {
        apply_step(step, &mut read_only).map_err(|why| format!("{step:?}: {why}"))?;
    }
    read_only.enforce()?;
    let only = MountFlags::BIND | MountFlags::RDONLY | base_mount_flags();
    mount_remount(NEW_ROOT, only, c"").map_err(with_context("cannot make the tree read-only"))?;
    unmount(OLD_ROOT, UnmountFlags::DETACH).map_err(with_context("cannot unmount the host tree"))?;
    chdir(NEW_ROOT).map_err(with_context("cannot enter the tree"))?;
    pivot_root(".", ".").map_err(with_context("cannot change the tree"))?;
    unmount(".", UnmountFlags::DETACH).map_err(with_context("cannot unmount the host tree"))?;
    chdir("/").map_err(with_context("cannot enter the tree"))
}

fn join_below(top: &str, path: &Path) -> PathBuf {
    Path::new(top).join(path.strip_prefix("/").unwrap_or(path))
}

/// Creates a directory and its parents, writable only for this user.
fn create_dir_all(at: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(at)
}

fn create_file(at: &Path) -> std::io::Result<()> {
    if let Some(around) = at.parent() {
        create_dir_all(around)?;
    }
    File::options().write(true).create_new(true).open(at).map(drop).or_else(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(e),
    })
}

fn apply_step(step: &MountStep, read_only: &mut ReadOnlyMounts) -> std::io::Result<()> {
    match step {
        MountStep::Bind { from, to, write } => {
            let (from, at) = (join_below(OLD_ROOT, from), join_below(NEW_ROOT, to));
            if from.is_dir() {
                create_dir_all(&at)?
            } else {
                create_file(&at)?
            }
            mount_bind_recursive(&from, &at)?;
            read_only.add(&at, !write);
        }
        MountStep::Private { at, size } => {
            let at = join_below(NEW_ROOT, at);
            create_dir_all(&at)?;
            // The memory of inodes, names and extended attributes does not count towards the size.
            let inodes = (size / INODE_OVERHEAD).max(1024);
            let data = std::ffi::CString::new(format!("mode=0700,size={size},nr_inodes={inodes}"))?;
            mount("tmpfs", &at, "tmpfs", base_mount_flags(), Some(data.as_c_str()))?;
            read_only.add(&at, false);
        }
        MountStep::Link { at, target } => symlink(target, join_below(NEW_ROOT, at))?,
        MountStep::Hide { at } => {
            let at = join_below(NEW_ROOT, at);
            if at.is_dir() {
                mount("tmpfs", &at, "tmpfs", base_mount_flags(), Some(c"mode=0700,size=4096"))?;
            } else {
                mount_bind(join_below(OLD_ROOT, Path::new("/dev/null")), &at)?;
            }
            read_only.add(&at, true);
        }
        MountStep::Devices => mount_dev(read_only)?,
        MountStep::Processes => mount_proc(read_only)?,
    }
    Ok(())
}

fn mount_dev(read_only: &mut ReadOnlyMounts) -> std::io::Result<()> {
    let dev = join_below(NEW_ROOT, Path::new("/dev"));
    create_dir_all(&dev)?;
    mount("tmpfs", &dev, "tmpfs", MountFlags::NOSUID | MountFlags::NOEXEC, Some(c"mode=0755,size=4096"))?;
    read_only.add(&dev, false);
    for name in DEVICES {
        let (from, at) = (Path::new(OLD_ROOT).join("dev").join(name), dev.join(name));
        create_file(&at)?;
        mount_bind(&from, &at)?;
    }
    for (name, target) in DEV_LINKS {
        symlink(target, dev.join(name))?;
    }
    fs::create_dir(dev.join("pts"))?;
    // Not every kernel supports private terminals.
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    if mount("devpts", dev.join("pts"), "devpts", flags, Some(c"newinstance,ptmxmode=0666,mode=0620")).is_ok() {
        symlink("pts/ptmx", dev.join("ptmx"))?;
    }
    Ok(())
}

fn mount_proc(read_only: &mut ReadOnlyMounts) -> std::io::Result<()> {
    let proc = join_below(NEW_ROOT, Path::new("/proc"));
    create_dir_all(&proc)?;
    mount("proc", &proc, "proc", base_mount_flags() | MountFlags::NOEXEC, None)?;
    read_only.add(&proc, false);
    for name in READ_ONLY_PROC_ENTRIES {
        let at = proc.join(name);
        if at.exists() {
            mount_bind(&at, &at)?;
            read_only.add(&at, true);
        }
    }
    let memory = proc.join("kcore");
    if memory.exists() {
        mount_bind(join_below(OLD_ROOT, Path::new("/dev/null")), &memory)?;
    }
    Ok(())
}

/// The mounts to make read-only once everything is mounted, since submounts are known only then.
#[derive(Default)]
struct ReadOnlyMounts {
    /// In mount order, each with true for read-only; the longest matching path decides.
    entries: Vec<(PathBuf, bool)>,
}

impl ReadOnlyMounts {
    fn add(&mut self, at: &Path, only: bool) {
        self.entries.push((at.to_owned(), only));
    }

    fn find_entry(&self, at: &Path) -> Option<&(PathBuf, bool)> {
        // Of equal paths the last one wins: it lies on top.
        self.entries.iter().filter(|(noted, _)| at.starts_with(noted)).max_by_key(|(noted, _)| noted.as_os_str().len())
    }

    fn enforce(&self) -> Result<(), String> {
        let mounts = fs::read(join_below(OLD_ROOT, Path::new("/proc/self/mountinfo")))
            .map_err(with_context("no list of mounts"))?;
        for line in mounts.split(|byte| *byte == b'\n') {
            let Some(at) = line.split(|byte| *byte == b' ').nth(4).map(decode_mount_path) else { continue };
            let Some((noted, true)) = self.find_entry(&at) else { continue };
            match remount_read_only(&at) {
                // If a file system of another user denies us access to a submount, it denies the command, too.
                Err(Errno::ACCESS | Errno::NOENT) if at != *noted => {}
                done => done.map_err(with_context(format!("cannot make {} read-only", at.display())))?,
            }
        }
        Ok(())
    }
}

/// Decodes a path of `mountinfo`, where blanks and similar bytes are octal escapes.
fn decode_mount_path(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, more)) = rest.split_first() {
        let number = more.get(..3).filter(|_| *first == b'\\');
        let number = number.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { &more[3..] } else { more };
    }
    std::ffi::OsString::from_vec(bytes).into()
}

/// Remounts read-only and keeps the flags that are set, because a user namespace may not clear inherited ones.
fn remount_read_only(at: &Path) -> rustix::io::Result<()> {
    let is = statvfs(at)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| is.contains(*flag)).map(|(_, flag)| flag);
    let flags = kept.fold(MountFlags::BIND | MountFlags::RDONLY | base_mount_flags(), MountFlags::union);
    mount_remount(at, flags, c"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mounts_are_read_as_they_are_written() {
        assert_eq!(decode_mount_path(br"/new/a\040b\134c"), Path::new("/new/a b\\c"));
        assert_eq!(decode_mount_path(br"/plain\"), Path::new(r"/plain\"));
    }

    #[test]
    fn the_innermost_and_last_decides() {
        let mut read_only = ReadOnlyMounts::default();
        for (at, only) in [("/new/usr", true), ("/new/usr/home", false), ("/new/usr/home", true)] {
            read_only.add(Path::new(at), only);
        }
        let decided = |at: &str| read_only.find_entry(Path::new(at)).map(|(_, only)| *only);
        assert_eq!(
            (decided("/new/usr/lib"), decided("/new/usr/home/x"), decided("/new/home")),
            (Some(true), Some(true), None)
        );
    }
}
