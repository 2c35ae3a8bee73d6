//! A strict parser of plain commands.
//!
//! It accepts only commands that `bash` runs exactly as written: simple commands of literal words, joined by `;`, `&`,
//! `&&`, `||`, `|`, newlines and parentheses, with redirections to literal files. It refuses everything else, and a
//! refused command is never better than `ask`. Thus only this parser can cause a command to be allowed; the tree-sitter
//! parser can only make the verdict stricter.

use std::ops::Range;

use super::hidden_chars;
use super::variables::Assignment;

/// The reason why a command is not plain, as a text that continues "it is asked about because".
pub(super) type RefusalReason = &'static str;

/// A simple command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    /// Variables set for the command, or for the shell if there are no words.
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    /// Redirections to and from files, in order.
    pub redirections: Vec<Redirection>,
    /// Byte range from the first word to the end of the last; `None` if there are only redirections.
    pub span: Option<Range<usize>>,
    /// The same range extended by redirections to files and by here-strings.
    pub full_span: Range<usize>,
}

impl SimpleCommand {
    /// Returns the files that its redirections read.
    pub(super) fn read_files(&self) -> impl Iterator<Item = &str> {
        self.redirections.iter().filter(|file| file.operator.starts_with('<')).map(|file| &*file.path)
    }

    /// Returns the files that its redirections write.
    pub(super) fn written_files(&self) -> impl Iterator<Item = &str> {
        self.redirections.iter().filter(|file| file.operator.contains('>')).map(|file| &*file.path)
    }
}

/// A redirection to or from a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Redirection {
    /// `<`, `<>`, or an operator that only writes.
    pub operator: &'static str,
    pub path: String,
}

/// A word with its quotes removed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub value: String,
    /// True if it had quotes or escapes.
    pub quoted: bool,
}

const HIDDEN_CHARS: RefusalReason = "it contains control or invisible characters";
const EXPANSION: RefusalReason = "it contains an expansion or substitution, whose value is only known when it runs";
const GLOB: RefusalReason = "it contains a file name pattern, whose value is only known when it runs";
const BRACES: RefusalReason = "it has braces";
const TILDE: RefusalReason = "it names a home directory with `~`";
const COMPOUND: RefusalReason = "it is a compound command";
const BAD_PARENTHESES: RefusalReason = "it contains parentheses that are not a list of commands";
const HEREDOC: RefusalReason = "it contains a here-document with expansions";
const INCOMPLETE: RefusalReason = "it is not complete";
const BAD_REDIRECTION: RefusalReason = "it contains a redirection that cannot be analyzed";
const LINE_CONTINUATION: RefusalReason = "it joins two lines with a backslash without spaces around it";

/// Most digits of a file descriptor number: `bash` may take longer numbers for words.
const MAX_FD_DIGITS: usize = 9;

/// Words that are not commands at the beginning of a command.
const RESERVED_WORDS: [&str; 20] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "time", "coproc", "!", "in", "[[", "]]",
];

/// Parses a whole command.
pub(super) fn parse(text: &str) -> Result<Vec<SimpleCommand>, RefusalReason> {
    if text.chars().any(hidden_chars::is_hidden) {
        return Err(HIDDEN_CHARS);
    }
    let mut reader = Parser {
        text,
        at: 0,
        commands: Vec::new(),
        current: SimpleCommand::default(),
        after_list: false,
        pending_heredocs: Vec::new(),
    };
    reader.run()?;
    Ok(reader.commands)
}

/// A here-document whose body has not been reached yet.
struct PendingHeredoc {
    delimiter: String,
    strip_tabs: bool,
    /// True if the delimiter was quoted, so that the body is not expanded.
    literal: bool,
}

