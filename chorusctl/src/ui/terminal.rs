//! Properties of the terminal.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;

use clap::ValueEnum;

/// When to use color.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorWhen {
    /// Returns true if output is to be coloured; `terminal` says whether it goes to a terminal.
    #[must_use]
    pub fn is_enabled(self, terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                terminal && is_unset("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
            }
        }
    }
}

fn is_unset(name: &str) -> bool {
    std::env::var_os(name).is_none_or(|value| value.is_empty())
}

/// Returns the width in columns: COLUMNS, else the terminal's size, else 80; at least 20.
#[must_use]
pub fn columns(terminal: impl AsFd) -> usize {
    let told = std::env::var_os("COLUMNS").map(OsString::into_string).and_then(Result::ok);
    told.and_then(|columns| columns.parse().ok())
        .or_else(|| rustix::termios::tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col)))
        .filter(|columns| *columns > 0)
        .unwrap_or(80)
        .max(20)
}

/// Returns the height in rows: LINES, else the terminal's size, else 24.
#[must_use]
pub fn rows(terminal: impl AsFd) -> usize {
    let lines = std::env::var_os("LINES").map(OsString::into_string).and_then(Result::ok);
    lines
        .and_then(|lines| lines.parse().ok())
        .or_else(|| rustix::termios::tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_row)))
        .filter(|rows| *rows > 0)
        .unwrap_or(24)
}

/// Returns the name of the terminal on standard input, for example `pts/3`; `None` if there is none.
#[must_use]
pub fn name() -> Option<String> {
    let path = rustix::termios::ttyname(io::stdin(), Vec::new()).ok()?.into_string().ok()?;
    Some(path.strip_prefix("/dev/").map_or_else(|| path.clone(), str::to_owned))
}

/// Returns true if the terminal can show box-drawing characters: the locale is UTF-8 and TERM is not `dumb`.
#[must_use]
pub fn has_box_drawing() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(|name| !is_unset(name)).and_then(std::env::var_os);
    let utf8 = locale.and_then(|locale| locale.into_string().ok()).is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    utf8 && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns true if standard error is a terminal.
#[must_use]
pub fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns true if a chat is possible: standard input and output are terminals.
#[must_use]
pub fn can_chat() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns true if a command can have the whole screen: standard input and output are a terminal that can move its cursor.
#[must_use]
pub fn can_show_full_screen() -> bool {
    can_chat() && std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Returns true if a question can be asked: standard input and error are terminals.
#[must_use]
pub fn can_prompt() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
