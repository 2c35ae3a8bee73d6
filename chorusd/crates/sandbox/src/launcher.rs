//! Probes the sandbox of this machine and starts commands in it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use chorus_base::sync::RwLock;
use tokio::net::UnixStream;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use super::cgroups::Cgroups;
use super::own_program::OwnProgram;
use super::root_only_files::RootOnlyFiles;
use super::{CommandSpec, ConfinementLevel, Isolation, SandboxChild};

/// Environment variable with which tests restrict probing to one isolation method; it can only remove methods.
pub(crate) const ISOLATION_VAR: &str = "CHORUS_SANDBOX";

/// Limit on the commands that run at once with a caller waiting. A turn has only few of them. Background tasks have
/// their own limit.
const MAX_FOREGROUND_COMMANDS: usize = 32;

/// The sandbox of this machine.
#[derive(Debug)]
pub struct Sandbox {
    /// The daemon's own program, which runs again as the helper.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing runs inside there"))]
    program: OwnProgram,
    home: PathBuf,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "no remotes"))]
    cgroups: Cgroups,
    /// Further paths that commands must not see.
    hidden: RwLock<Vec<PathBuf>>,
    root_only_files: RootOnlyFiles,
    foreground_slots: Semaphore,
    level: OnceCell<ConfinementLevel>,
}

impl Sandbox {
    /// Creates the sandbox and removes control groups that an earlier daemon left. `program` is the daemon's own.
    /// `home` is Chorus's home, which commands cannot access; it must exist and belong to this daemon alone. The
    /// machine is probed when its level is first needed.
    #[must_use]
    pub fn new(program: &Path, home: &Path) -> Self {
        Self {
            program: OwnProgram::open(program, home),
            home: home.to_owned(),
            cgroups: Cgroups::detect(home),
            hidden: RwLock::default(),
            root_only_files: RootOnlyFiles::default(),
            foreground_slots: Semaphore::new(MAX_FOREGROUND_COMMANDS),
            level: OnceCell::new(),
        }
    }

    /// Sets further files and directories that commands must not see, from the next command on.
    pub fn hide_paths(&self, paths: Vec<PathBuf>) {
        *self.hidden.write() = paths;
    }

    /// Returns the confinement level, probing the machine at the first call. Returns `None` if resources are short at
    /// the moment; the next call tries again.
    pub async fn level_or_probe(&self) -> Option<&ConfinementLevel> {
        let found = self.level.get_or_try_init(async || {
            let level = self.probe().await?;
            tracing::info!("sandbox: {level}");
            level.missing.iter().for_each(|missing| tracing::warn!("sandbox: {}", missing.description));
            Ok(level)
        });
        let short = |e: &io::Error| tracing::warn!("cannot check the sandbox: {e}");
        found.await.inspect_err(short).ok()
    }

    /// Prepares for starting commands: determines the confinement level and the files to hide. Can take long if many
    /// files have to be scanned; a caller that gives up loses no progress.
    pub async fn prepare(&self) -> Option<&ConfinementLevel> {
        self.root_only_files.refresh().await;
        self.level_or_probe().await
    }

    /// Returns the confinement level if it has been determined.
    #[must_use]
    pub fn level(&self) -> Option<&ConfinementLevel> {
        self.level.get()
    }

    /// Returns the reason why commands cannot be confined here, as a text that continues "because"; `None` if they can.
    /// Before the first probe they cannot.
    #[must_use]
    pub fn unconfined_reason(&self) -> Option<&str> {
        match self.level() {
            None => Some("the sandbox check has not finished yet"),
            Some(level) if level.isolation == Isolation::None => {
                level.missing.first().map(|missing| missing.description.as_str())
            }
            Some(_) => None,
        }
    }

    /// Waits for a slot to run one more command, in the order of the calls. Dropping the permit frees the slot.
    pub(super) async fn acquire_slot(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.foreground_slots.acquire().await.ok()
    }

    /// Starts a command. Standard output goes to `output`, standard error to `errors`; standard input is empty.
    ///
    /// # Errors
    /// The command cannot be started, or [`Sandbox::prepare`] has not succeeded yet.
    pub fn start(&self, job: &CommandSpec, output: Stdio, errors: Stdio) -> io::Result<SandboxChild> {
        self.start_with_input(job, None, output, errors)
    }

