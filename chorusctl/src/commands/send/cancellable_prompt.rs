//! The approval question at the terminal. Reads a line while the daemon may report that the approval was decided
//! elsewhere.

use std::io::{self, PipeReader, PipeWriter};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chorus_proto::methods::approvals::{Approval, Approve, ApproveParams, Deny, DenyParams};
use chorus_proto::paths::InstancePaths;
use chorus_proto::{CallError, Client, ErrorKind};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};

use crate::commands::approvals::approve::describe_consequences;
use crate::error::Error;
use crate::ui::{Stderr, Style, terminal};

/// How long to wait for the daemon to accept an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns true if a question can be asked: on a terminal, in the foreground process group.
#[must_use]
pub(super) fn is_possible() -> bool {
    terminal::can_prompt() && tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// An open question.
#[derive(Debug)]
pub(super) struct Prompt {
    pub id: String,
    /// Closing this end withdraws the question.
    cancel_writer: Option<PipeWriter>,
    thread: Option<JoinHandle<bool>>,
}

impl Prompt {
    /// Shows the question and reads the answer in a thread. The caller has printed the action already.
    pub(super) fn spawn(approval: Approval, places: InstancePaths, notes: Stderr) -> io::Result<Self> {
        let (woken, wake) = io::pipe()?;
        let id = approval.id.clone();
        // Discard input that was typed before the question appeared.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        let asking = PromptThread { approval, paths: places, stderr: notes, cancel_reader: woken };
        let thread = thread::Builder::new().name("prompt".into()).spawn(move || asking.run())?;
        Ok(Self { id, cancel_writer: Some(wake), thread: Some(thread) })
    }

    /// Withdraws the question. Returns true if it was answered here.
    pub(super) fn withdraw(mut self) -> bool {
        self.join()
    }

    fn join(&mut self) -> bool {
        self.cancel_writer = None;
        self.thread.take().is_some_and(|thread| thread.join().unwrap_or(false))
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        self.join();
    }
}

struct PromptThread {
    approval: Approval,
    paths: InstancePaths,
    stderr: Stderr,
    cancel_reader: PipeReader,
}

enum Choice {
    Once,
    Always,
    No,
}

impl PromptThread {
    /// Asks until there is an answer. Returns true if it was answered here.
    fn run(&self) -> bool {
        let always = self.approval.not_always.is_none();
        loop {
            let words = if always { "[y]es, [a]lways exactly this, [N]o" } else { "[y]es, [N]o" };
            self.stderr.styled_part(Style::Strong, &format!("Allow? {words}: "));
            let Some(line) = self.read_line() else { return false };
            let choice = match &*line.trim().to_ascii_lowercase() {
                "y" | "yes" => Choice::Once,
                "a" | "always" if always => Choice::Always,
                "a" | "always" => {
                    let why = self.approval.not_always.as_deref().unwrap_or_default();
                    self.stderr.line(&format!("cannot be approved permanently: {why}"));
                    continue;
                }
                "" | "n" | "no" => Choice::No,
                _ => {
                    self.stderr.line("enter y, a or n (default: n)");
                    continue;
                }
            };
            match self.send_answer(&choice) {
                Ok(lines) => lines.iter().for_each(|line| self.stderr.line(line)),
                // The approval is still open: an action that cannot be approved permanently may be approved once.
                Err(CallError::Rpc(error)) if error.kind() == ErrorKind::Denied && matches!(choice, Choice::Always) => {
                    Error::from(error).print(self.stderr);
                    continue;
                }
                Err(error) => Error::from(error).print(self.stderr),
            }
            return true;
        }
    }

    /// Sends the answer over a separate connection, because the other one waits for the reply.
    fn send_answer(&self, choice: &Choice) -> Result<Vec<String>, CallError> {
        let mut client = Client::connect_to(&self.paths)?;
        client.set_timeout(Some(ANSWER_TIMEOUT))?;
        let (id, hash) = (self.approval.id.clone(), Some(self.approval.hash.clone()));
        Ok(match choice {
            Choice::No => {
                client.call::<Deny>(&DenyParams { id })?;
                Vec::new()
            }
            Choice::Once | Choice::Always => {
                let always = matches!(choice, Choice::Always);
                let done = client.call::<Approve>(&ApproveParams { id, always, hash })?;
                let warnings = done.warnings.iter().map(|warning| format!("warning: {warning}"));
                describe_consequences(&done).into_iter().chain(warnings).collect()
            }
        })
    }

    /// Reads the next line; `None` if the question was withdrawn. End of input counts as an empty line.
    fn read_line(&self) -> Option<String> {
        let stdin = io::stdin();
        let mut typed = Vec::new();
        loop {
            let mut waits = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&self.cancel_reader, PollFlags::IN)];
            match poll(&mut waits, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
                Ok(_) => {}
            }
            if !waits[1].revents().is_empty() {
                return None;
            }
            let mut piece = [0; 1024];
            // Read the terminal unbuffered, a line at a time, so that later input is not consumed.
            match rustix::io::read(&stdin, &mut piece) {
                Err(rustix::io::Errno::INTR) => {}
                Err(_) | Ok(0) => {
                    self.stderr.line("");
                    return Some(String::from_utf8_lossy(&typed).into_owned());
                }
                Ok(length) => {
                    typed.extend_from_slice(&piece[..length]);
                    if typed.ends_with(b"\n") {
                        return Some(String::from_utf8_lossy(&typed).into_owned());
                    }
                }
            }
        }
    }
}
