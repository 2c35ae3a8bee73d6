//! A strict reader of plain commands.
//!
//! What it reads, `bash` runs as it stands: simple commands of known words, joined by `;`, `&`, `&&`, `||`, `|`, newlines
//! and parentheses, with redirections to known files. Everything else it refuses, and what it refuses is never better
//! than `ask`: so a command is only ever allowed on the word of this file, whatever a parser makes of the rest.

use std::ops::Range;

use super::chars;
use super::variables::Assignment;

/// Why a command is not plain, to be read after "it is asked about because".
pub type Why = &'static str;

/// A simple command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// Variables that are set for it, or for the shell if it has no words.
    pub assigned: Vec<Assignment>,
    pub words: Vec<Word>,
    /// Redirections to and from files, in order.
    pub files: Vec<Redirection>,
    /// From its first word to the end of its last, in bytes; `None` where there are only redirections.
    pub span: Option<Range<usize>>,
    /// The same, redirections of files and here-strings included.
    pub extent: Range<usize>,
}

impl Simple {
    /// Lists the files that its redirections read.
    pub fn reads(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|file| file.operator.starts_with('<')).map(|file| &*file.path)
    }

    /// Lists the files that its redirections write.
    pub fn writes(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|file| file.operator.contains('>')).map(|file| &*file.path)
    }
}

/// A redirection to or from a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Redirection {
    /// `<`, `<>`, or one that only writes.
    pub operator: &'static str,
    pub path: String,
}

/// A word, its quotes removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Word {
    pub value: String,
    /// Whether there was anything to remove.
    pub quoted: bool,
}

const HIDDEN: Why = "it has control characters or invisible ones";
const UNKNOWN: Why = "it has an expansion or a substitution, whose value is known only when it runs";
const GLOB: Why = "it has a pattern of file names, whose value is known only when it runs";
const BRACES: Why = "it has braces";
const TILDE: Why = "it names a home directory with `~`";
const COMPOUND: Why = "it is a compound command";
const FUNCTION: Why = "it has parentheses that are no list of commands";
const HEREDOC: Why = "it has a here-document with expansions";
const OPEN: Why = "it is not complete";
const REDIRECTION: Why = "it has a redirection that cannot be followed";
const JOINED: Why = "it joins two lines with a backslash where there are no blanks around it";

/// Numbers of files with more digits `bash` may take for words.
const DIGITS: usize = 9;

/// Words that are no commands where a command begins.
const RESERVED: [&str; 20] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "time", "coproc", "!", "in", "[[", "]]",
];

/// Reads a whole command.
///
/// # Errors
/// Why it is not plain.
pub fn read(text: &str) -> Result<Vec<Simple>, Why> {
    if text.chars().any(chars::hidden) {
        return Err(HIDDEN);
    }
    let mut reader =
        Reader { text, at: 0, done: Vec::new(), now: Simple::default(), closed: false, awaited: Vec::new() };
    reader.run()?;
    Ok(reader.done)
}

/// A here-document whose body is still to come.
struct Awaited {
    end: String,
    tabs: bool,
    /// Its end was quoted, so nothing in the body is expanded.
    literal: bool,
}

