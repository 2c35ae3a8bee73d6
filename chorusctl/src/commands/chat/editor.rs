//! Line editor of the interactive chat: editing, history, completion.

use std::path::PathBuf;

use chorus_proto::paths::InstancePaths;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};

use super::{history_path, slash};
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

/// Reads messages at a prompt that shows the agent's name.
pub(super) struct Editor {
    inner: rustyline::Editor<CommandCompleter, FileHistory>,
    prompt: String,
    continuation_prompt: String,
    history_file: Option<PathBuf>,
    stderr: Stderr,
}

impl Editor {
    /// Creates the editor. The completer asks the daemon at `places` for session names.
    pub(super) fn new(agent: &str, places: InstancePaths, notes: Stderr) -> Result<Self, Error> {
        let config =
            Config::builder().max_history_size(MAX_HISTORY_ENTRIES).and_then(|config| config.history_ignore_dups(true));
        let config = config.map_err(|error| terminal_error(&error))?.completion_type(CompletionType::List).build();
        let mut inner = rustyline::Editor::with_config(config).map_err(|error| terminal_error(&error))?;
        inner.set_helper(Some(CommandCompleter { agent: agent.to_owned(), places }));
        let prompt = format!("{}> ", sanitize::one_line(agent));
        let more = format!("{:>width$}", "… ", width = prompt.chars().count());
        let file = history_path::file_path(|name| std::env::var_os(name));
        if let Some(file) = &file {
            // The file may not exist yet. A chat works without history, so errors are ignored.
            let _ = inner.load_history(file);
        }
        Ok(Self { inner, prompt, continuation_prompt: more, history_file: file, stderr: notes })
    }

    /// Reads one message. A line that ends in `\` continues on the next line.
    pub(super) fn read_message(&mut self) -> Result<Input, Error> {
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { &self.prompt } else { &self.continuation_prompt };
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

/// Completes slash commands, and session names after `/restore`.
struct CommandCompleter {
    agent: String,
    places: InstancePaths,
}

impl Completer for CommandCompleter {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..at).unwrap_or_default();
        if let Some(begun) = typed.strip_prefix("/restore ") {
            let begun = begun.trim_start();
            let named = complete::session_names(&self.places, &self.agent);
            let named = named.into_iter().filter(|(name, _)| name.starts_with(begun));
            return Ok((at - begun.len(), named.map(|(name, about)| completion_pair(&name, &about, &name)).collect()));
        }
        let wanted = typed.starts_with('/') && !typed.contains(char::is_whitespace);
        let names = slash::COMMANDS.iter().filter(|(name, ..)| wanted && name.starts_with(typed));
        let followed = |argument: &str, name: &str| if argument.is_empty() { name.into() } else { format!("{name} ") };
        Ok((0, names.map(|(name, argument, what)| completion_pair(name, what, &followed(argument, name))).collect()))
    }
}

fn completion_pair(name: &str, about: &str, replacement: &str) -> Pair {
    let about = sanitize::one_line(about);
    let display = if about.is_empty() { name.to_owned() } else { format!("{name}  {about}") };
    Pair { display, replacement: replacement.to_owned() }
}

impl Hinter for CommandCompleter {
    type Hint = String;
}
impl Highlighter for CommandCompleter {}
impl Validator for CommandCompleter {}
impl Helper for CommandCompleter {}
