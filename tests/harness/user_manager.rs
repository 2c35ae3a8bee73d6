//! A service manager of a user: a real `systemd --user`, on a machine that another init started.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::skip::{Need, skip, skip_without};
use crate::{DEADLINE, Home, Output, ctl, process, wait_until};

const MANAGER: &str = "/lib/systemd/systemd";

/// Has it look, in a mount namespace, as if systemd had started the machine, which the manager and systemctl ask for. Mounts propagate as
/// they do there; credentials are mounted.
const BOOTED: &str = "mount --make-rshared / && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system";

/// Each manager has a control group of its own, in each hierarchy that it uses.
const SCRIPT: &str = "set -e
    for dir in \"$@\"; do mkdir -p \"$dir\"; echo $$ >\"$dir/cgroup.procs\"; done
    exec /lib/systemd/systemd --user --log-target=console";

/// A running manager. Dropping it ends it with all that it started.
#[derive(Debug)]
pub struct UserManager {
    manager: Child,
    groups: Vec<PathBuf>,
    runtime: PathBuf,
}

impl UserManager {
    /// Starts a manager for the user of this home, with the units below its configuration. Skips the test and returns `None` where
    /// there can be none.
    #[must_use]
    pub fn start(home: &Home) -> Option<Self> {
        if !Path::new(MANAGER).exists() {
            skip("systemd is not installed");
            return None;
        }
        if !process::is_root() {
            skip_without(Need::Root, "only root can make the directory that a manager of a user looks for");
            return None;
        }
        let unshared = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
        if !unshared.is_ok_and(|done| done.success()) {
            skip_without(Need::Mount, "no mount namespace");
            return None;
        }
        let hierarchies = ["systemd", "unified", "."].map(|name| Path::new("/sys/fs/cgroup").join(name));
        let usable = hierarchies
            .into_iter()
            .filter(|dir| fs::File::options().append(true).open(dir.join("cgroup.procs")).is_ok());
        let own = home.temp_dir().file_name().expect("a name");
        let name = format!("chorus-test-{}", own.display());
        let groups: Vec<PathBuf> = usable.map(|dir| dir.join(&name)).collect();
        if groups.is_empty() {
            skip_without(Need::Cgroups, "no control group for a manager");
            return None;
        }
        let runtime = home.temp_dir().join("runtime");
        fs::create_dir(&runtime).expect("a runtime directory");
        fs::set_permissions(&runtime, Permissions::from_mode(0o700)).expect("its mode");
        let log = fs::File::create(home.temp_dir().join("manager.log")).expect("a log");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &format!("{BOOTED}; {SCRIPT}"), "manager"]).args(&groups);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", &home.user_home);
        command.env("XDG_RUNTIME_DIR", &runtime).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let manager = Self { manager: command.spawn().expect("unshare starts"), groups, runtime };
        wait_until("the manager to answer", DEADLINE, || {
            let state = manager.systemctl(home, &["is-system-running"]);
            matches!(state.trim(), "running" | "degraded").then_some(())
        });
        Some(manager)
    }

    /// Runs `systemctl --user` and returns the standard output, whatever the exit status.
    #[must_use]
    pub fn systemctl(&self, home: &Home, args: &[&str]) -> String {
        self.run_systemctl(home, args).stdout
    }

    /// Runs `systemctl --user`.
    ///
    /// # Panics
    /// If it fails.
    pub fn systemctl_ok(&self, home: &Home, args: &[&str]) {
        let done = self.run_systemctl(home, args);
        assert_eq!(done.status, 0, "systemctl {args:?}: {}{}", done.stdout, done.stderr);
    }

    fn run_systemctl(&self, home: &Home, args: &[&str]) -> Output {
        let mut command = home.command("unshare");
        let script = format!("{BOOTED} && exec systemctl --user --no-pager \"$@\"");
        command.env("XDG_RUNTIME_DIR", &self.runtime);
        command.args(["--mount", "sh", "-c", &script, "systemctl"]).args(args);
        ctl::run_command(command, b"")
    }

    /// The process of a service; `None` if it has none.
    #[must_use]
    pub fn main_pid(&self, home: &Home, unit: &str) -> Option<u32> {
        self.systemctl(home, &["show", "--property=MainPID", "--value", unit])
            .trim()
            .parse()
            .ok()
            .filter(|pid| *pid != 0)
    }
}

impl Drop for UserManager {
    fn drop(&mut self) {
        process::signal(self.manager.id(), Signal::TERM);
        process::wait_for_exit(&mut self.manager, "the manager");
        for group in &self.groups {
            // The inner ones first; each is empty by now.
            let _ =
                Command::new("find").arg(group).args(["-depth", "-type", "d", "-exec", "rmdir", "{}", ";"]).status();
        }
    }
}
