//! The line that a person types: editing, history, completion.

use std::path::PathBuf;

use chorus_proto::paths::Places;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};

use super::{history, slash};
use crate::complete;
use crate::error::Failure;
use crate::ui::{Notes, safe};

/// Messages that are remembered.
const REMEMBERED: usize = 1000;
/// A message longer than this was pasted, and is not worth a place among them.
const LONGEST: usize = 16 * 1024;

/// What came of a prompt.
#[derive(Debug)]
pub enum Typed {
    Text(String),
    /// Ctrl-C.
    Cleared,
    /// Ctrl-D, or no terminal any more.
    Ended,
}

/// A prompt with the agent's name.
pub struct Editor {
    inner: rustyline::Editor<Names, FileHistory>,
    prompt: String,
    more: String,
    file: Option<PathBuf>,
    notes: Notes,
}

impl Editor {
    /// A prompt for `agent`; sessions to complete are asked of the daemon of `places`.
    ///
    /// # Errors
    /// [`Failure`] where the terminal does not let it.
    pub fn new(agent: &str, places: Places, notes: Notes) -> Result<Self, Failure> {
        let config = Config::builder().max_history_size(REMEMBERED).and_then(|config| config.history_ignore_dups(true));
        let config = config.map_err(|error| broken(&error))?.completion_type(CompletionType::List).build();
        let mut inner = rustyline::Editor::with_config(config).map_err(|error| broken(&error))?;
        inner.set_helper(Some(Names { agent: agent.to_owned(), places }));
        let prompt = format!("{}> ", safe::one_line(agent));
        let more = format!("{:>width$}", "… ", width = prompt.chars().count());
        let file = history::file(|name| std::env::var_os(name));
        if let Some(file) = &file {
            // That there is none yet is no fault, and without it one can talk as well.
            let _ = inner.load_history(file);
        }
        Ok(Self { inner, prompt, more, file, notes })
    }

    /// Has a message typed. A line that ends in `\` goes on in the next.
    ///
    /// # Errors
    /// [`Failure`] where the terminal fails.
    pub fn next(&mut self) -> Result<Typed, Failure> {
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { &self.prompt } else { &self.more };
            match self.inner.readline(prompt.as_str()) {
                Ok(line) => text.push_str(&line),
                Err(ReadlineError::Interrupted) => return Ok(Typed::Cleared),
                Err(ReadlineError::Eof) if text.is_empty() => return Ok(Typed::Ended),
                Err(ReadlineError::Eof) => break,
                Err(ReadlineError::Signal(_)) => continue,
                Err(error) => return Err(broken(&error)),
            }
            match text.strip_suffix('\\') {
                Some(begun) => text = format!("{begun}\n"),
                None => break,
            }
        }
        self.remember(&text);
        Ok(Typed::Text(text))
    }

    fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || text.len() > LONGEST || !self.inner.add_history_entry(text).unwrap_or(false) {
            return;
        }
        let Some(file) = &self.file else { return };
        let kept = history::make_room(file).map_err(ReadlineError::from).and_then(|()| self.inner.append_history(file));
        if let Err(error) = kept {
            self.notes.warning(&format!("what is typed cannot be remembered in {}: {error}", file.display()));
            // Once is enough.
            self.file = None;
        }
    }
}

fn broken(error: &ReadlineError) -> Failure {
    Failure::failed(format!("the terminal cannot be read: {error}"))
}

/// Completes commands, and sessions where one belongs.
struct Names {
    agent: String,
    places: Places,
}

impl Completer for Names {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..at).unwrap_or_default();
        if let Some(begun) = typed.strip_prefix("/restore ") {
            let begun = begun.trim_start();
            let named = complete::sessions_of(&self.places, &self.agent);
            let named = named.into_iter().filter(|(name, _)| name.starts_with(begun));
            return Ok((at - begun.len(), named.map(|(name, about)| pair(&name, &about, &name)).collect()));
        }
        let wanted = typed.starts_with('/') && !typed.contains(char::is_whitespace);
        let names = slash::COMMANDS.iter().filter(|(name, ..)| wanted && name.starts_with(typed));
        let followed = |argument: &str, name: &str| if argument.is_empty() { name.into() } else { format!("{name} ") };
        Ok((0, names.map(|(name, argument, what)| pair(name, what, &followed(argument, name))).collect()))
    }
}

fn pair(name: &str, about: &str, replacement: &str) -> Pair {
    let about = safe::one_line(about);
    let display = if about.is_empty() { name.to_owned() } else { format!("{name}  {about}") };
    Pair { display, replacement: replacement.to_owned() }
}

impl Hinter for Names {
    type Hint = String;
}
impl Highlighter for Names {}
impl Validator for Names {}
impl Helper for Names {}
