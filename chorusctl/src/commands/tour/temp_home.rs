//! The temporary home of the tour, in which this program is run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use chorus_proto::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::cleanup::CleanupProcess;
use crate::commands::daemon::wait_exit;
use crate::error::{Error, os_error_text};
use crate::ui::terminal::ColorWhen;
use crate::ui::{Stdout, Style};

/// The conversation that the tour imports.
const TRANSCRIPT: &str = include_str!("../../../tour/transcript.jsonl");

/// A temporary home and what runs in it.
#[derive(Debug)]
pub(super) struct TempHome {
    program: PathBuf,
    directory: TempDir,
    color: ColorWhen,
    cleanup: Option<CleanupProcess>,
}

impl TempHome {
    /// Creates the directory, writes the transcript into it, and starts the cleanup process.
    pub(super) fn new(color: ColorWhen) -> Result<Self, Error> {
        let failed =
            |error: std::io::Error| Error::failed(format!("failed to prepare the tour: {}", os_error_text(&error)));
        let program = std::env::current_exe().map_err(failed)?;
        let directory = tempfile::Builder::new().prefix("chorus-tour-").tempdir().map_err(failed)?;
        std::fs::write(directory.path().join("transcript.jsonl"), TRANSCRIPT).map_err(failed)?;
        let mut stage = Self { program, directory, color, cleanup: None };
        stage.cleanup = CleanupProcess::spawn(stage.directory.path(), stage.command(&["daemon", "stop"])).ok();
        Ok(stage)
    }

    /// Returns the temporary directory.
    #[must_use]
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Prints the command and runs it; its output is inherited.
    pub(super) fn run(&self, out: &mut Stdout, arguments: &[&str]) -> Result<(), Error> {
        let shown = format_command(arguments);
        writeln!(out, "\n{}", out.style(Style::Strong, &format!("$ {shown}")))?;
        out.flush()?;
        let ended = self.command(arguments).stdin(Stdio::null()).status();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Error::failed(format!("the tour failed at `{shown}`: {status}"))),
            Err(error) => Err(Error::failed(format!("the tour failed at `{shown}`: {}", os_error_text(&error)))),
        }
    }

    /// Runs a command without printing it and returns its JSON.
    pub(super) fn run_json(&self, arguments: &[&str]) -> Result<Value, Error> {
        let shown = format_command(arguments);
        let failed = |why: String| Error::failed(format!("the tour failed at `{shown}`: {why}"));
        let output = self.command(arguments).arg("--json").stdin(Stdio::null()).output();
        let output = output.map_err(|error| failed(os_error_text(&error)))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
    }

    /// Sends SIGKILL to the daemon and waits up to 5 s until it has ended.
    pub(super) fn kill_daemon(&self, out: &mut Stdout) -> Result<(), Error> {
        let failed = |why: &str| Error::failed(format!("the tour failed at `kill -9`: {why}"));
        let status = self.run_json(&["status"])?;
        let number = status["daemon"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let number = number.ok_or_else(|| failed("the daemon did not report its pid"))?;
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw).ok_or_else(|| failed("no such pid"))?;
        writeln!(out, "\n{}", out.style(Style::Strong, &format!("$ kill -9 {number}")))?;
        kill_process(pid, Signal::KILL).map_err(|error| failed(&os_error_text(&error.into())))?;
        let socket = self.home().join("run").join("chorusd.sock");
        if !wait_exit::wait_for_exit(number, &socket, Duration::from_secs(5)) || Client::connect(&socket).is_ok() {
            return Err(failed("the daemon is still running"));
        }
        Ok(())
    }

    /// Stops the daemon if it still runs and removes the directory.
    pub(super) fn close(mut self) -> Result<(), Error> {
        let _ = self.command(&["daemon", "stop", "--timeout", "5s"]).stdin(Stdio::null()).output();
        let path = self.directory.path().display().to_string();
        let cleared = self.directory.close();
        if let Some(sweeper) = self.cleanup.take() {
            sweeper.finish();
        }
        cleared.map_err(|error| Error::failed(format!("failed to remove {path}: {}", os_error_text(&error))))
    }

    /// Builds a command of this program for the temporary home, without any other CHORUS_ variables.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let ours = |name: &OsString| name.to_str().is_some_and(|name| name.starts_with("CHORUS_"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        // No provider is to be asked for models with the user's key.
        command.env_remove("ANTHROPIC_API_KEY");
        command.env("CHORUS_HOME", self.home()).current_dir(self.directory.path()).args(arguments);
        match self.color {
            ColorWhen::Auto => {}
            ColorWhen::Always => drop(command.args(["--color", "always"])),
            ColorWhen::Never => drop(command.args(["--color", "never"])),
        }
        command
    }
}

/// Formats a command as a user would type it.
fn format_command(arguments: &[&str]) -> String {
    let mut shown = String::from("chorusctl");
    for argument in arguments {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./~".contains(c);
        let quote = if argument.chars().all(plain) { "" } else { "\"" };
        shown.push_str(&format!(" {quote}{argument}{quote}"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        assert_eq!(
            format_command(&["context", "save", "before lunch", "--clear"]),
            "chorusctl context save \"before lunch\" --clear"
        );
    }

    #[test]
    fn the_transcript_is_one_object_a_line_in_a_chain() {
        let mut last = Value::Null;
        for line in TRANSCRIPT.lines().skip(1) {
            let entry: Value = serde_json::from_str(line).unwrap_or_default();
            assert_eq!(entry["parentUuid"], last, "{line}");
            assert!(entry["message"]["role"].is_string() && entry["timestamp"].is_string(), "{line}");
            last = entry["uuid"].clone();
        }
        assert!(TRANSCRIPT.contains("we keep the old column until the backfill is verified"));
    }
}
