//! The view of a command: a tree of its own, made of pieces of the machine's.

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

use super::failed;
use super::watch::INODE;
use crate::sandbox::wire::Step;

/// Where the machine's tree is while the other is built, and that.
const OLD: &str = "/old";
const NEW: &str = "/new";
/// Any directory that every machine has will do.
const PLACE: &str = "/tmp";

/// Devices that are harmless.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links in `/dev`.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
/// In `/proc`, what is not about processes: to its owner, which the daemon may be, it is writable.
const NOT_PROCESSES: [&str; 6] = ["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi"];

fn plain() -> MountFlags {
    MountFlags::NOSUID | MountFlags::NODEV
}

/// Puts the tree in the machine's place, for this process and those that it starts.
///
/// # Errors
/// What this machine does not let us do.
pub fn build(steps: &[Step]) -> Result<(), String> {
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave).map_err(failed("mounts cannot be kept apart"))?;
    let memory = |at: &Path| mount("tmpfs", at, "tmpfs", plain(), Some(c"mode=0755"));
    let place = Path::new(PLACE);
    memory(place).map_err(failed("no file system in memory can be made"))?;
    let (new, old) = (place.join("new"), place.join("old"));
    for dir in [&new, &old] {
        fs::create_dir(dir).map_err(failed("cannot make a directory"))?;
    }
    memory(&new).map_err(failed("no file system in memory can be made"))?;
    pivot_root(place, &old).map_err(failed("cannot change the tree"))?;
    chdir("/").map_err(failed("cannot enter the tree"))?;
    let mut read_only = ReadOnly::default();
    for step in steps {
        put(step, &mut read_only).map_err(|why| format!("{step:?}: {why}"))?;
    }
    read_only.enforce()?;
    let only = MountFlags::BIND | MountFlags::RDONLY | plain();
    mount_remount(NEW, only, c"").map_err(failed("the tree cannot be made read-only"))?;
    unmount(OLD, UnmountFlags::DETACH).map_err(failed("the machine's tree cannot be let go"))?;
    chdir(NEW).map_err(failed("cannot enter the tree"))?;
    pivot_root(".", ".").map_err(failed("cannot change the tree"))?;
    unmount(".", UnmountFlags::DETACH).map_err(failed("the machine's tree cannot be let go"))?;
    chdir("/").map_err(failed("cannot enter the tree"))
}

fn below(top: &str, path: &Path) -> PathBuf {
    Path::new(top).join(path.strip_prefix("/").unwrap_or(path))
}

/// Makes a directory and those around it, for this user alone where they are writable at all.
fn directory(at: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(at)
}

fn file(at: &Path) -> std::io::Result<()> {
    if let Some(around) = at.parent() {
        directory(around)?;
    }
    File::options().write(true).create_new(true).open(at).map(drop).or_else(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(e),
    })
}

fn put(step: &Step, read_only: &mut ReadOnly) -> std::io::Result<()> {
    match step {
        Step::Bind { from, to, write } => {
            let (from, at) = (below(OLD, from), below(NEW, to));
            if from.is_dir() {
                directory(&at)?
            } else {
                file(&at)?
            }
            mount_bind_recursive(&from, &at)?;
            read_only.note(&at, !write);
        }
        Step::Private { at, size } => {
            let at = below(NEW, at);
            directory(&at)?;
            // The memory of inodes, names and extended attributes is not part of the size.
            let inodes = (size / INODE).max(1024);
            let data = std::ffi::CString::new(format!("mode=0700,size={size},nr_inodes={inodes}"))?;
            mount("tmpfs", &at, "tmpfs", plain(), Some(data.as_c_str()))?;
            read_only.note(&at, false);
        }
        Step::Link { at, target } => symlink(target, below(NEW, at))?,
        Step::Hide { at } => {
            let at = below(NEW, at);
            if at.is_dir() {
                mount("tmpfs", &at, "tmpfs", plain(), Some(c"mode=0700,size=4096"))?;
            } else {
                mount_bind(below(OLD, Path::new("/dev/null")), &at)?;
            }
            read_only.note(&at, true);
        }
        Step::Devices => devices(read_only)?,
        Step::Processes => processes(read_only)?,
    }
    Ok(())
}

