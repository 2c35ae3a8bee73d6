//! Line editor of the interactive chat: editing, history, completion.

use std::path::PathBuf;

use chorus_remote::DaemonAddress;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};

use super::print_above::EditedLine;
use super::{history_path, mentions, slash};
use crate::complete;
use crate::error::Error;
use crate::ui::{Stderr, sanitize};

/// Maximum number of messages in the history.
const MAX_HISTORY_ENTRIES: usize = 1000;
/// Longer messages were probably pasted and are not added to the history.
const MAX_HISTORY_ENTRY_BYTES: usize = 16 * 1024;

/// Result of one prompt.
#[derive(Debug)]
pub(super) enum Input {
    Text(String),
    /// Ctrl-C: the line was cleared.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    Eof,
}

/// Reads messages at a prompt that shows the agent's name, and that of the conversation unless it is `main`.
pub(super) struct Editor {
    inner: rustyline::Editor<CommandCompleter, FileHistory>,
    prompt: String,
    continuation_prompt: String,
    history_file: Option<PathBuf>,
    stderr: Stderr,
    edited_line: EditedLine,
}

impl Editor {
    /// Creates the editor. The completer asks `daemon` for session names.
    pub(super) fn new(
        agent: &str,
        conversation: Option<&str>,
        daemon: DaemonAddress,
        notes: Stderr,
    ) -> Result<Self, Error> {
        let config =
            Config::builder().max_history_size(MAX_HISTORY_ENTRIES).and_then(|config| config.history_ignore_dups(true));
        let config = config.map_err(|error| terminal_error(&error))?.completion_type(CompletionType::List).build();
        let mut inner = rustyline::Editor::with_config(config).map_err(|error| terminal_error(&error))?;
        let conversation = conversation.map_or_else(String::new, |name| format!("/{}", sanitize::one_line(name)));
        let prompt = format!("{}{conversation}> ", sanitize::one_line(agent));
        let edited_line = EditedLine::default();
        inner.set_helper(Some(CommandCompleter { agent: agent.to_owned(), daemon, edited_line: edited_line.clone() }));
        let more = format!("{:>width$}", "… ", width = prompt.chars().count());
        let file = history_path::file_path(|name| std::env::var_os(name));
        if let Some(file) = &file {
            // The file may not exist yet. A chat works without history, so errors are ignored.
            let _ = inner.load_history(file);
        }
        Ok(Self { inner, prompt, continuation_prompt: more, history_file: file, stderr: notes, edited_line })
    }

    /// Returns the line that is being edited, above which others can print.
    pub(super) fn edited_line(&self) -> EditedLine {
        self.edited_line.clone()
    }

    /// Reads one message. A line that ends in `\` continues on the next line.
    pub(super) fn read_message(&mut self) -> Result<Input, Error> {
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { &self.prompt } else { &self.continuation_prompt };
            self.edited_line.start(prompt);
            match self.inner.readline(prompt.as_str()) {
                Ok(line) => text.push_str(&line),
                Err(ReadlineError::Interrupted) => return Ok(Input::Interrupted),
                Err(ReadlineError::Eof) if text.is_empty() => return Ok(Input::Eof),
                Err(ReadlineError::Eof) => break,
                Err(ReadlineError::Signal(_)) => continue,
                Err(error) => return Err(terminal_error(&error)),
            }
            match text.strip_suffix('\\') {
                Some(begun) => text = format!("{begun}\n"),
                None => break,
            }
        }
        self.add_to_history(&text);
        Ok(Input::Text(text))
    }

    fn add_to_history(&mut self, text: &str) {
        if text.trim().is_empty()
            || text.len() > MAX_HISTORY_ENTRY_BYTES
            || !self.inner.add_history_entry(text).unwrap_or(false)
        {
            return;
        }
        let Some(file) = &self.history_file else { return };
        let kept = history_path::create_parent_dir(file)
            .map_err(ReadlineError::from)
            .and_then(|()| self.inner.append_history(file));
        if let Err(error) = kept {
            self.stderr.warning(&format!("cannot save the input history in {}: {error}", file.display()));
            // Warn only once.
            self.history_file = None;
        }
    }
}

fn terminal_error(error: &ReadlineError) -> Error {
    Error::failed(format!("cannot read from the terminal: {error}"))
}

/// Completes slash commands, session names behind those that take one, and file names behind `@`.
struct CommandCompleter {
    agent: String,
    daemon: DaemonAddress,
    edited_line: EditedLine,
}

impl Completer for CommandCompleter {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..at).unwrap_or_default();
        if !typed.starts_with('/')
            && let Some((start, begun)) = mentions::open_name(typed)
        {
            let files = mentions::candidates(&begun).into_iter();
            return Ok((start, files.map(|(display, replacement)| Pair { display, replacement }).collect()));
        }
        if let Some(begun) = session_argument(typed) {
            let named = complete::session_names(&self.daemon, &self.agent);
            let named = named.into_iter().filter(|(name, _)| name.starts_with(begun));
            return Ok((at - begun.len(), named.map(|(name, about)| completion_pair(&name, &about, &name)).collect()));
        }
        let wanted = typed.starts_with('/') && !typed.contains(char::is_whitespace);
        let names = slash::all().filter(|command| wanted && command.name.starts_with(typed));
        let followed = |argument: &str, name: &str| if argument.is_empty() { name.into() } else { format!("{name} ") };
        let pair = |command: &slash::SlashCommand| {
            completion_pair(command.name, command.about, &followed(command.argument, command.name))
        };
        Ok((0, names.map(pair).collect()))
    }
}

/// Returns the begun name of a session, if the line is a command that takes one.
fn session_argument(typed: &str) -> Option<&str> {
    let (name, begun) = typed.split_once(' ')?;
    let takes_session = slash::all().any(|command| command.name == name && command.argument.starts_with("SESSION"));
    let begun = begun.trim_start();
    (takes_session && !begun.contains(char::is_whitespace)).then_some(begun)
}

fn completion_pair(name: &str, about: &str, replacement: &str) -> Pair {
    let about = sanitize::one_line(about);
    let display = if about.is_empty() { name.to_owned() } else { format!("{name}  {about}") };
    Pair { display, replacement: replacement.to_owned() }
}

/// Hints at nothing: the editor calls it whenever the line changes, so it records the line.
impl Hinter for CommandCompleter {
    type Hint = String;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<String> {
        self.edited_line.set(line, at);
        None
    }
}
impl Highlighter for CommandCompleter {}
impl Validator for CommandCompleter {}
impl Helper for CommandCompleter {}
