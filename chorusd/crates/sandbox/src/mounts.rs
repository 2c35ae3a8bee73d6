//! Plans the mounts of a command: what it sees. docs/SANDBOX.md documents the lists of this file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::protocol::{MountStep, PathIdentity};
use super::shared_paths::identify;
use super::{Confinement, PathAccess, SharedPath};

/// Paths of the host that are visible read-only.
const SYSTEM_PATHS: [&str; 17] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/etc",
    "/opt",
    // Only the store: the socket of the Nix daemon, beside it, is a way out of the sandbox.
    "/nix/store",
    "/gnu",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/var/lib/dpkg",
    "/var/lib/ghc",
    "/var/lib/texmf",
    "/var/cache/fontconfig",
];

/// Toolchains below the user's home that are visible read-only; none of them holds keys.
const TOOLCHAINS: [&str; 32] = [
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".rustup",
    ".nvm",
    ".volta",
    ".deno/bin",
    ".bun/bin",
    ".yarn/bin",
    ".local/share/pnpm",
    ".local/share/fnm",
    ".pyenv",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".local/share/pipx/venvs",
    ".local/share/mise",
    ".asdf",
    ".rbenv",
    ".rvm",
    ".sdkman/candidates",
    ".jenv",
    ".goenv",
    "go/bin",
    "go/pkg/mod",
    ".ghcup",
    ".opam",
    ".elan",
    ".juliaup",
    ".dotnet",
    ".swiftly",
    ".local/bin",
    ".local/lib",
];

/// Secret paths below `/etc`. Most of them are readable only by root, but the daemon may be root.
const SECRET_PATHS: [&str; 16] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/security/opasswd",
    "/etc/ssl/private",
    "/etc/letsencrypt",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/kubernetes",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
];

/// Where processes share memory by name.
pub(crate) const SHARED_MEMORY_DIR: &str = "/dev/shm";

/// The mounts of a command.
#[derive(Debug)]
pub(crate) struct MountPlan {
    pub steps: Vec<MountStep>,
    /// Directories where files may be written, except those in `/dev`.
    pub writable: Vec<PathBuf>,
    /// The command's `HOME`.
    pub home: PathBuf,
    /// The workspace's real path.
    pub workspace: PathBuf,
    /// The paths that are shared besides the workspace.
    pub identities: Vec<PathIdentity>,
}

