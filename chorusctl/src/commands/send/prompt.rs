//! The question at the terminal: a line that is read while the daemon may say that it is answered already.

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

/// Longer than this nobody waits for an answer to be taken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether a question can be put here: at a terminal, in the foreground.
#[must_use]
pub fn is_possible() -> bool {
    terminal::can_prompt() && tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// A question that somebody is reading.
#[derive(Debug)]
pub struct Prompt {
    pub id: String,
    /// Closed to take the question back.
    cancel_writer: Option<PipeWriter>,
    thread: Option<JoinHandle<bool>>,
}

impl Prompt {
    /// Puts the question. The action itself is on the screen already.
    ///
    /// # Errors
    /// Where the system does not let it.
    pub fn spawn(approval: Approval, places: InstancePaths, notes: Stderr) -> io::Result<Self> {
        let (woken, wake) = io::pipe()?;
        let id = approval.id.clone();
        // What was typed before the question was there answers nothing.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        let asking = PromptThread { approval, paths: places, stderr: notes, cancel_reader: woken };
        let thread = thread::Builder::new().name("prompt".into()).spawn(move || asking.run())?;
        Ok(Self { id, cancel_writer: Some(wake), thread: Some(thread) })
    }

    /// Takes the question back; whether it was answered here.
    pub fn withdraw(mut self) -> bool {
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
    /// True: it was answered here.
    fn run(&self) -> bool {
        let always = self.approval.not_always.is_none();
        loop {
            let words = if always { "[y] once, [a] always exactly this, [N] no" } else { "[y] once, [N] no" };
            self.stderr.styled_part(Style::Strong, &format!("approve? {words}: "));
            let Some(line) = self.read_line() else { return false };
            let choice = match &*line.trim().to_ascii_lowercase() {
                "y" | "yes" => Choice::Once,
                "a" | "always" if always => Choice::Always,
                "a" | "always" => {
                    let why = self.approval.not_always.as_deref().unwrap_or_default();
                    self.stderr.line(&format!("it cannot be approved for ever: {why}"));
                    continue;
                }
                "" | "n" | "no" => Choice::No,
                _ => {
                    self.stderr.line("y, a or n; nothing is no");
                    continue;
                }
            };
            match self.send_answer(&choice) {
                Ok(lines) => lines.iter().for_each(|line| self.stderr.line(line)),
                // It still waits: what cannot be for ever may be once.
                Err(CallError::Rpc(error)) if error.kind() == ErrorKind::Denied && matches!(choice, Choice::Always) => {
                    Error::from(error).print(self.stderr);
                    continue;
                }
                Err(error) => Error::from(error).print(self.stderr),
            }
            return true;
        }
    }

    /// By a connection of its own, because the other one waits for the reply.
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

    /// The next line that is typed; `None`: the question was taken back. The end of the input is an empty line.
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
            // As it comes from the terminal, a line at a time: nothing of what is typed later may stay behind in a buffer.
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
