//! Runs commands in the root of the workspace and prints each before it runs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use crate::error::{Error, Result};

#[derive(Debug)]
pub struct Shell {
    pub root: PathBuf,
    /// Print commands only.
    pub dry_run: bool,
}

impl Shell {
    pub fn new(root: PathBuf, dry_run: bool) -> Self {
        Self { root, dry_run }
    }

    /// Prints a line on standard output.
    pub fn say(&self, line: &str) {
        // Whoever closed it does not want to know.
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    /// The cargo that runs this program.
    pub fn cargo(&self) -> Step {
        // `cargo +nightly` is for rustup's; this one has a toolchain already.
        Step::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
    }

    /// Runs a command and fails unless it succeeds.
    pub fn run(&self, step: &Step) -> Result<()> {
        self.say(&format!("$ {step}"));
        if self.dry_run {
            return Ok(());
        }
        let status = self.command(step).status().map_err(|error| cannot_start(step, &error))?;
        if status.success() {
            return Ok(());
        }
        Err(has_failed(step, status))
    }

    /// As [`Shell::run`]; returns what the command wrote on standard output, which is also printed line by line.
    pub fn run_and_read(&self, step: &Step) -> Result<String> {
        self.say(&format!("$ {step}"));
        let mut text = String::new();
        if self.dry_run {
            return Ok(text);
        }
        let failed = |error: &std::io::Error| cannot_start(step, error);
        let mut child = self.command(step).stdout(Stdio::piped()).spawn().map_err(|error| failed(&error))?;
        for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
            let line = line.map_err(|error| failed(&error))?;
            self.say(&line);
            text.push_str(&line);
            text.push('\n');
        }
        let status = child.wait().map_err(|error| failed(&error))?;
        if status.success() { Ok(text) } else { Err(has_failed(step, status)) }
    }

    /// Returns what a command writes on standard output, and prints nothing of it. Runs it in a dry run, too.
    pub fn output(&self, step: &Step) -> Result<String> {
        let mut command = self.command(step);
        let output = command.stderr(Stdio::inherit()).output().map_err(|error| cannot_start(step, &error))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(has_failed(step, output.status))
        }
    }

    /// Returns true if a command exists and succeeds; nothing of it is printed.
    pub fn succeeds(&self, step: &Step) -> bool {
        let mut command = self.command(step);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    fn command(&self, step: &Step) -> Command {
        let mut command = Command::new(&step.words[0]);
        command.args(&step.words[1..]).current_dir(&self.root);
        command.envs(step.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn has_failed(step: &Step, status: ExitStatus) -> Error {
    Error::new(format!("`{}` failed ({status})", step.words[0..step.words.len().min(3)].join(" ")))
        .hint("its output above says why; run the printed command in the root of the workspace to repeat it")
}

fn cannot_start(step: &Step, error: &std::io::Error) -> Error {
    Error::new(format!("cannot start {}: {error}", step.words[0])).hint("install it, or add its directory to PATH")
}

/// A command with its environment.
#[derive(Debug, Clone)]
pub struct Step {
    words: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Step {
    pub fn new(program: impl Into<String>) -> Self {
        Self { words: vec![program.into()], environment: Vec::new() }
    }

    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.words.push(arg.into());
        self
    }

    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.words.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Puts another program in front.
    pub fn under<S: Into<String>>(mut self, prefix: impl IntoIterator<Item = S>) -> Self {
        self.words.splice(0..0, prefix.into_iter().map(Into::into));
        self
    }
}

/// As a person would type it.
impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={value} ")?;
        }
        // The path of the toolchain's own cargo is long and says nothing.
        let words = self.words.iter().map(|word| if word.ends_with("/bin/cargo") { "cargo" } else { word.as_str() });
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}