/// Plans the mounts of a command. Hides Chorus's home (`chorus`), the paths in `hidden`, and those in `guarded`.
///
/// # Errors
/// The workspace does not exist, or it contains Chorus's home.
pub(crate) fn plan_mounts(
    confinement: &Confinement,
    chorus: &Path,
    hidden: &[PathBuf],
    guarded: &[PathBuf],
) -> io::Result<MountPlan> {
    let workspace = confinement.workspace.canonicalize()?;
    let holds = |chorus: PathBuf| chorus.starts_with(&workspace) && chorus != workspace;
    if chorus.canonicalize().is_ok_and(holds) {
        return Err(io::Error::other("the workspace resolves to a directory that contains the home of Chorus"));
    }
    let size = confinement.limits.memory / 4;
    let user = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    // A user without a home directory (such as a service) gets `/tmp`.
    let user = user.filter(|home| home.components().count() > 1 && !home.starts_with("/proc"));
    let mut steps = root_links();
    for path in SYSTEM_PATHS.map(PathBuf::from) {
        if path.symlink_metadata().is_ok_and(|there| there.is_dir()) {
            steps.push(MountStep::Bind { from: path.clone(), to: path, write: false });
        }
    }
    steps.extend([MountStep::Devices, MountStep::Private { at: SHARED_MEMORY_DIR.into(), size }, MountStep::Processes]);
    let mut private = vec![PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    private.extend(user.clone());
    let home = command_home(user.as_deref(), &workspace);
    private.dedup();
    if let Ok(chorus) = chorus.canonicalize() {
        private.push(chorus);
    }
    // What is hidden around the workspace is covered before it is mounted.
    let around = hidden.iter().filter_map(|at| at.canonicalize().ok());
    private.extend(around.filter(|at| at.is_dir() && workspace.starts_with(at) && *at != workspace));
    // Outer directories first, so that none covers another.
    private.sort();
    private.dedup();
    steps.extend(private.iter().map(|at| MountStep::Private { at: at.clone(), size }));
    if let Some(home) = &user {
        steps.extend(TOOLCHAINS.iter().filter_map(|below| toolchain_mount(home, below, chorus)));
    }
    if confinement.network {
        steps.extend(resolver_mount());
    }
    let keys = fs::read_dir("/etc/ssh").into_iter().flatten().flatten().map(|entry| entry.path());
    let keys = keys.filter(|path| path.to_string_lossy().ends_with("_key"));
    let secrets = SECRET_PATHS.map(PathBuf::from).into_iter().chain(keys).chain(guarded.iter().cloned());
    let mut secrets: Vec<PathBuf> = secrets.filter_map(|at| path_to_hide(&at, &steps, &workspace)).collect();
    secrets.sort();
    // A hidden directory hides everything below it.
    secrets.dedup_by(|below, at| below.starts_with(at));
    steps.extend(secrets.into_iter().map(|at| MountStep::Hide { at }));
    steps.push(MountStep::Bind { from: workspace.clone(), to: workspace.clone(), write: true });
    // Others may have removed parts since they were listed.
    let is_gone =
        |shared: &SharedPath| shared.access == PathAccess::ReadOnlyIfPresent && shared.path.symlink_metadata().is_err();
    let shared: Vec<&SharedPath> = confinement.shared.iter().filter(|shared| !is_gone(shared)).collect();
    let mounted = shared.iter().filter(|shared| shared.access != PathAccess::Replaced);
    let identities = mounted.map(|shared| identify(&shared.path)).collect::<io::Result<Vec<_>>>()?;
    steps.extend(shared.iter().map(|shared| match shared.access {
        PathAccess::Replaced => MountStep::Private { at: shared.path.clone(), size },
        access => MountStep::Bind {
            from: shared.path.clone(),
            to: shared.path.clone(),
            write: access == PathAccess::Writable,
        },
    }));
    let is_writable = |shared: &&SharedPath| matches!(shared.access, PathAccess::Writable | PathAccess::Replaced);
    let shared = shared.into_iter().filter(is_writable);
    let shared = shared.map(|shared| shared.path.clone());
    // After the workspace is mounted, so that paths in it are hidden too, although none should be there.
    let hidden: Vec<PathBuf> = hidden.iter().filter_map(|at| path_to_hide(at, &steps, &workspace)).collect();
    steps.extend(hidden.into_iter().map(|at| MountStep::Hide { at }));
    let writable = private.into_iter().filter(|at| !at.starts_with("/dev")).chain([workspace.clone()]);
    let writable = writable.chain(shared).collect();
    Ok(MountPlan { steps, writable, home, workspace, identities })
}

/// Returns the command's `HOME`, which is empty at each start. If the workspace contains the user's home, `/tmp` is
/// used: files that one command wrote there would otherwise configure the programs of the next.
fn command_home(user: Option<&Path>, workspace: &Path) -> PathBuf {
    user.filter(|user| !user.starts_with(workspace)).unwrap_or(Path::new("/tmp")).to_owned()
}

/// Returns the links in the root directory, such as `/bin`, and `/home` on some systems.
fn root_links() -> Vec<MountStep> {
    let entries = fs::read_dir("/").into_iter().flatten().flatten();
    let link = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        Some(MountStep::Link { at: entry.path(), target })
    };
    entries.filter_map(link).collect()
}

/// Returns the mount of a toolchain from its real directory, unless that would reveal a home.
fn toolchain_mount(home: &Path, below: &str, chorus: &Path) -> Option<MountStep> {
    let to = home.join(below);
    let from = to.canonicalize().ok().filter(|from| from.is_dir())?;
    let shows = home.starts_with(&from) || chorus.starts_with(&from) || from.starts_with(chorus);
    (!shows).then_some(MountStep::Bind { from, to, write: false })
}

/// Returns a mount for the target of `/etc/resolv.conf` if that lies outside the visible paths.
fn resolver_mount() -> Option<MountStep> {
    let file = Path::new("/etc/resolv.conf").canonicalize().ok()?;
    let seen = SYSTEM_PATHS.iter().any(|system| file.starts_with(system));
    (!seen).then(|| MountStep::Bind { from: file.clone(), to: file, write: false })
}