    /// Like [`Sandbox::start`], with a standard input.
    ///
    /// # Errors
    /// As [`Sandbox::start`].
    pub fn start_with_input(
        &self,
        job: &CommandSpec,
        input: Option<OwnedFd>,
        output: Stdio,
        errors: Stdio,
    ) -> io::Result<SandboxChild> {
        let level = self.level().filter(|_| self.root_only_files.is_ready());
        let level = level.ok_or_else(|| io::Error::other("the sandbox check has not finished yet"))?;
        self.start_with(level.isolation, job, (input, output, errors))
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::io::IoSlice;
    use std::mem::MaybeUninit;
    use std::os::fd::AsFd as _;
    use std::os::fd::BorrowedFd;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::OnceLock;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use rustix::io::Errno;
    use tempfile::TempDir;

    use super::{
        CommandSpec, ConfinementLevel, ISOLATION_VAR, Isolation, OwnedFd, Path, PathBuf, Sandbox, SandboxChild, Stdio,
        UnixStream, io,
    };
    use crate::cgroups::CommandCgroups;
    use crate::protocol::{
        AppliedConfinement, CONFINE_STAGE, HELPER_FLAG, LaunchSpec, MAX_DESCRIPTORS, MountStep, NAMESPACES_STAGE,
    };
    use crate::{Confinement, Exit, PathAccess, ResourceLimits, bubblewrap, environment, git_author, mounts};

    /// Time limit for probing one method.
    const PROBE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

    /// Returns true for a shortage of descriptors, memory or processes, which says nothing about the isolation methods.
    fn is_resource_shortage(error: &io::Error) -> bool {
        let short = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
        Errno::from_io_error(error).is_some_and(|error| short.contains(&error))
    }

    impl Sandbox {
        /// Runs `true` with each method until one works.
        ///
        /// # Errors
        /// Only a shortage of resources, after which a later try may succeed.
        pub(super) async fn probe(&self) -> io::Result<ConfinementLevel> {
            let only = std::env::var(ISOLATION_VAR).ok();
            let mut failed = Vec::new();
            for way in [Isolation::Bubblewrap, Isolation::Namespaces] {
                if only.as_ref().is_some_and(|only| only != way.as_str()) {
                    failed.push((way, format!("{ISOLATION_VAR} selects another method")));
                    continue;
                }
                match self.probe_isolation(way).await {
                    Ok(reached) => return Ok(ConfinementLevel::new(way, reached, &failed)),
                    Err(short) if is_resource_shortage(&short) => return Err(short),
                    Err(why) => failed.push((way, why.to_string())),
                }
            }
            match self.probe_isolation(Isolation::None).await {
                Ok(reached) => Ok(ConfinementLevel::new(Isolation::None, reached, &failed)),
                Err(short) if is_resource_shortage(&short) => Err(short),
                Err(why) => {
                    failed.push((Isolation::None, why.to_string()));
                    Ok(ConfinementLevel::unconfined(&failed))
                }
            }
        }

        async fn probe_isolation(&self, way: Isolation) -> io::Result<AppliedConfinement> {
            let job = CommandSpec {
                argv: vec!["true".into()],
                env: Vec::new(),
                confinement: Confinement {
                    workspace: self.home.clone(),
                    shared: Vec::new(),
                    git_author: None,
                    network: false,
                    limits: ResourceLimits { time: Some(PROBE_TIMEOUT), ..ResourceLimits::default() },
                },
            };
            let (reader, writer) = io::pipe()?;
            let errors = Stdio::from(writer);
            let mut running = self.start_with(way, &job, (None, Stdio::null(), errors))?;
            let ended = tokio::time::timeout(PROBE_TIMEOUT, running.wait()).await;
            match (ended, running.applied_confinement()) {
                (Ok(Ok(Exit::Code(0))), Some(reached)) => Ok(reached),
                (Err(_), _) => Err(io::Error::other("it did not end in time")),
                (Ok(Err(e)), _) => Err(read_last_line(reader).map_or(e, io::Error::other)),
                (Ok(Ok(exit)), _) => Err(io::Error::other(format!("`true` exited with {exit:?}"))),
            }
        }

        pub(super) fn start_with(
            &self,
            way: Isolation,
            job: &CommandSpec,
            (input, output, errors): (Option<OwnedFd>, Stdio, Stdio),
        ) -> io::Result<SandboxChild> {
            let hidden = self.hidden.read().clone();
            let limits = job.confinement.limits.lowered_by_env();
            let confinement = Confinement { limits, ..job.confinement.clone() };
            let git_settings =
                confinement.git_author.as_ref().map(|name| git_author::write(&self.home, name)).transpose()?;
            let mut seen = mounts::plan_mounts(&confinement, &self.home, &hidden, &self.root_only_files.paths())?;
            let git_settings = match (git_settings, way) {
                (Some(file), Isolation::Bubblewrap | Isolation::Namespaces) => {
                    seen.steps.push(MountStep::Bind { from: file, to: git_author::SETTINGS_PATH.into(), write: false });
                    Some(git_author::SETTINGS_PATH.into())
                }
                (file, _) => file,
            };
            let network = job.confinement.network;
            let mut command = match way {
                Isolation::Bubblewrap => {
                    let program = find_bubblewrap().ok_or_else(|| io::Error::other("not installed"))?;
                    let mut command = tokio::process::Command::new(program);
                    command.args(bubblewrap::arguments(&seen.steps, network, self.program.path()?)?);
                    command
                }
                Isolation::Namespaces => {
                    let mut command = tokio::process::Command::new(self.program.path()?);
                    command.args([HELPER_FLAG, NAMESPACES_STAGE]).args(network.then_some("network"));
                    command
                }
                Isolation::None => {
                    let mut command = tokio::process::Command::new(self.program.path()?);
                    command.args([HELPER_FLAG, CONFINE_STAGE]);
                    command
                }
            };
            // Without isolation a command would write to the real home, and in a shared directory it would find files
            // of others.
            let own_home = if way == Isolation::None { Some(create_temp_home()?) } else { None };
            let (home, writable) = match &own_home {
                Some(own) => {
                    let shared = job.confinement.shared.iter();
                    let shared = shared.filter(|shared| shared.access == PathAccess::Writable);
                    let common = ["/tmp".into(), "/var/tmp".into(), seen.workspace.clone()].into_iter();
                    (own.path().to_owned(), common.chain(shared.map(|shared| shared.path.clone())).collect())
                }
                None => (seen.home, seen.writable),
            };
            let group = self.cgroups.create_for_command(&limits);
            let spec = LaunchSpec {
                way,
                network,
                steps: if way == Isolation::Namespaces { seen.steps } else { Vec::new() },
                writable,
                identities: seen.identities,
                dir: seen.workspace,
                argv: job.argv.clone(),
                env: environment::build_environment(std::env::vars_os(), &home, git_settings.as_deref(), &job.env),
                memory: limits.memory,
                processes: limits.processes,
                file: limits.file,
                groups: group.bound_resources(),
                has_input: input.is_some(),
            };
            let spec = serde_json::to_vec(&spec)?;
            let length = u32::try_from(spec.len()).map_err(io::Error::other)?;
            let mut to_say = [&length.to_be_bytes()[..], &spec].concat();
            let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            // [`SandboxChild`] sends the part that the socket does not accept now.
            let said = send_spec(&ours, &to_say, &group, input.as_ref())?;
            to_say.drain(..said);
            let child = command
                .env_clear()
                .current_dir("/")
                .stdin(OwnedFd::from(theirs))
                .stdout(output)
                .stderr(errors)
                .process_group(0)
                // Closing the control socket ends it. Killed during setup, bubblewrap leaves a process behind that
                // waits for ever.
                .kill_on_drop(false)
                .spawn()?;
            // The command still holds descriptors that were passed to the child.
            drop(command);
            Ok(SandboxChild::new(child, UnixStream::from_std(ours)?, to_say, group, own_home))
        }
    }

    /// Creates an empty home directory for one command.
    fn create_temp_home() -> io::Result<TempDir> {
        let own = std::fs::Permissions::from_mode(0o700);
        tempfile::Builder::new().prefix("chorus-home-").permissions(own).tempdir_in("/tmp")
    }

    /// Sends as much as the socket accepts, with the descriptors of the control groups and the standard input, and returns
    /// the number of bytes sent.
    fn send_spec(
        line: &std::os::unix::net::UnixStream,
        bytes: &[u8],
        group: &CommandCgroups,
        input: Option<&OwnedFd>,
    ) -> io::Result<usize> {
        let doors: Vec<BorrowedFd<'_>> =
            group.join_files().map(|file| file.as_fd()).chain(input.map(|input| input.as_fd())).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !doors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(&doors)) {
            return Err(io::Error::other("too many descriptors"));
        }
        Ok(sendmsg(line, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL)?)
    }

