//! Standard error: messages that are not results.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use super::command_text::CommandText;
use super::style::{Style, Styler};
use super::terminal::{self, ColorWhen};
use super::{sanitize, text};

/// Writes to standard error. Errors of the write are ignored.
#[derive(Debug, Clone, Copy)]
pub struct Stderr {
    color: ColorWhen,
    json: bool,
    commands: Option<&'static CommandText>,
}

impl Stderr {
    /// Creates it with this colour setting.
    #[must_use]
    pub fn new(color: ColorWhen) -> Self {
        Self { color, json: false, commands: None }
    }

    /// Names the commands in texts as `commands` says.
    #[must_use]
    pub fn with_commands(self, commands: &'static CommandText) -> Self {
        Self { commands: Some(commands), ..self }
    }

    /// Names the commands in a text as they are typed where it is read.
    #[must_use]
    pub fn name_commands(self, text: &str) -> String {
        self.commands.map_or_else(|| text.to_owned(), |commands| commands.apply(text))
    }

    /// Reports errors as JSON if `json` is true. Warnings and hints stay text.
    #[must_use]
    pub fn with_json(self, json: bool) -> Self {
        Self { json, ..self }
    }

    /// Returns true if errors are reported as JSON.
    #[must_use]
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints one line of JSON.
    pub fn json_line(self, value: &impl Serialize) {
        if let Ok(json) = serde_json::to_string(value) {
            let mut stderr = io::stderr().lock();
            let json = if stderr.is_terminal() { sanitize::escape_json(&json) } else { json.into() };
            let _ = writeln!(stderr, "{json}");
        }
    }

    /// Prints a plain line.
    pub fn line(self, text: &str) {
        let mut stderr = io::stderr().lock();
        let text = self.prepare(text, &stderr);
        let _ = writeln!(stderr, "{text}");
    }

    /// Prints a line of somebody else, such as a command that needs approval or the output of a tool: control characters
    /// are made visible, and nothing else is changed.
    pub fn quoted_line(self, style: Style, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Styler { enabled: self.color.is_enabled(stderr.is_terminal()) };
        let _ = writeln!(stderr, "{}", paint.style(style, &sanitize::multi_line(text)));
    }

    /// Prints a line in `style`.
    pub fn styled_line(self, style: Style, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Styler { enabled: self.color.is_enabled(stderr.is_terminal()) };
        let text = self.prepare(text, &stderr);
        let _ = writeln!(stderr, "{}", paint.style(style, &text));
    }

    /// Prints a part of a line in `style` and flushes it.
    pub fn styled_part(self, style: Style, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Styler { enabled: self.color.is_enabled(stderr.is_terminal()) };
        let _ = write!(stderr, "{}", paint.style(style, &sanitize::multi_line(text))).and_then(|()| stderr.flush());
    }

    /// Prints `error: what`.
    pub fn error(self, what: &str) {
        self.labelled_line(Style::Bad, "error:", what);
    }

    /// Prints `warning: what`.
    pub fn warning(self, what: &str) {
        self.labelled_line(Style::Strong, "warning:", what);
    }

    /// Prints `hint: what`.
    pub fn hint(self, what: &str) {
        self.labelled_line(Style::Good, "hint:", what);
    }

    fn labelled_line(self, style: Style, label: &str, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Styler { enabled: self.color.is_enabled(stderr.is_terminal()) };
        let text = self.prepare(&format!("{label} {}", text.trim_end()), &stderr);
        let text = text.strip_prefix(label).unwrap_or(&text);
        let _ = writeln!(stderr, "{}{text}", paint.style(style, label));
    }

    /// Sanitizes text, names commands as they are typed here, and on a terminal wraps it at words.
    fn prepare(self, text: &str, stderr: &io::StderrLock<'_>) -> String {
        let text = self.name_commands(text);
        let text = sanitize::multi_line(&text);
        if !stderr.is_terminal() {
            return text.into_owned();
        }
        let columns = terminal::columns(stderr);
        let Some((first, below)) = text.split_once('\n').filter(|(_, below)| below.starts_with("  ")) else {
            return text::wrap_sentence(&text, columns);
        };
        // An indented line below is an entry of a list, such as a candidate: it is cut.
        let entries = below.lines().map(|line| format!("\n{}", text::truncate(line, columns)));
        text::wrap_sentence(first, columns) + &entries.collect::<String>()
    }
}
