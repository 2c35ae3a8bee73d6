//! Runs git commands in the sandbox with settings that nothing in the workspace can override.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use chorus_redact::Redactor;
use chorus_sandbox::{CommandSpec, Exit, PathAccess, ResourceLimits, SharedPath, run_redacted};
use futures_util::future::BoxFuture;

use super::{GitResult, repository_dirs};
use crate::tools::ToolContext;

/// Settings given on the command line, which take precedence over those of any file.
const SETTINGS: [&str; 30] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=",
    "core.sshCommand=false",
    "core.gitProxy=none",
    "core.alternateRefsCommand=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "sequence.editor=false",
    "interactive.diffFilter=false",
    "credential.helper=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "push.gpgSign=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "protocol.ext.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "init.templateDir=",
    "safe.bareRepository=explicit",
    "color.ui=false",
];

/// Environment variables of every git command.
const VARIABLES: [(&str, &str); 17] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PROXY_COMMAND", ""),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_ADVICE", "0"),
    ("LC_ALL", "C.UTF-8"),
    ("LANGUAGE", "C"),
];

/// Settings that name programs and cannot be overridden, because their names can be chosen freely.
const PROGRAM_SETTINGS_PATTERN: &str = r"^(filter|hook)\.";

/// Time that git has to end when it is cancelled.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);

/// The output of git, and whether it succeeded.
#[derive(Debug)]
pub(super) struct GitOutput {
    pub ok: bool,
    pub status: i32,
    pub text: String,
}

/// A way to run git.
#[derive(Clone)]
pub(super) struct Git<'a> {
    ctx: &'a ToolContext,
    settings: Vec<String>,
    env: Vec<(OsString, OsString)>,
    /// Directories that git sees besides those of the conversation.
    directories: Vec<SharedPath>,
}

impl<'a> Git<'a> {
    /// Returns git for the workspace's repository after checking its configuration.
    ///
    /// # Errors
    /// There is no repository, or its configuration names programs.
    pub(super) async fn new(ctx: &'a ToolContext) -> GitResult<Self> {
        let repository = repository_dirs(ctx)?;
        let mut git = Self::without_repository(ctx);
        git.env.push(("GIT_DIR".into(), repository.git_dir.into()));
        git.env.push(("GIT_COMMON_DIR".into(), repository.common_dir.into()));
        git.env.push(("GIT_WORK_TREE".into(), ctx.workspace().into()));
        git.env.push(("GIT_ALLOW_PROTOCOL".into(), "none".into()));
        git.check_config().await?;
        Ok(git)
    }

    /// Returns git without a repository.
    pub(super) fn without_repository(ctx: &'a ToolContext) -> Self {
        let mut env: Vec<(OsString, OsString)> =
            VARIABLES.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let above = ctx.files_dir.clone().into_os_string();
        env.push(("GIT_CEILING_DIRECTORIES".into(), above));
        Self { ctx, settings: SETTINGS.map(str::to_owned).to_vec(), env, directories: Vec::new() }
    }

    /// Shows git a further directory, which it may write to.
    pub(super) fn with_directory(mut self, path: PathBuf) -> Self {
        self.directories.push(SharedPath { path, access: PathAccess::Writable });
        self
    }

    /// Shows git a further file, which it may only read.
    pub(super) fn with_read_only_file(mut self, path: PathBuf) -> Self {
        self.directories.push(SharedPath { path, access: PathAccess::ReadOnly });
        self
    }

    /// Allows a protocol, such as `file` for bundles.
    pub(super) fn with_protocol(mut self, name: &str) -> Self {
        self.env.retain(|(variable, _)| variable != "GIT_ALLOW_PROTOCOL");
        self.env.push(("GIT_ALLOW_PROTOCOL".into(), name.into()));
        self
    }

    /// Refuses a configuration that names programs, and sets an identity if there is none. Any unexpected line of
    /// output is a reason to refuse, including the one that replaces a part left out of long output.
    async fn check_config(&mut self) -> GitResult<()> {
        let wanted = format!("({PROGRAM_SETTINGS_PATTERN})|(^user\\.(name|email)$)");
        let said = self.run(["config", "--includes", "--name-only", "--get-regexp", &wanted]).await?;
        if !said.ok && !said.text.is_empty() {
            return Err(format!("cannot read the repository's configuration: {}", said.text));
        }
        let (mut name, mut email) = (false, false);
        for line in said.text.lines() {
            match line {
                "user.name" => name = true,
                "user.email" => email = true,
                other => {
                    let shown: String = other.chars().take(200).collect();
                    return Err(format!(
                        "the repository's configuration sets `{shown}`, which runs a program; git tools do not \
                         allow that; remove the setting, or use git in bash"
                    ));
                }
            }
        }
        if !name {
            self.settings.push(format!("user.name={}", self.ctx.agent_name));
        }
        if !email {
            self.settings.push(format!("user.email={}@chorus.localhost", self.ctx.agent_name));
        }
        Ok(())
    }

