//! Standard error: what is not a result.

use std::io::{self, IsTerminal as _, Write as _};

use super::sanitize;
use super::style::{Style, Styler};
use super::terminal::ColorWhen;

/// Writes to standard error. Nothing can be done where that fails, so nothing is.
#[derive(Debug, Clone, Copy)]
pub struct Stderr {
    color: ColorWhen,
}

impl Stderr {
    /// Notes coloured as `color` says.
    #[must_use]
    pub fn new(color: ColorWhen) -> Self {
        Self { color }
    }

    /// A line as it is.
    pub fn line(self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", sanitize::multi_line(text));
    }

    /// A line in `style`.
    pub fn styled_line(self, style: Style, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Styler { enabled: self.color.is_enabled(stderr.is_terminal()) };
        let _ = writeln!(stderr, "{}", paint.style(style, &sanitize::multi_line(text)));
    }

    /// A part of a line, in `style`.
    pub fn styled_part(self, style: Style, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Styler { enabled: self.color.is_enabled(stderr.is_terminal()) };
        let _ = write!(stderr, "{}", paint.style(style, &sanitize::multi_line(text))).and_then(|()| stderr.flush());
    }

    /// `error: what`.
    pub fn error(self, what: &str) {
        self.labelled_line(Style::Bad, "error:", what);
    }

    /// `warning: what`.
    pub fn warning(self, what: &str) {
        self.labelled_line(Style::Strong, "warning:", what);
    }

    /// `hint: what to do`.
    pub fn hint(self, what: &str) {
        self.labelled_line(Style::Good, "hint:", what);
    }

    fn labelled_line(self, style: Style, label: &str, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Styler { enabled: self.color.is_enabled(stderr.is_terminal()) };
        let text = sanitize::multi_line(text.trim_end());
        let _ = writeln!(stderr, "{} {text}", paint.style(style, label));
    }
}
