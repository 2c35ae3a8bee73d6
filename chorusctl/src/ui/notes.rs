//! Standard error: what is not a result.

use std::io::{self, IsTerminal as _, Write as _};

use super::paint::{Paint, Style};
use super::safe;
use super::terminal::ColorWhen;

/// Writes to standard error. Nothing can be done where that fails, so nothing is.
#[derive(Debug, Clone, Copy)]
pub struct Notes {
    color: ColorWhen,
}

impl Notes {
    /// Notes coloured as `color` says.
    #[must_use]
    pub fn new(color: ColorWhen) -> Self {
        Self { color }
    }

    /// A line as it is.
    pub fn line(self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", safe::clean(text));
    }

    /// A line in `style`.
    pub fn styled(self, style: Style, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Paint { on: self.color.decide(stderr.is_terminal()) };
        let _ = writeln!(stderr, "{}", paint.paint(style, &safe::clean(text)));
    }

    /// A part of a line, in `style`.
    pub fn part(self, style: Style, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Paint { on: self.color.decide(stderr.is_terminal()) };
        let _ = write!(stderr, "{}", paint.paint(style, &safe::clean(text))).and_then(|()| stderr.flush());
    }

    /// `error: what`.
    pub fn error(self, what: &str) {
        self.labelled(Style::Bad, "error:", what);
    }

    /// `warning: what`.
    pub fn warning(self, what: &str) {
        self.labelled(Style::Strong, "warning:", what);
    }

    /// `hint: what to do`.
    pub fn hint(self, what: &str) {
        self.labelled(Style::Good, "hint:", what);
    }

    fn labelled(self, style: Style, label: &str, text: &str) {
        let mut stderr = io::stderr().lock();
        let paint = Paint { on: self.color.decide(stderr.is_terminal()) };
        let text = safe::clean(text.trim_end());
        let _ = writeln!(stderr, "{} {text}", paint.paint(style, label));
    }
}