/// Returns the real path if it exists and would otherwise be visible.
fn path_to_hide(at: &Path, steps: &[MountStep], workspace: &Path) -> Option<PathBuf> {
    let at = at.canonicalize().ok()?;
    // The last step that covers a path decides what is visible there.
    let covers = |step: &MountStep| match step {
        MountStep::Bind { to, from, .. } if at.starts_with(to) => Some(from == to),
        MountStep::Private { at: private, .. } if at.starts_with(private) => Some(false),
        _ => None,
    };
    let seen = steps.iter().rev().find_map(covers).unwrap_or(false);
    (seen && !workspace.starts_with(&at)).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResourceLimits;

    #[test]
    fn what_is_hidden_comes_after_what_shows_it_and_only_what_is_shown_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let (chorus, workspace) = (folder.path().join("home"), folder.path().join("home/agents/a/workspace"));
        fs::create_dir_all(&workspace).unwrap();
        let (inside, beside) = (workspace.join("x.sock"), chorus.join("y.sock"));
        fs::write(&inside, "").unwrap();
        fs::write(&beside, "").unwrap();
        let confinement = Confinement {
            workspace: workspace.clone(),
            shared: Vec::new(),
            git_author: None,
            network: false,
            limits: ResourceLimits::default(),
        };
        let hidden = [inside.clone(), beside, "/usr/bin/env".into()];
        let guarded = ["/usr/share/zoneinfo", "/usr/share", "/usr/share/doc"].map(PathBuf::from);
        let seen = plan_mounts(&confinement, &chorus, &hidden, &guarded).unwrap();
        let place = |wanted: &dyn Fn(&MountStep) -> bool| seen.steps.iter().position(wanted);
        let bound = place(&|step| matches!(step, MountStep::Bind { to, write: true, .. } if *to == workspace));
        let hidden = place(&|step| matches!(step, MountStep::Hide { at } if *at == inside));
        let private = place(&|step| matches!(step, MountStep::Private { at, .. } if *at == chorus));
        assert!(private < bound && bound < hidden && private.is_some(), "{:?}", seen.steps);
        let hides = seen.steps.iter().filter(|step| matches!(step, MountStep::Hide { at } if at.starts_with(&chorus)));
        assert_eq!(hides.count(), 1, "what is not seen need not be hidden");
        assert!(seen.steps.contains(&MountStep::Hide { at: Path::new("/usr/bin/env").canonicalize().unwrap() }));
        let shared =
            seen.steps.iter().filter(|step| matches!(step, MountStep::Hide { at } if at.starts_with("/usr/share")));
        assert_eq!(shared.count(), 1, "what is below a hidden directory need not be hidden");
        assert!(seen.writable.contains(&workspace) && seen.writable.contains(&chorus));
    }

    #[test]
    fn what_is_hidden_around_the_workspace_is_covered_before_that_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = root.join("shared/1/workspace");
        fs::create_dir_all(&workspace).unwrap();
        let confinement = Confinement {
            workspace: workspace.clone(),
            shared: Vec::new(),
            git_author: None,
            network: false,
            limits: ResourceLimits::default(),
        };
        let seen = plan_mounts(&confinement, &root.join("home"), &[root.join("shared")], &[]).unwrap();
        let place = |wanted: &dyn Fn(&MountStep) -> bool| seen.steps.iter().position(wanted);
        let covered = place(&|step| matches!(step, MountStep::Private { at, .. } if *at == root.join("shared")));
        let bound = place(&|step| matches!(step, MountStep::Bind { to, write: true, .. } if *to == workspace));
        assert!(covered.is_some() && covered < bound, "{:?}", seen.steps);
    }

    #[test]
    fn only_optional_parts_may_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (workspace, parts) = (root.join("workspace"), root.join("parts"));
        fs::create_dir_all(&workspace).unwrap();
        fs::create_dir_all(&parts).unwrap();
        fs::write(parts.join("HEAD"), "").unwrap();
        let plan = |name: &str, access| {
            let shared = |path, access| SharedPath { path, access };
            let confinement = Confinement {
                workspace: workspace.clone(),
                shared: vec![shared(parts.clone(), PathAccess::Replaced), shared(parts.join(name), access)],
                git_author: None,
                network: false,
                limits: ResourceLimits::default(),
            };
            plan_mounts(&confinement, &root.join("home"), &[], &[])
        };
        let is_mounted = |name: &str, access| {
            let plan = plan(name, access).unwrap();
            assert!(!plan.writable.contains(&parts.join(name)));
            plan.steps.iter().any(|step| matches!(step, MountStep::Bind { to, .. } if *to == parts.join(name)))
        };
        assert!(is_mounted("HEAD", PathAccess::ReadOnly) && is_mounted("HEAD", PathAccess::ReadOnlyIfPresent));
        assert!(!is_mounted("shallow", PathAccess::ReadOnlyIfPresent));
        assert!(plan("packed-refs", PathAccess::ReadOnly).unwrap_err().to_string().contains("packed-refs"));
    }

    #[test]
    fn a_home_is_never_in_the_workspace() {
        for (user, workspace, wanted) in [
            (Some("/home/mara"), "/home/mara/work", "/home/mara"),
            (Some("/home/mara"), "/srv/work", "/home/mara"),
            (Some("/home/mara"), "/home/mara", "/tmp"),
            (Some("/home/mara"), "/home", "/tmp"),
            (None, "/srv/work", "/tmp"),
        ] {
            assert_eq!(
                command_home(user.map(Path::new), Path::new(workspace)),
                Path::new(wanted),
                "{user:?} {workspace}"
            );
        }
    }
}