struct Reader<'a> {
    text: &'a str,
    /// The next byte.
    at: usize,
    done: Vec<Simple>,
    now: Simple,
    /// The command that is read was a list in parentheses: only redirections may follow.
    closed: bool,
    awaited: Vec<Awaited>,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), Why> {
        let mut depth = 0_usize;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => self.at += 1,
                '\\' if self.rest().starts_with("\\\n") => self.joined()?,
                '\n' => {
                    self.at += 1;
                    self.end();
                    self.bodies()?;
                }
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                ';' | '|' | '&' if !self.rest().starts_with("&>") => self.operator()?,
                '(' => {
                    if self.now != Simple::default() || self.closed || self.rest().starts_with("((") {
                        return Err(FUNCTION);
                    }
                    self.at += 1;
                    depth += 1;
                }
                ')' => {
                    depth = depth.checked_sub(1).ok_or(FUNCTION)?;
                    self.at += 1;
                    self.end();
                    self.closed = true;
                }
                '<' | '>' | '&' => self.redirection(self.at)?,
                _ => self.word_or_number()?,
            }
        }
        self.end();
        if depth == 0 && self.awaited.is_empty() { Ok(()) } else { Err(OPEN) }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Ends the command that is read, if there is one.
    fn end(&mut self) {
        self.closed = false;
        let done = std::mem::take(&mut self.now);
        if done != Simple::default() {
            self.done.push(done);
        }
    }

    /// An end of a line that does not count. `bash` joins the lines before it looks for words and operators, so what
    /// touches it may be part of something else.
    fn joined(&mut self) -> Result<(), Why> {
        let blank = |c: &u8| matches!(c, b' ' | b'\t');
        let bytes = self.text.as_bytes();
        let before = self.at.checked_sub(1).and_then(|at| bytes.get(at));
        if !before.is_some_and(blank) || !bytes.get(self.at + 2).is_some_and(blank) {
            return Err(JOINED);
        }
        self.at += 2;
        Ok(())
    }

    fn operator(&mut self) -> Result<(), Why> {
        let known = ["&&", "||", "|&", ";;", ";&", ";", "|", "&"];
        let operator = known.into_iter().find(|known| self.rest().starts_with(known)).unwrap_or(";");
        self.at += operator.len();
        self.end();
        // Those of `case`.
        if matches!(operator, ";;" | ";&") { Err(COMPOUND) } else { Ok(()) }
    }

    fn word_or_number(&mut self) -> Result<(), Why> {
        let start = self.at;
        let word = self.word()?;
        let number = !word.quoted && word.value.bytes().all(|b| b.is_ascii_digit());
        if number && matches!(self.peek(), Some('<' | '>')) {
            return if word.value.len() > DIGITS { Err(REDIRECTION) } else { self.redirection(start) };
        }
        if self.closed {
            return Err(FUNCTION);
        }
        // Where the document begins then is not to be guessed.
        if !self.awaited.is_empty() && word.value.contains('\n') {
            return Err(OPEN);
        }
        let end = self.at;
        let span = self.now.span.get_or_insert(start..end);
        span.end = end;
        self.extend(start);
        if !self.now.words.is_empty() {
            self.now.words.push(word);
        } else if let Some(assignment) = assigned(self.text.get(start..end).unwrap_or_default(), &word.value) {
            self.now.assigned.push(assignment);
        } else if !word.quoted && RESERVED.contains(&&*word.value) {
            return Err(COMPOUND);
        } else {
            self.now.words.push(word);
        }
        Ok(())
    }

    /// Adds what stands between `start` and the next byte to the command that is read.
    fn extend(&mut self, start: usize) {
        if self.now.extent.is_empty() {
            self.now.extent.start = start;
        }
        self.now.extent.end = self.at;
    }

    /// One word; its end is where a blank or an operator begins.
    fn word(&mut self) -> Result<Word, Why> {
        let (mut value, mut quoted) = (String::new(), false);
        let mut before = None;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    let inside = self.text.get(self.at + 1..).unwrap_or_default();
                    let length = inside.find('\'').ok_or(OPEN)?;
                    value.push_str(&inside[..length]);
                    self.at += length + 2;
                    quoted = true;
                }
                '"' => {
                    self.at += 1;
                    self.double(&mut value)?;
                    quoted = true;
                }
                '\\' => {
                    self.at += 1;
                    let escaped = self.peek().ok_or(OPEN)?;
                    self.at += escaped.len_utf8();
                    if escaped == '\n' {
                        return Err(JOINED);
                    }
                    value.push(escaped);
                    quoted = true;
                }
                '$' | '`' => return Err(UNKNOWN),
                '*' | '?' | '[' if !(c == '[' && self.test()) => return Err(GLOB),
                '{' | '}' => return Err(BRACES),
                '~' if matches!(before, None | Some('=' | ':')) => return Err(TILDE),
                _ => {
                    value.push(c);
                    self.at += c.len_utf8();
                }
            }
            before = Some(c);
        }
        Ok(Word { value, quoted })
    }

    /// Whether a `[` stands for the command of that name.
    fn test(&self) -> bool {
        let first = self.now.words.is_empty() && self.now.assigned.is_empty();
        let alone = self.text[..self.at].chars().next_back().is_none_or(|c| " \t\n;&|(".contains(c));
        first && alone && self.rest()[1..].starts_with([' ', '\t'])
    }

    /// What stands in double quotes, the first of them read.
    fn double(&mut self, value: &mut String) -> Result<(), Why> {
        loop {
            let c = self.peek().ok_or(OPEN)?;
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(()),
                '$' | '`' => return Err(UNKNOWN),
                '\\' => {
                    let next = self.peek().ok_or(OPEN)?;
                    self.at += next.len_utf8();
                    match next {
                        '\n' => return Err(JOINED),
                        '$' | '`' | '"' | '\\' => value.push(next),
                        _ => value.extend(['\\', next]),
                    }
                }
                _ => value.push(c),
            }
        }
    }

    /// Reads a redirection; with the number before its operator it begins at `begin`.
    fn redirection(&mut self, begin: usize) -> Result<(), Why> {
        let known = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];
        let operator = known.into_iter().find(|known| self.rest().starts_with(known)).ok_or(REDIRECTION)?;
        self.at += operator.len();
        // The parenthesis of a process substitution follows at once.
        if self.peek() == Some('(') {
            return Err(UNKNOWN);
        }
        while let Some(' ' | '\t') = self.peek() {
            self.at += 1;
        }
        let start = self.at;
        let target = self.word()?;
        // No word, or a comment in its place.
        if start == self.at || self.text[start..].starts_with('#') {
            return Err(REDIRECTION);
        }
        if !self.awaited.is_empty() && target.value.contains('\n') {
            return Err(OPEN);
        }
        match operator {
            "<<<" => self.extend(begin),
            "<<" | "<<-" => {
                self.awaited.push(Awaited { end: target.value, tabs: operator == "<<-", literal: target.quoted });
            }
            ">&" | "<&" if copies(&target) => {}
            // Of `-a` bash takes the `-` alone, and what was quoted it expands all the same; `1-2` is a file.
            ">&" if target.quoted || target.value.starts_with('-') || numeric(&target.value) => {
                return Err(REDIRECTION);
            }
            "<&" => return Err(REDIRECTION),
            "<" if target.value.starts_with("/dev/") => return Err(REDIRECTION),
            _ => {
                self.now.files.push(Redirection { operator, path: target.value });
                self.extend(begin);
            }
        }
        Ok(())
    }

    /// The bodies of the here-documents that begin on this line.
    fn bodies(&mut self) -> Result<(), Why> {
        for awaited in std::mem::take(&mut self.awaited) {
            loop {
                if self.rest().is_empty() {
                    return Err(OPEN);
                }
                let line = self.rest().split('\n').next().unwrap_or_default();
                let bare = if awaited.tabs { line.trim_start_matches('\t') } else { line };
                let (over, length) = (bare == awaited.end, line.len());
                if !over && !awaited.literal && line.contains(['$', '`', '\\']) {
                    return Err(HEREDOC);
                }
                self.at = (self.at + length + 1).min(self.text.len());
                if over {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Whether what follows `>&` or `<&` is an open file (`1`), one that is closed behind it (`1-`), or none (`-`).
fn copies(target: &Word) -> bool {
    let digits = target.value.strip_suffix('-').unwrap_or(&target.value);
    !target.quoted && digits.len() <= DIGITS && digits.bytes().all(|b| b.is_ascii_digit())
}

fn numeric(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// The assignment that a word is: `NAME=` or `NAME+=`, none of it quoted. `value`: the word without quotes.
fn assigned(raw: &str, value: &str) -> Option<Assignment> {
    let (left, _) = raw.split_once('=')?;
    let name = left.strip_suffix('+').unwrap_or(left);
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = name.chars().all(good) && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    let value = value.strip_prefix(name).and_then(|value| value.strip_prefix('=')).map(str::to_owned);
    fits.then(|| Assignment { name: name.to_owned(), value })
}