struct Parser<'a> {
    text: &'a str,
    /// Offset of the next byte.
    at: usize,
    commands: Vec<SimpleCommand>,
    current: SimpleCommand,
    /// True after a list in parentheses, which only redirections may follow.
    after_list: bool,
    pending_heredocs: Vec<PendingHeredoc>,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), RefusalReason> {
        let mut depth = 0_usize;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => self.at += 1,
                '\\' if self.remaining().starts_with("\\\n") => self.skip_line_continuation()?,
                '\n' => {
                    self.at += 1;
                    self.finish_command();
                    self.skip_heredoc_bodies()?;
                }
                '#' => self.at += self.remaining().find('\n').unwrap_or(self.remaining().len()),
                ';' | '|' | '&' if !self.remaining().starts_with("&>") => self.parse_operator()?,
                '(' => {
                    if self.current != SimpleCommand::default() || self.after_list || self.remaining().starts_with("((")
                    {
                        return Err(BAD_PARENTHESES);
                    }
                    self.at += 1;
                    depth += 1;
                }
                ')' => {
                    depth = depth.checked_sub(1).ok_or(BAD_PARENTHESES)?;
                    self.at += 1;
                    self.finish_command();
                    self.after_list = true;
                }
                '<' | '>' | '&' => self.parse_redirection(self.at)?,
                _ => self.parse_word_or_number()?,
            }
        }
        self.finish_command();
        if depth == 0 && self.pending_heredocs.is_empty() { Ok(()) } else { Err(INCOMPLETE) }
    }

    fn remaining(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.remaining().chars().next()
    }

    /// Finishes the current command, if there is one.
    fn finish_command(&mut self) {
        self.after_list = false;
        let done = std::mem::take(&mut self.current);
        if done != SimpleCommand::default() {
            self.commands.push(done);
        }
    }

    /// Skips a backslash at the end of a line. `bash` joins the lines before it splits words and operators, so the
    /// continuation must have blanks around it to be unambiguous.
    fn skip_line_continuation(&mut self) -> Result<(), RefusalReason> {
        let blank = |c: &u8| matches!(c, b' ' | b'\t');
        let bytes = self.text.as_bytes();
        let before = self.at.checked_sub(1).and_then(|at| bytes.get(at));
        if !before.is_some_and(blank) || !bytes.get(self.at + 2).is_some_and(blank) {
            return Err(LINE_CONTINUATION);
        }
        self.at += 2;
        Ok(())
    }

    fn parse_operator(&mut self) -> Result<(), RefusalReason> {
        let known = ["&&", "||", "|&", ";;", ";&", ";", "|", "&"];
        let operator = known.into_iter().find(|known| self.remaining().starts_with(known)).unwrap_or(";");
        self.at += operator.len();
        self.finish_command();
        // Operators of `case`.
        if matches!(operator, ";;" | ";&") { Err(COMPOUND) } else { Ok(()) }
    }

    fn parse_word_or_number(&mut self) -> Result<(), RefusalReason> {
        let start = self.at;
        let word = self.parse_word()?;
        let number = !word.quoted && word.value.bytes().all(|b| b.is_ascii_digit());
        if number && matches!(self.peek(), Some('<' | '>')) {
            return if word.value.len() > MAX_FD_DIGITS { Err(BAD_REDIRECTION) } else { self.parse_redirection(start) };
        }
        if self.after_list {
            return Err(BAD_PARENTHESES);
        }
        // A newline inside a quoted word makes it unclear where the pending here-document begins.
        if !self.pending_heredocs.is_empty() && word.value.contains('\n') {
            return Err(INCOMPLETE);
        }
        let end = self.at;
        let span = self.current.span.get_or_insert(start..end);
        span.end = end;
        self.extend_full_span(start);
        if !self.current.words.is_empty() {
            self.current.words.push(word);
        } else if let Some(assignment) = parse_assignment(self.text.get(start..end).unwrap_or_default(), &word.value) {
            self.current.assignments.push(assignment);
        } else if !word.quoted && RESERVED_WORDS.contains(&&*word.value) {
            return Err(COMPOUND);
        } else {
            self.current.words.push(word);
        }
        Ok(())
    }

    /// Extends `full_span` of the current command from `start` up to the next byte.
    fn extend_full_span(&mut self, start: usize) {
        if self.current.full_span.is_empty() {
            self.current.full_span.start = start;
        }
        self.current.full_span.end = self.at;
    }

    /// Parses one word, which ends before a blank or an operator.
    fn parse_word(&mut self) -> Result<Word, RefusalReason> {
        let (mut value, mut quoted) = (String::new(), false);
        let mut before = None;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    let inside = self.text.get(self.at + 1..).unwrap_or_default();
                    let length = inside.find('\'').ok_or(INCOMPLETE)?;
                    value.push_str(&inside[..length]);
                    self.at += length + 2;
                    quoted = true;
                }
                '"' => {
                    self.at += 1;
                    self.parse_double_quotes(&mut value)?;
                    quoted = true;
                }
                '\\' => {
                    self.at += 1;
                    let escaped = self.peek().ok_or(INCOMPLETE)?;
                    self.at += escaped.len_utf8();
                    if escaped == '\n' {
                        return Err(LINE_CONTINUATION);
                    }
                    value.push(escaped);
                    quoted = true;
                }
                '$' | '`' => return Err(EXPANSION),
                '*' | '?' | '[' if !(c == '[' && self.is_test_command()) => return Err(GLOB),
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

    /// Returns true if a `[` is the command of that name.
    fn is_test_command(&self) -> bool {
        let first = self.current.words.is_empty() && self.current.assignments.is_empty();
        let alone = self.text[..self.at].chars().next_back().is_none_or(|c| " \t\n;&|(".contains(c));
        first && alone && self.remaining()[1..].starts_with([' ', '\t'])
    }

    /// Parses the text in double quotes after the opening quote.
    fn parse_double_quotes(&mut self, value: &mut String) -> Result<(), RefusalReason> {
        loop {
            let c = self.peek().ok_or(INCOMPLETE)?;
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(()),
                '$' | '`' => return Err(EXPANSION),
                '\\' => {
                    let next = self.peek().ok_or(INCOMPLETE)?;
                    self.at += next.len_utf8();
                    match next {
                        '\n' => return Err(LINE_CONTINUATION),
                        '$' | '`' | '"' | '\\' => value.push(next),
                        _ => value.extend(['\\', next]),
                    }
                }
                _ => value.push(c),
            }
        }
    }

    /// Parses a redirection. `begin` is the offset of the number in front of the operator, if there is one.
    fn parse_redirection(&mut self, begin: usize) -> Result<(), RefusalReason> {
        let known = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];
        let operator = known.into_iter().find(|known| self.remaining().starts_with(known)).ok_or(BAD_REDIRECTION)?;
        self.at += operator.len();
        // A process substitution has its parenthesis directly behind the operator.
        if self.peek() == Some('(') {
            return Err(EXPANSION);
        }
        while let Some(' ' | '\t') = self.peek() {
            self.at += 1;
        }
        let start = self.at;
        let target = self.parse_word()?;
        // The word is missing, or is a comment.
        if start == self.at || self.text[start..].starts_with('#') {
            return Err(BAD_REDIRECTION);
        }
        if !self.pending_heredocs.is_empty() && target.value.contains('\n') {
            return Err(INCOMPLETE);
        }
        match operator {
            "<<<" => self.extend_full_span(begin),
            "<<" | "<<-" => {
                self.pending_heredocs.push(PendingHeredoc {
                    delimiter: target.value,
                    strip_tabs: operator == "<<-",
                    literal: target.quoted,
                });
            }
            ">&" | "<&" if is_fd_duplication(&target) => {}
            // Of `-a` bash takes the `-` alone, and it expands the target although it was quoted; `1-2` is a file.
            ">&" if target.quoted || target.value.starts_with('-') || is_fd_like(&target.value) => {
                return Err(BAD_REDIRECTION);
            }
            "<&" => return Err(BAD_REDIRECTION),
            "<" if target.value.starts_with("/dev/") => return Err(BAD_REDIRECTION),
            _ => {
                self.current.redirections.push(Redirection { operator, path: target.value });
                self.extend_full_span(begin);
            }
        }
        Ok(())
    }

    /// Skips the bodies of the here-documents that were announced on this line.
    fn skip_heredoc_bodies(&mut self) -> Result<(), RefusalReason> {
        for awaited in std::mem::take(&mut self.pending_heredocs) {
            loop {
                if self.remaining().is_empty() {
                    return Err(INCOMPLETE);
                }
                let line = self.remaining().split('\n').next().unwrap_or_default();
                let bare = if awaited.strip_tabs { line.trim_start_matches('\t') } else { line };
                let (over, length) = (bare == awaited.delimiter, line.len());
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

/// Returns true if the target of `>&` or `<&` is an open descriptor (`1`), one that is moved (`1-`), or none (`-`).
fn is_fd_duplication(target: &Word) -> bool {
    let digits = target.value.strip_suffix('-').unwrap_or(&target.value);
    !target.quoted && digits.len() <= MAX_FD_DIGITS && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_fd_like(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// Parses a word as an assignment: an unquoted `NAME=` or `NAME+=`. `value` is the word without quotes.
fn parse_assignment(raw: &str, value: &str) -> Option<Assignment> {
    let (left, _) = raw.split_once('=')?;
    let name = left.strip_suffix('+').unwrap_or(left);
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = name.chars().all(good) && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    let value = value.strip_prefix(name).and_then(|value| value.strip_prefix('=')).map(str::to_owned);
    fits.then(|| Assignment { name: name.to_owned(), value })
}