fn devices(read_only: &mut ReadOnly) -> std::io::Result<()> {
    let dev = below(NEW, Path::new("/dev"));
    directory(&dev)?;
    mount("tmpfs", &dev, "tmpfs", MountFlags::NOSUID | MountFlags::NOEXEC, Some(c"mode=0755,size=4096"))?;
    read_only.note(&dev, false);
    for name in DEVICES {
        let (from, at) = (Path::new(OLD).join("dev").join(name), dev.join(name));
        file(&at)?;
        mount_bind(&from, &at)?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name))?;
    }
    fs::create_dir(dev.join("pts"))?;
    // Not every kernel gives terminals of one's own.
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    if mount("devpts", dev.join("pts"), "devpts", flags, Some(c"newinstance,ptmxmode=0666,mode=0620")).is_ok() {
        symlink("pts/ptmx", dev.join("ptmx"))?;
    }
    Ok(())
}

fn processes(read_only: &mut ReadOnly) -> std::io::Result<()> {
    let proc = below(NEW, Path::new("/proc"));
    directory(&proc)?;
    mount("proc", &proc, "proc", plain() | MountFlags::NOEXEC, None)?;
    read_only.note(&proc, false);
    for name in NOT_PROCESSES {
        let at = proc.join(name);
        if at.exists() {
            mount_bind(&at, &at)?;
            read_only.note(&at, true);
        }
    }
    let memory = proc.join("kcore");
    if memory.exists() {
        mount_bind(below(OLD, Path::new("/dev/null")), &memory)?;
    }
    Ok(())
}

/// What is to be read-only once all is in its place: only then is known what is mounted below.
#[derive(Default)]
struct ReadOnly {
    /// In the order in which they were put in place; the longest that fits decides.
    noted: Vec<(PathBuf, bool)>,
}

impl ReadOnly {
    fn note(&mut self, at: &Path, only: bool) {
        self.noted.push((at.to_owned(), only));
    }

    fn decides(&self, at: &Path) -> Option<&(PathBuf, bool)> {
        // Of equals the last: it lies on top.
        self.noted.iter().filter(|(noted, _)| at.starts_with(noted)).max_by_key(|(noted, _)| noted.as_os_str().len())
    }

    fn enforce(&self) -> Result<(), String> {
        let mounts = fs::read(below(OLD, Path::new("/proc/self/mountinfo"))).map_err(failed("no list of mounts"))?;
        for line in mounts.split(|byte| *byte == b'\n') {
            let Some(at) = line.split(|byte| *byte == b' ').nth(4).map(path) else { continue };
            let Some((noted, true)) = self.decides(&at) else { continue };
            match remount(&at) {
                // What a file system of somebody else's keeps from us it keeps from the command, too.
                Err(Errno::ACCESS | Errno::NOENT) if at != *noted => {}
                done => done.map_err(failed(format!("{} cannot be made read-only", at.display())))?,
            }
        }
        Ok(())
    }
}

/// The path of a line of `mountinfo`, where blanks and the like are written as octal numbers.
fn path(text: &[u8]) -> PathBuf {
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

/// Read-only, with all that it is already: what a namespace found it may not take off.
fn remount(at: &Path) -> rustix::io::Result<()> {
    let is = statvfs(at)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| is.contains(*flag)).map(|(_, flag)| flag);
    let flags = kept.fold(MountFlags::BIND | MountFlags::RDONLY | plain(), MountFlags::union);
    mount_remount(at, flags, c"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mounts_are_read_as_they_are_written() {
        assert_eq!(path(br"/new/a\040b\134c"), Path::new("/new/a b\\c"));
        assert_eq!(path(br"/plain\"), Path::new(r"/plain\"));
    }

    #[test]
    fn the_innermost_and_last_decides() {
        let mut read_only = ReadOnly::default();
        for (at, only) in [("/new/usr", true), ("/new/usr/home", false), ("/new/usr/home", true)] {
            read_only.note(Path::new(at), only);
        }
        let decided = |at: &str| read_only.decides(Path::new(at)).map(|(_, only)| *only);
        assert_eq!(
            (decided("/new/usr/lib"), decided("/new/usr/home/x"), decided("/new/home")),
            (Some(true), Some(true), None)
        );
    }
}
