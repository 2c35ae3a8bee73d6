//! `bash`: a command, in the sandbox.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::tool::{Outcome, Tool};
use super::{Scene, background};
use crate::permissions::Action;
use crate::sandbox::{self, Confinement, Exit, Job, Limits, Ran};

/// Seconds that a command may take.
const TIMEOUT: u64 = 120;
const LONGEST: u64 = 600;

pub struct Bash;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    command: String,
    /// Seconds; 120 unless given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u64>,
    /// For what takes minutes: it has no timeout, and a message tells when it has ended.
    #[serde(default)]
    background: bool,
}

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = "Runs a command by `bash -c` in the workspace; returns its output and exit status. Each call begins anew: no cd, variable or process is carried over, and only the workspace keeps files. There is no terminal and no input.";
    type Params = Params;

    fn action(params: &Params, _: &Scene) -> Result<String, String> {
        if params.command.trim().is_empty() {
            return Err("the command is empty; call bash again with one".into());
        }
        // No program can be given one: what would run is not what was judged.
        if params.command.contains('\0') {
            return Err("the command has a NUL in it, which no command can have; leave it out".into());
        }
        if params.background && params.timeout.is_some() {
            return Err("a command in the background has no timeout; leave one of the two out".into());
        }
        if params.timeout.is_some_and(|timeout| !(1..=LONGEST).contains(&timeout)) {
            return Err(format!("timeout must be from 1 to {LONGEST} seconds"));
        }
        Ok(Action::Bash { command: &params.command }.to_string())
    }

    fn beyond_always(params: &Params) -> Option<&'static str> {
        params.background.then_some(
            "what is approved for ever is approved for the foreground; in the background it is asked about every time",
        )
    }

    async fn run(params: Params, scene: Arc<Scene>) -> Outcome {
        if params.background {
            return background::start(params.command, &scene).await;
        }
        let timeout = Duration::from_secs(params.timeout.unwrap_or(TIMEOUT));
        let job = Job {
            argv: ["bash", "--noprofile", "--norc", "-c", &params.command].map(Into::into).into(),
            env: Vec::new(),
            confinement: Confinement {
                workspace: scene.workspace(),
                network: scene.network(),
                limits: Limits { time: Some(timeout), ..Limits::default() },
            },
        };
        match sandbox::run_redacted(&scene.world.sandbox, &job, &scene.cancel, scene.redactor.as_ref()).await {
            Ok(ran) => told(ran, timeout),
            Err(e) => Outcome::error(format!("the command was not run: {e}")),
        }
    }
}

/// The output, and on a last line how it ended: `[exit status N]` and the like.
fn told(ran: Ran, timeout: Duration) -> Outcome {
    let mut text = ran.output;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = match ran.exit {
        _ if ran.cancelled => write!(text, "[cancelled: all its processes were ended]"),
        Exit::Code(code) => write!(text, "[exit status {code}]"),
        Exit::Signal(signal) => write!(text, "[ended by signal {signal}]"),
        Exit::Memory => write!(
            text,
            "[out of memory: its processes used more than {} GiB together, and all were ended]",
            Limits::default().memory >> 30
        ),
        Exit::TimedOut => write!(text, "[timed out after {} s: all its processes were ended]", timeout.as_secs()),
    };
    Outcome::Told { text, is_error: ran.cancelled || ran.exit != Exit::Code(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_how_it_ended() {
        let ran = |exit, output: &str, cancelled| {
            let Outcome::Told { text, is_error } =
                told(Ran { exit, output: output.into(), cancelled }, Duration::from_secs(7))
            else {
                panic!("the turn goes on");
            };
            (text, is_error)
        };
        assert_eq!(ran(Exit::Code(0), "", false), ("[exit status 0]".into(), false));
        assert_eq!(ran(Exit::Code(3), "no", false), ("no\n[exit status 3]".into(), true));
        assert_eq!(ran(Exit::Signal(9), "x\n", false), ("x\n[ended by signal 9]".into(), true));
        let (text, is_error) = ran(Exit::TimedOut, "", false);
        assert!(text.starts_with("[timed out after 7 s") && is_error);
        assert!(ran(Exit::Signal(15), "", true).0.contains("[cancelled"));
    }
}
