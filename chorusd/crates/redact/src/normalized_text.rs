//! A text as a person reads it: without terminal sequences, and with broken lines joined.
//!
//! Programs colour parts of a token, terminals wrap it, diffs and quotations put a mark in front of each line. All
//! matchers work on this view. It maps each of its bytes to an offset in the original, and records where something was
//! left out (a gap).

use std::borrow::Cow;
use std::cell::RefCell;

use super::alphabet::is_bearer_byte;
use super::matcher_input::RunCache;

/// A position in a view before which something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    pub at: usize,
    /// A line ends here. If false, only a terminal sequence was left out.
    pub line: bool,
    /// More than one line ends here, so that no run continues after it.
    pub hard: bool,
    /// The `=` of a soft line break (quoted-printable) was left out. It may have been padding.
    pub equals: bool,
}

/// The view of a text.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub gaps: Vec<Gap>,
    /// The start of each contiguous part, in the view and in the original.
    parts: Vec<(usize, usize)>,
    /// No more text follows.
    pub is_complete: bool,
    /// The view ends with a line break that is not yet decided.
    pub at_line_end: bool,
    /// Cache of the ends of runs, since many positions ask for the same one.
    pub runs: RefCell<RunCache>,
}

/// The start of a line: its number, and the mark of a diff, a quotation or a comment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LineMark {
    number: Option<u32>,
    sign: Option<u8>,
}

/// The mark of the line in whose middle a text begins, or `None` if the text begins with a line.
pub(crate) type LineStart = Option<LineMark>;

/// Bytes that may begin something that is left out.
const SPECIAL_BYTES: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = byte != b'\t' as usize;
        byte += 1;
    }
    special[0x7f] = true;
    special[b'\\' as usize] = true;
    special[b'^' as usize] = true;
    // The first bytes of invisible characters in UTF-8.
    special[0xc2] = true;
    special[0xe2] = true;
    special[0xef] = true;
    special
};

/// Largest size of a terminal sequence.
const MAX_SEQUENCE_BYTES: usize = 256;

/// Something that may be left out.
enum Omission {
    /// A terminal sequence that ends at this offset.
    Sequence(usize),
    /// A line break that ends at this offset.
    Break(usize),
    /// Ordinary text.
    Plain,
    /// More text is needed to decide.
    Incomplete,
}

impl<'a> View<'a> {
    /// Builds the view of `raw`. `whole` means that no text follows. `line` is the mark of the line in whose middle
    /// `raw` begins.
    pub(crate) fn new(raw: &'a [u8], is_complete: bool, line: LineStart) -> Self {
        let Some(first) = raw.iter().position(|byte| SPECIAL_BYTES[usize::from(*byte)]) else {
            let kept = if is_complete { raw.len() } else { parse_tail(raw).certain_len() };
            let bytes = Cow::Borrowed(&raw[..kept]);
            let runs = RefCell::default();
            return Self { bytes, gaps: Vec::new(), parts: Vec::new(), is_complete, at_line_end: false, runs };
        };
        let mut builder = ViewBuilder {
            raw,
            is_complete,
            start: 0,
            mark: line.unwrap_or_else(|| line_mark(raw, 0)),
            bytes: Vec::with_capacity(raw.len()),
            gaps: Vec::new(),
            parts: Vec::new(),
        };
        let at_line_end = builder.build(first);
        let ViewBuilder { bytes, gaps, parts, .. } = builder;
        Self { bytes: Cow::Owned(bytes), gaps, parts, is_complete, at_line_end, runs: RefCell::default() }
    }

    /// Returns the offset in the original of the byte at `at`.
    pub(crate) fn original_offset(&self, at: usize) -> usize {
        match self.parts.partition_point(|(view, _)| *view <= at).checked_sub(1).and_then(|part| self.parts.get(part)) {
            Some((view, raw)) => raw + (at - view),
            None => at,
        }
    }

    /// Returns the end in the original of a range that ends at `end` in the view.
    pub(crate) fn original_end(&self, end: usize) -> usize {
        end.checked_sub(1).map_or(0, |last| self.original_offset(last) + 1)
    }

    /// Returns the first offset in the view whose original offset is `raw` or greater.
    pub(crate) fn view_offset(&self, raw: usize) -> usize {
        let Some(part) = self.parts.partition_point(|(_, start)| *start <= raw).checked_sub(1) else {
            return if self.parts.is_empty() { raw.min(self.bytes.len()) } else { 0 };
        };
        let end = self.parts.get(part + 1).map_or(self.bytes.len(), |(view, _)| *view);
        let (view, start) = self.parts[part];
        (view + (raw - start)).min(end)
    }
}