    /// Returns the last line of the output. All processes that could write to it must have ended.
    fn read_last_line(mut reader: io::PipeReader) -> Option<String> {
        let mut text = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(&mut reader, 4096), &mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        Some(text.trim().lines().last()?.to_owned()).filter(|line| !line.is_empty())
    }

    /// Finds bubblewrap in PATH; the result is cached.
    fn find_bubblewrap() -> Option<&'static Path> {
        static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
        let find = || {
            let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
            std::env::split_paths(&path).map(|dir| dir.join("bwrap")).find(|file| file.is_file())
        };
        FOUND.get_or_init(find).as_deref()
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{CommandSpec, ConfinementLevel, Isolation, OwnedFd, Sandbox, SandboxChild, Stdio, io};

    impl Sandbox {
        pub(super) async fn probe(&self) -> io::Result<ConfinementLevel> {
            Ok(ConfinementLevel::nothing(&[(Isolation::None, "namespaces require Linux".into())]))
        }

        pub(super) fn start_with(
            &self,
            _: Isolation,
            _: &CommandSpec,
            _: (Option<OwnedFd>, Stdio, Stdio),
        ) -> io::Result<SandboxChild> {
            Err(io::Error::new(io::ErrorKind::Unsupported, "commands require Linux"))
        }
    }
}

/// Returns advice on how to make isolation possible on this machine.
pub(super) fn isolation_remedy() -> Option<String> {
    let number = |name: &str| {
        let text = std::fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    Some(if number("user/max_user_namespaces") == Some(0) {
        "allow namespaces: sysctl user.max_user_namespaces=10000".into()
    } else if number("kernel/unprivileged_userns_clone") == Some(0) {
        "allow namespaces: sysctl kernel.unprivileged_userns_clone=1".into()
    } else if number("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        "install bubblewrap and an AppArmor profile for it with `userns`, or run sysctl \
         kernel.apparmor_restrict_unprivileged_userns=0"
            .into()
    } else {
        "install bubblewrap; in a container, allow it to create user namespaces".into()
    })
}
