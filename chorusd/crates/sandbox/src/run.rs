//! Runs a command to its end.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use chorus_redact::Redactor;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::output::OutputCapture;
use super::{CommandSpec, Exit, Sandbox};

/// How long a command may take to end after it was asked to.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);
/// How long to read the rest of the pipe after the command has ended: another process may hold it open.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Bytes read at once.
const READ_BUFFER_LEN: usize = 64 << 10;

const CANCELLED_EARLY: &str = "it was cancelled before";
const PROBE_TIMED_OUT: &str = "the sandbox check timed out";
const TOO_MANY_COMMANDS: &str = "too many commands are running";

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    pub exit: Exit,
    /// Both output streams, interleaved as they arrived: beginning and end, with a line between them that says how many
    /// bytes were left out.
    pub output: String,
    /// True if it was ended because the turn was cancelled.
    pub cancelled: bool,
}

impl CommandOutcome {
    /// The result of a command that did not start, with the reason for people.
    fn not_started(why: &str, cancelled: bool) -> Self {
        Self { exit: Exit::TimedOut, output: format!("[not started: {why}]"), cancelled }
    }
}

/// Runs a command until it ends, its time is up, or it is cancelled; none of its processes is left afterwards. If too
/// many commands run, it waits for a slot. Waiting and preparing the sandbox count towards the time limit.
pub async fn run(sandbox: &Sandbox, job: &CommandSpec, cancel: &CancellationToken) -> io::Result<CommandOutcome> {
    run_redacted(sandbox, job, cancel, None).await
}

/// Like [`run`], with a `redactor` that replaces secrets in the output before any of it is left out.
pub async fn run_redacted(
    sandbox: &Sandbox,
    job: &CommandSpec,
    cancel: &CancellationToken,
    redactor: Option<&Arc<Redactor>>,
) -> io::Result<CommandOutcome> {
    let limit = job.confinement.limits.time;
    let up = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(up);
    if let Err(never) = wait_to_start(cancel, up.as_mut(), sandbox.prepare(), PROBE_TIMED_OUT).await {
        return Ok(never);
    }
    let _room = match wait_to_start(cancel, up.as_mut(), sandbox.acquire_slot(), TOO_MANY_COMMANDS).await {
        Ok(room) => room,
        Err(never) => return Ok(never),
    };
    let mut attempt = RunAttempt { sandbox, job, cancel, redactor, deadline: up };
    match attempt.run().await {
        // A path that was to be hidden may have disappeared in the meantime: retry with the paths that exist now.
        Err(RunFailure { may_have_started: false, .. }) => attempt.run().await,
        ran => ran,
    }
    .map_err(|failed| failed.error)
}

/// A command to run until `deadline` fires.
struct RunAttempt<'a, Up> {
    sandbox: &'a Sandbox,
    job: &'a CommandSpec,
    cancel: &'a CancellationToken,
    redactor: Option<&'a Arc<Redactor>>,
    deadline: Pin<&'a mut Up>,
}

/// The error of a command that has no exit status.
struct RunFailure {
    error: io::Error,
    /// False if the command certainly did not start.
    may_have_started: bool,
}

impl From<io::Error> for RunFailure {
    /// Errors before the sandbox is involved, which a retry would not fix.
    fn from(why: io::Error) -> Self {
        Self { error: why, may_have_started: true }
    }
}

impl<Up: Future<Output = ()>> RunAttempt<'_, Up> {
    async fn run(&mut self) -> Result<CommandOutcome, RunFailure> {
        let (reader, writer) = io::pipe()?;
        let mut running = self.sandbox.start(self.job, Stdio::from(writer.try_clone()?), Stdio::from(writer))?;
        let mut reader = pipe::Receiver::from_owned_fd(reader.into())?;
        let mut output = OutputCapture::new(self.redactor);
        let mut piece = vec![0; READ_BUFFER_LEN];
        let (mut timed_out, mut cancelled, mut open) = (false, false, true);
        let ended = loop {
            tokio::select! {
                ended = running.wait() => break ended,
                read = reader.read(&mut piece), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => output.push(&piece[..count]),
                },
                () = &mut self.deadline => timed_out = true,
                () = self.cancel.cancelled() => cancelled = true,
            }
            if timed_out || cancelled {
                {
                    let mut end = std::pin::pin!(running.terminate(TERMINATE_GRACE));
                    loop {
                        tokio::select! {
                            () = &mut end => break,
                            // It may be blocked on writing its output.
                            read = reader.read(&mut piece), if open => match read {
                                Ok(0) | Err(_) => open = false,
                                Ok(count) => output.push(&piece[..count]),
                            },
                        }
                    }
                }
                break if timed_out { Ok(Exit::TimedOut) } else { running.wait().await };
            }
        };
        let rest = async {
            while let Ok(count) = reader.read(&mut piece).await {
                if count == 0 {
                    break;
                }
                output.push(&piece[..count]);
            }
        };
        if open {
            // The timeout also stops reading if another process keeps writing.
            let _ = tokio::time::timeout(OUTPUT_DRAIN_TIMEOUT, rest).await;
        }
        match ended {
            Ok(exit) => Ok(CommandOutcome { exit, output: output.finish(), cancelled }),
            Err(why) => Err(RunFailure {
                error: why,
                may_have_started: running.applied_confinement().is_some() || timed_out || cancelled,
            }),
        }
    }
}

/// Waits for a resource that a command needs to start. Returns `Err` if the command is cancelled first, or if the
/// deadline fires first, with `why` as the reason.
async fn wait_to_start<T>(
    cancel: &CancellationToken,
    up: Pin<&mut impl Future<Output = ()>>,
    needed: impl Future<Output = T>,
    why: &str,
) -> Result<T, CommandOutcome> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(CommandOutcome::not_started(CANCELLED_EARLY, true)),
        () = up => Err(CommandOutcome::not_started(why, false)),
        needed = needed => Ok(needed),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn one_that_does_not_begin_says_why() {
        let cancel = CancellationToken::new();
        let (mut up, mut time) = (Box::pin(ready(())), Box::pin(pending()));
        assert_eq!(wait_to_start(&cancel, time.as_mut(), ready(7), TOO_MANY_COMMANDS).await, Ok(7));
        let never = wait_to_start(&cancel, up.as_mut(), pending::<()>(), PROBE_TIMED_OUT).await.unwrap_err();
        assert!(never.output.contains(PROBE_TIMED_OUT) && !never.cancelled && never.exit == Exit::TimedOut);
        cancel.cancel();
        let never = wait_to_start(&cancel, time.as_mut(), pending::<()>(), TOO_MANY_COMMANDS).await.unwrap_err();
        assert!(
            never.cancelled && !never.output.contains(TOO_MANY_COMMANDS) && never.output.contains(CANCELLED_EARLY),
            "{never:?}"
        );
    }
}