/// Returns the mark of the line that begins at `from` in `raw`.
pub(crate) fn line_mark(raw: &[u8], from: usize) -> LineMark {
    parse_lead(raw, from, LineMark::default()).mark
}

struct ViewBuilder<'a> {
    raw: &'a [u8],
    is_complete: bool,
    /// The start of the text that is not yet in the view.
    start: usize,
    /// The mark of the current line.
    mark: LineMark,
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
    parts: Vec<(usize, usize)>,
}

impl ViewBuilder<'_> {
    /// Builds the view. Returns whether it ends with a line break.
    fn build(&mut self, first: usize) -> bool {
        let mut at = first;
        loop {
            match classify(self.raw, at) {
                // Skips all backslashes at once: otherwise each of many would scan all those after it.
                Omission::Plain => at += self.raw[at..].iter().take_while(|byte| **byte == b'\\').count().max(1),
                Omission::Incomplete if self.is_complete => {
                    at += self.raw[at..].iter().take_while(|byte| **byte == b'\\').count().max(1);
                }
                Omission::Incomplete => {
                    self.take_rest(at);
                    return false;
                }
                Omission::Sequence(end) => {
                    self.take_until(at);
                    self.add_gap(Gap { at: 0, line: false, hard: false, equals: false });
                    self.start = end;
                    at = end;
                }
                Omission::Break(end) => match self.join_lines(at, end) {
                    Some(next) => at = next,
                    None => return true,
                },
            }
            match self.raw.get(at..).and_then(|rest| rest.iter().position(|byte| SPECIAL_BYTES[usize::from(*byte)])) {
                Some(next) => at += next,
                None => {
                    self.take_rest(self.raw.len());
                    return false;
                }
            }
        }
    }

    /// Adds the text before `end`, where more text is needed, except for what a line may end with.
    fn take_rest(&mut self, end: usize) {
        let certain = parse_tail(&self.raw[self.start..end]).certain_len();
        self.take_until(if self.is_complete { end } else { self.start + certain });
    }

    /// Adds the text before `end` to the view.
    fn take_until(&mut self, end: usize) {
        if end > self.start {
            self.parts.push((self.bytes.len(), self.start));
            self.bytes.extend_from_slice(&self.raw[self.start..end]);
        }
        self.start = end;
    }

    fn add_gap(&mut self, gap: Gap) {
        let at = self.bytes.len();
        match self.gaps.last_mut() {
            Some(last) if last.at == at => {
                last.hard |= last.line && gap.line;
                last.line |= gap.line;
                last.equals |= gap.equals;
            }
            _ => self.gaps.push(Gap { at, ..gap }),
        }
    }

    /// Leaves out the line break from `at` to `end`, together with what joins two lines: a backslash, the quotes and
    /// the operator between two strings, and the marks and numbers at the start of lines. Returns `None` if more text
    /// is needed.
    fn join_lines(&mut self, at: usize, end: usize) -> Option<usize> {
        let tail = parse_tail(&self.raw[self.start..at]);
        let mut lead = parse_lead(self.raw, end, self.mark);
        let mut kept = tail.kept;
        if let Some((quote, without)) = tail.quote {
            let rest = &self.raw[lead.end..];
            if let Some(next) = continued_string_start(self.raw, lead.end, quote) {
                lead.end = next;
                kept = without;
            } else if !self.is_complete
                && rest.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'+' | b'.' | b'&' | b'\\'))
            {
                lead.incomplete = true;
                kept = without;
            }
        }
        let soft = lead.end == end && self.raw.get(end).is_some_and(|byte| byte.is_ascii_graphic());
        let incomplete = !self.is_complete && (lead.end >= self.raw.len() || lead.incomplete);
        let equals = (soft || incomplete) && tail.equals;
        self.mark = lead.mark;
        self.take_until(self.start + kept - usize::from(equals));
        if incomplete {
            self.add_gap(Gap { at: 0, line: true, hard: false, equals: false });
            return None;
        }
        self.add_gap(Gap { at: 0, line: true, hard: false, equals });
        self.start = lead.end;
        Some(lead.end)
    }
}

/// The end of a line.
struct LineTail {
    /// Length without trailing blanks and without a backslash that continues the line.
    kept: usize,
    /// The quote that closes a string at the end, and the number of bytes before it.
    quote: Option<(u8, usize)>,
    /// The line ends with a single `=`.
    equals: bool,
}

impl LineTail {
    /// Returns how many bytes of the line stay in the view regardless of the next line.
    fn certain_len(&self) -> usize {
        self.quote.map_or(self.kept - usize::from(self.equals), |(_, without)| without)
    }
}

