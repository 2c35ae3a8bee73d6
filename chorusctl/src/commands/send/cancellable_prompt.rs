//! The approval question at the terminal. Reads a line while the daemon may report that the approval was decided
//! elsewhere.

use std::io::{self, PipeReader, PipeWriter};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chorus_proto::approval_text::describe_action;
use chorus_proto::methods::agent;
use chorus_proto::methods::approvals::{Approval, Approve, ApproveParams, Deny, DenyParams};
use chorus_proto::{CallError, ErrorKind};
use chorus_remote::DaemonAddress;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{QueueSelector, tcflush};
use serde_json::Value;

use crate::commands::approvals::approve::describe_consequences;
use crate::commands::approvals::format;
use crate::error::Error;
use crate::ui::{Stderr, Style, job_control, sanitize, terminal, text};

/// How long to wait for the daemon to accept an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns true if a question can be asked: on a terminal, in the foreground process group.
#[must_use]
pub(super) fn is_possible() -> bool {
    terminal::can_prompt() && job_control::is_in_foreground()
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
    pub(super) fn spawn(approval: Approval, daemon: DaemonAddress, notes: Stderr) -> io::Result<Self> {
        let (woken, wake) = io::pipe()?;
        let id = approval.id.clone();
        // Discard input that was typed before the question appeared.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        let asking = PromptThread { approval, daemon, stderr: notes, cancel_reader: woken };
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
    daemon: DaemonAddress,
    stderr: Stderr,
    cancel_reader: PipeReader,
}

/// An answer to the question.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Once,
    /// Exactly this action, from now on.
    Exact,
    /// What the patterns cover, from now on.
    Pattern,
    /// What else this turn asks about.
    Turn,
    /// With a reason for the model; `None`: it was not typed yet.
    No(Option<String>),
    /// Shows the rules and parts.
    Explain,
}

impl PromptThread {
    /// Asks until there is an answer. Returns true if it was answered here.
    fn run(&self) -> bool {
        self.stderr.line(&choices_text(&self.approval, terminal::columns(io::stderr())));
        loop {
            self.stderr.styled_part(Style::Strong, "Allow? ");
            let Some(line) = self.read_line() else { return false };
            let choice = match parse_choice(&line, &self.approval) {
                Ok(Choice::Explain) => {
                    let columns = terminal::is_stderr_terminal().then(|| terminal::columns(io::stderr()));
                    let rules = format::format_rules(&self.approval, self.permissions().as_ref(), columns);
                    rules.iter().for_each(|line| self.stderr.quoted_line(Style::Plain, line));
                    continue;
                }
                Ok(Choice::No(None)) => {
                    self.stderr.styled_part(Style::Strong, "Why not? (for the model; Enter for no reason) ");
                    let Some(reason) = self.read_line() else { return false };
                    Choice::No(Some(reason))
                }
                Ok(choice) => choice,
                Err(why) => {
                    self.stderr.line(&why);
                    continue;
                }
            };
            match self.send_answer(&choice) {
                Ok(lines) => lines.iter().for_each(|line| self.stderr.quoted_line(Style::Plain, line)),
                // The approval is still open: an action that cannot be approved permanently may be approved once.
                Err(CallError::Rpc(error))
                    if error.kind() == ErrorKind::Denied
                        && matches!(choice, Choice::Exact | Choice::Pattern | Choice::Turn) =>
                {
                    Error::from(error).print(self.stderr);
                    continue;
                }
                Err(error) => Error::from(error).print(self.stderr),
            }
            return true;
        }
    }

    /// Returns the agent's setting `permissions`, if the daemon says it.
    fn permissions(&self) -> Option<Value> {
        let mut client = self.daemon.connect().ok()?;
        client.set_timeout(Some(ANSWER_TIMEOUT)).ok()?;
        let name = Some(self.approval.agent.clone());
        Some(client.call::<agent::Show>(&agent::ShowParams { name }).ok()?.agent.permissions)
    }