    /// Returns the name of the conversation that git is run for; `None` for `main`.
    pub(super) fn conversation_name(&self) -> Option<&'a str> {
        self.ctx.conversation_name.as_deref()
    }

    /// Returns the settings as arguments of git.
    pub(super) fn settings(&self) -> impl Iterator<Item = &str> {
        self.settings.iter().flat_map(|setting| ["-c", setting.as_str()])
    }

    /// Runs git with these arguments.
    pub(super) async fn run<A: AsRef<str>>(&self, args: impl IntoIterator<Item = A>) -> GitResult<GitOutput> {
        self.run_argv(self.argv(args), None).await
    }

    async fn run_argv(&self, argv: Vec<OsString>, redactor: Option<&Arc<Redactor>>) -> GitResult<GitOutput> {
        run_in_sandbox_redacted(self.ctx, argv, self.env.clone(), false, redactor, &self.directories).await
    }

    /// Like [`Git::output`], for output that is only shown: secrets are replaced before any of it is left out.
    pub(super) async fn output_redacted<A: AsRef<str>>(&self, args: impl IntoIterator<Item = A>) -> GitResult<String> {
        let said = self.run_argv(self.argv(args), self.ctx.redactor.as_ref()).await?;
        if said.ok { Ok(said.text) } else { Err(said.text) }
    }

    fn argv<A: AsRef<str>>(&self, args: impl IntoIterator<Item = A>) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec!["git".into(), "--no-pager".into()];
        argv.extend(self.settings().map(Into::into));
        argv.extend(args.into_iter().map(|arg| arg.as_ref().into()));
        argv
    }

    /// Runs git with its standard output in a file, of up to `max_bytes`. What it says on standard error is lost.
    ///
    /// # Errors
    /// If git fails or is cancelled, or writes more.
    pub(super) async fn write_output<A: AsRef<str>>(
        &self,
        args: impl IntoIterator<Item = A>,
        out: &File,
        max_bytes: u64,
    ) -> GitResult<()> {
        let failed = |e: std::io::Error| format!("cannot run git: {e}");
        let limits = ResourceLimits { file: max_bytes, ..ResourceLimits::default() };
        let mut confinement = self.ctx.confinement(false, limits).await?;
        confinement.shared.extend_from_slice(&self.directories);
        let job = CommandSpec { argv: self.argv(args), env: self.env.clone(), confinement };
        let out = out.try_clone().map_err(failed)?;
        let mut running = self.ctx.services.sandbox.start(&job, out.into(), Stdio::null()).map_err(failed)?;
        let exit = tokio::select! {
            exit = running.wait() => exit.map_err(failed)?,
            () = self.ctx.cancel.cancelled() => {
                running.terminate(TERMINATE_GRACE).await;
                return Err("git was cancelled".into());
            }
        };
        match exit {
            Exit::Code(0) => Ok(()),
            exit => Err(format!("git ended with {exit:?}")),
        }
    }

    /// Runs a shell script with the git settings as its arguments.
    pub(super) async fn run_script(&self, script: &str) -> GitResult<GitOutput> {
        let mut argv: Vec<OsString> = ["sh", "-c", script, "sh"].map(Into::into).to_vec();
        argv.extend(self.settings().map(Into::into));
        self.run_argv(argv, None).await
    }

    /// Runs a shell script that does not call git, with these arguments.
    ///
    /// # Errors
    /// As for [`Git::output`].
    pub(super) async fn run_shell(&self, script: &str, args: impl IntoIterator<Item = OsString>) -> GitResult<()> {
        let mut argv: Vec<OsString> = ["sh", "-c", script, "sh"].map(Into::into).to_vec();
        argv.extend(args);
        let said = self.run_argv(argv, None).await?;
        if said.ok { Ok(()) } else { Err(said.text) }
    }

    /// Like [`Git::run`], but returns only the output and fails if git does.
    ///
    /// # Errors
    /// As for [`Git::run`], and git's own error message.
    pub(super) async fn output<A: AsRef<str>>(&self, args: impl IntoIterator<Item = A>) -> GitResult<String> {
        let said = self.run(args).await?;
        if said.ok { Ok(said.text) } else { Err(said.text) }
    }
}

/// Returns the settings that git is run with everywhere.
pub fn settings() -> impl Iterator<Item = &'static str> {
    SETTINGS.into_iter()
}

/// Returns the environment variables that git is run with everywhere.
pub fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    VARIABLES.iter().map(|(name, value)| (name.into(), value.into()))
}

/// Runs a command in the agent's sandbox.
pub(super) fn run_in_sandbox<'a>(
    ctx: &'a ToolContext,
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    network: bool,
) -> BoxFuture<'a, GitResult<GitOutput>> {
    Box::pin(async move { run_in_sandbox_redacted(ctx, argv, env, network, None, &[]).await })
}

async fn run_in_sandbox_redacted(
    ctx: &ToolContext,
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    network: bool,
    redactor: Option<&Arc<Redactor>>,
    directories: &[SharedPath],
) -> GitResult<GitOutput> {
    let program = argv.first().map(|program| Path::new(program).display().to_string()).unwrap_or_default();
    let mut confinement = ctx.confinement(network, ResourceLimits::default()).await?;
    confinement.shared.extend_from_slice(directories);
    let job = CommandSpec { argv, env, confinement };
    let ran = run_redacted(&ctx.services.sandbox, &job, &ctx.cancel, redactor)
        .await
        .map_err(|e| format!("cannot start {program}: {e}"))?;
    let text = ran.output.trim_end().to_owned();
    match ran.exit {
        _ if ran.cancelled => Err("the turn was cancelled while git was running".into()),
        Exit::TimedOut => Err(format!("git timed out and was stopped. Output: {text}")),
        Exit::Memory => Err(format!("git exceeded the memory limit and was killed. Output: {text}")),
        Exit::Signal(signal) => Err(format!("git was killed by signal {signal}. Output: {text}")),
        Exit::Code(status) => Ok(GitOutput { ok: status == 0, status, text }),
    }
}