fn parse_tail(line: &[u8]) -> LineTail {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let trim = |end: usize| line[..end].iter().rposition(|byte| !blank(byte)).map_or(0, |last| last + 1);
    let mut kept = trim(line.len());
    if line[..kept].last() == Some(&b'\\') && !line[..kept].ends_with(b"\\\\") {
        kept = trim(kept - 1);
    }
    let operator = matches!(line[..kept].last(), Some(b'+' | b'.' | b'&'));
    let closing = if operator { trim(kept - 1) } else { kept };
    let quote = match line[..closing].last() {
        Some(quote @ (b'"' | b'\'' | b'`')) => {
            let escaped = closing >= 2 && line[closing - 2] == b'\\';
            Some((*quote, closing - 1 - usize::from(escaped)))
        }
        _ => None,
    };
    let equals = kept >= 2 && line[kept - 1] == b'=' && is_bearer_byte(line[kept - 2]) && line[kept - 2] != b'=';
    LineTail { kept, quote, equals }
}

/// Returns the start, after its quote, of the string that continues on the next line.
fn continued_string_start(raw: &[u8], from: usize, quote: u8) -> Option<usize> {
    let skip = |from: usize| from + raw[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let mut at = skip(from.min(raw.len()));
    if matches!(raw.get(at), Some(b'+' | b'.' | b'&')) {
        at = skip(at + 1);
    }
    if raw.get(at) == Some(&b'\\') {
        at += 1;
    }
    (raw.get(at) == Some(&quote)).then_some(at + 1)
}

/// The start of a line.
struct LineLead {
    /// The start of its text.
    end: usize,
    mark: LineMark,
    /// It may have a number that continues.
    incomplete: bool,
}

/// Parses the start of the line at `from`: its blanks, its number if that follows the number of the line before, and
/// its sign if the line before has the same.
fn parse_lead(raw: &[u8], from: usize, before: LineMark) -> LineLead {
    let skip = |from: usize| from + raw[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let mut at = skip(from.min(raw.len()));
    let mut mark = LineMark::default();
    let digits = raw[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if (1..=6).contains(&digits) {
        let end = at + digits;
        let bar = skip(end);
        let behind = match raw.get(bar) {
            None if before.number.is_some() => return LineLead { end: at, mark, incomplete: true },
            None => None,
            Some(b':' | b'|') => Some(skip(bar + 1)),
            Some(_) if raw[end] == b'\t' => Some(bar),
            Some(_) => None,
        };
        // Pairs of digits separated by colons are not line numbers.
        let pairs = behind.is_some_and(|behind| digits == 2 && raw.get(behind + 2) == Some(&b':'));
        if let Some(behind) = behind.filter(|_| !pairs) {
            mark.number =
                raw[at..end].iter().try_fold(0_u32, |number, digit| Some(number * 10 + u32::from(digit - b'0')));
            if before.number.is_some() && before.number < mark.number {
                at = behind;
            }
        }
    }
    let sign = raw.get(at).copied().filter(|byte| matches!(byte, b'+' | b'-' | b'>' | b'|' | b'#' | b'*'));
    mark.sign = sign.or_else(|| raw[at..].starts_with(b"// ").then_some(b'/'));
    if mark.sign.is_some() && mark.sign == before.sign {
        at = skip(at + if mark.sign == Some(b'/') { 2 } else { 1 });
    }
    LineLead { end: at, mark, incomplete: false }
}

/// Classifies the text at `at`.
fn classify(raw: &[u8], at: usize) -> Omission {
    match raw[at] {
        b'\n' => Omission::Break(at + 1),
        b'\r' => match raw.get(at + 1) {
            Some(b'\n') => Omission::Break(at + 2),
            _ => Omission::Break(at + 1),
        },
        0x1b => classify_sequence(raw, at + 1),
        b'^' if raw.get(at + 1) == Some(&b'[') => classify_escaped_sequence(raw, at + 2),
        b'^' if raw.len() == at + 1 => Omission::Incomplete,
        b'^' => Omission::Plain,
        b'\\' => classify_backslash(raw, at),
        0xc2 | 0xe2 | 0xef => classify_invisible(raw, at),
        // Overstriking: the same letter again, for bold.
        0x08 if at > 0 && raw[at - 1].is_ascii_graphic() => match raw.get(at + 1) {
            None => Omission::Incomplete,
            Some(next) if *next == raw[at - 1] => Omission::Sequence(at + 2),
            Some(_) => Omission::Sequence(at + 1),
        },
        _ => Omission::Sequence(at + 1),
    }
}

/// Classifies a character that is not ASCII. Invisible ones are left out, and so is a terminal sequence that begins
/// with a control character of its own (U+009B).
fn classify_invisible(raw: &[u8], at: usize) -> Omission {
    const INVISIBLE: [&str; 6] = ["\u{200b}", "\u{200c}", "\u{200d}", "\u{2060}", "\u{feff}", "\u{ad}"];
    let rest = &raw[at..];
    if rest.starts_with("\u{9b}".as_bytes()) {
        return match parameters_end(&raw[at + 2..raw.len().min(at + 2 + MAX_SEQUENCE_BYTES)]) {
            Some(end) => Omission::Sequence(at + 2 + end),
            None => Omission::Incomplete,
        };
    }
    match INVISIBLE.iter().find(|envelope| rest.starts_with(envelope.as_bytes())) {
        Some(envelope) => Omission::Sequence(at + envelope.len()),
        None if rest.len() < 3 && INVISIBLE.iter().any(|envelope| envelope.as_bytes().starts_with(rest)) => {
            Omission::Incomplete
        }
        None => Omission::Plain,
    }
}

/// Returns the length of the parameters of a terminal sequence and its final letter, or 0 if it is not one. Returns
/// `None` if more text is needed.
fn parameters_end(rest: &[u8]) -> Option<usize> {
    let middle = rest.iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
    match rest.get(middle) {
        None if rest.len() < MAX_SEQUENCE_BYTES - 1 => None,
        Some(0x40..=0x7e) => Some(middle + 1),
        _ => Some(0),
    }
}

/// Classifies the text after a backslash: an escaped line break or an escaped terminal sequence.
fn classify_backslash(raw: &[u8], at: usize) -> Omission {
    let slashes = raw[at..].iter().take_while(|byte| **byte == b'\\').count();
    let from = at + slashes;
    let rest = raw.get(from..).unwrap_or_default();
    match rest {
        [] => Omission::Incomplete,
        [b'n', ..] => Omission::Break(from + 1),
        [b'r', more @ ..] => {
            let next = more.iter().take_while(|byte| **byte == b'\\').count();
            match more.get(next) {
                None => Omission::Incomplete,
                Some(b'n') if next > 0 => Omission::Break(from + 1 + next + 1),
                Some(_) => Omission::Break(from + 1),
            }
        }
        _ => {
            const ESCAPES: [&[u8]; 8] = [b"x1b", b"x1B", b"u001b", b"u001B", b"u{1b}", b"033", b"e", b"E"];
            match ESCAPES.iter().find(|escape| rest.starts_with(escape)) {
                Some(escape) => classify_escaped_sequence(raw, from + escape.len()),
                None if ESCAPES.iter().any(|escape| escape.starts_with(rest)) => Omission::Incomplete,
                None => Omission::Plain,
            }
        }
    }
}

/// Classifies a terminal sequence whose escape character is written as text. Only one with a bracket counts.
fn classify_escaped_sequence(raw: &[u8], from: usize) -> Omission {
    match raw.get(from) {
        None => Omission::Incomplete,
        Some(b'[' | b']' | b'(' | b')') => classify_sequence(raw, from),
        Some(b'\\') => match raw.get(from + 1) {
            None => Omission::Incomplete,
            // The end of a hyperlink. In JSON its backslash is doubled.
            Some(b'\\') => Omission::Sequence(from + 2),
            Some(_) => Omission::Sequence(from + 1),
        },
        Some(_) => Omission::Plain,
    }
}

/// Classifies a terminal sequence after its escape character (ECMA-48). Of a hyperlink or a title only the frame is
/// left out, since its text may be a secret.
fn classify_sequence(raw: &[u8], from: usize) -> Omission {
    let rest = &raw[from.min(raw.len())..];
    let rest = &rest[..rest.len().min(MAX_SEQUENCE_BYTES)];
    let end = match rest {
        [] => return Omission::Incomplete,
        [b'[', rest @ ..] => match parameters_end(rest) {
            Some(end) => 1 + end,
            None => return Omission::Incomplete,
        },
        [b']', rest @ ..] => {
            let number = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let behind = rest.get(number + 1..).unwrap_or_default();
            // A hyperlink has parameters before its address.
            let parameters = match behind.iter().position(|byte| !byte.is_ascii_graphic() || *byte == b';') {
                None if behind.len() < MAX_SEQUENCE_BYTES / 2 => return Omission::Incomplete,
                Some(end) if rest.starts_with(b"8;") && behind[end] == b';' => end + 1,
                _ => 0,
            };
            1 + number + usize::from(rest.get(number) == Some(&b';')) + parameters
        }
        [0x20..=0x2f, rest @ ..] => {
            if rest.is_empty() {
                return Omission::Incomplete;
            }
            2
        }
        [0x30..=0x7e, ..] => 1,
        _ => 0,
    };
    Omission::Sequence(from + end)
}