    /// Sends the answer over a separate connection, because the other one waits for the reply.
    fn send_answer(&self, choice: &Choice) -> Result<Vec<String>, CallError> {
        let mut client = self.daemon.connect()?;
        client.set_timeout(Some(ANSWER_TIMEOUT))?;
        let (id, hash) = (self.approval.id.clone(), Some(self.approval.hash.clone()));
        if let Choice::No(reason) = choice {
            let reason = reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty()).map(str::to_owned);
            client.call::<Deny>(&DenyParams { id, reason })?;
            return Ok(Vec::new());
        }
        let (always, pattern, turn) = (*choice == Choice::Exact, *choice == Choice::Pattern, *choice == Choice::Turn);
        let done = client.call::<Approve>(&ApproveParams { id, always, pattern, turn, hash })?;
        let warnings = done.warnings.iter().map(|warning| format!("warning: {warning}"));
        Ok(describe_consequences(&done).into_iter().chain(warnings).collect())
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

/// Lists the possible answers, in lines of at most `columns` if no answer is longer.
fn choices_text(approval: &Approval, columns: usize) -> String {
    let what = if describe_action(&approval.action).is_command { "command" } else { "action" };
    let mut choices = vec!["[y] once".to_owned()];
    if approval.not_always.is_none() {
        choices.push(format!("[a] this exact {what}"));
    }
    if !approval.patterns.is_empty() {
        choices.push(format!("[p] {}", format::format_patterns(approval)));
    }
    if approval.turn_allowed {
        choices.push("[s] all of this turn".to_owned());
    }
    choices.push("[n] no, because …".to_owned());
    choices.push("[?] why".to_owned());
    let mut lines: Vec<String> = Vec::new();
    for choice in choices {
        match lines.last_mut() {
            Some(line) if text::width(line) + 2 + text::width(&choice) <= columns => {
                line.push_str("  ");
                line.push_str(&choice);
            }
            _ => lines.push(choice),
        }
    }
    lines.join("\n")
}

/// Parses an answer. An empty line is no, without a reason.
///
/// # Errors
/// The text to print before the question is asked again.
fn parse_choice(line: &str, approval: &Approval) -> Result<Choice, String> {
    let line = line.trim();
    let word: String = line.chars().take_while(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
    let rest = line.get(word.len()..).unwrap_or_default();
    if matches!(&*word, "n" | "no") {
        let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | ';' | '.' | '-'));
        let reason = rest.strip_prefix("because ").unwrap_or(rest).trim();
        return Ok(Choice::No((!reason.is_empty()).then(|| reason.to_owned())));
    }
    match line.to_ascii_lowercase().as_str() {
        "" => Ok(Choice::No(Some(String::new()))),
        "y" | "yes" => Ok(Choice::Once),
        "?" => Ok(Choice::Explain),
        "a" | "always" => match &approval.not_always {
            None => Ok(Choice::Exact),
            Some(why) => Err(format!("cannot be approved permanently: {}", sanitize::one_line(why))),
        },
        "p" if approval.patterns.is_empty() => {
            Err("no pattern is proven to cover no other program; answer y or a".to_owned())
        }
        "p" => Ok(Choice::Pattern),
        "s" if approval.turn_allowed => Ok(Choice::Turn),
        "s" => Err("this action needs approval each time; answer y".to_owned()),
        _ => Err("enter one of the letters in brackets (default: n); a reason may follow n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::approvals::format::tests::approval;

    #[test]
    fn only_what_is_possible_is_offered_and_heard() {
        let all = Approval {
            patterns: vec!["cargo test *".into(), "git status *".into()],
            turn_allowed: true,
            ..approval("tool:bash:cargo test && git status")
        };
        let line = "[y] once  [a] this exact command  [p] cargo test *, git status *\n\
                    [s] all of this turn  [n] no, because …  [?] why";
        assert_eq!(choices_text(&all, 80), line);
        let no = |reason: &str| Choice::No(Some(reason.to_owned()));
        for (typed, wanted) in [
            ("y\n", Choice::Once),
            ("YES", Choice::Once),
            ("a", Choice::Exact),
            ("p", Choice::Pattern),
            ("s", Choice::Turn),
            ("?", Choice::Explain),
            ("", no("")),
            ("n", Choice::No(None)),
            ("No", Choice::No(None)),
            ("n too slow", no("too slow")),
            ("no, because it is too slow", no("it is too slow")),
            ("N: not now", no("not now")),
        ] {
            assert_eq!(parse_choice(typed, &all), Ok(wanted), "{typed}");
        }
        for typed in ["maybe", "yes please", "nothing", "pp", "1"] {
            assert!(parse_choice(typed, &all).is_err(), "{typed}");
        }
        let once = Approval { not_always: Some("it depends".into()), ..approval("tool:git:push origin main") };
        assert_eq!(choices_text(&once, 80), "[y] once  [n] no, because …  [?] why");
        for typed in ["a", "p", "s"] {
            assert!(parse_choice(typed, &once).is_err(), "{typed}");
        }
    }
}
