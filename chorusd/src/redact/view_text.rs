//! A view of a text, as the rules ask about it.

use std::cell::RefCell;

use super::alphabet::is_alnum;
use super::patterns::PATTERNS;
use super::view::{Gap, View};

/// A text, or what has come of one.
#[derive(Debug, Clone, Copy)]
pub struct ViewText<'a> {
    pub bytes: &'a [u8],
    gaps: &'a [Gap],
    /// Nothing comes after it.
    pub is_complete: bool,
    /// It ends with the end of a line.
    at_line_end: bool,
    runs: &'a RefCell<RunCache>,
}

/// Ends of runs that were looked at. A text may have a beginning of a secret every few bytes of a run that is as long as
/// the text.
#[derive(Debug, Default)]
pub struct RunCache {
    ends: Vec<CachedRun>,
    /// The place of the one that is forgotten next.
    next: usize,
}

/// Wherever in it one begins to look, a run of these bytes goes to its end, if there are enough of them.
#[derive(Debug, Clone, Copy)]
struct CachedRun {
    of: fn(u8) -> bool,
    varies: bool,
    start: usize,
    end: usize,
}

/// Runs that are remembered: more than one place asks for.
const MAX_CACHED_RUNS: usize = 64;

/// Bytes of a run that are worth being remembered.
const MIN_CACHED_RUN_BYTES: usize = 32;

impl RunCache {
    fn find_end(&self, at: usize, of: fn(u8) -> bool, varies: bool) -> Option<usize> {
        let same = |run: &&CachedRun| {
            run.start <= at && at <= run.end && run.varies == varies && std::ptr::fn_addr_eq(run.of, of)
        };
        self.ends.iter().find(same).map(|run| run.end)
    }

    fn insert(&mut self, run: CachedRun) {
        if self.ends.len() < MAX_CACHED_RUNS {
            self.ends.push(run);
        } else {
            self.ends[self.next] = run;
            self.next = (self.next + 1) % MAX_CACHED_RUNS;
        }
    }
}

/// Bytes of a line at least if a token fills it and goes on in the next two lines.
const MIN_FULL_LINE: usize = 16;

/// Bytes at least that must look random if they are to continue a token that may have ended.
const MIN_CONTINUATION: usize = 6;

impl<'a> ViewText<'a> {
    /// Returns the bytes that `view` shows.
    pub fn from_view(view: &'a View<'_>) -> Self {
        Self {
            bytes: &view.bytes,
            gaps: &view.gaps,
            is_complete: view.is_complete,
            at_line_end: view.at_line_end,
            runs: &view.runs,
        }
    }

    /// The byte at `at`.
    pub fn get(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// The byte behind what ended at `at`, if nothing was left out between them.
    pub fn byte_after(&self, at: usize) -> Option<u8> {
        if self.gap(at).is_some() { None } else { self.get(at) }
    }

    /// The byte before `at`, if nothing was left out between them.
    pub fn byte_before(&self, at: usize) -> Option<u8> {
        if self.gap(at).is_some() { None } else { at.checked_sub(1).and_then(|before| self.get(before)) }
    }

    /// Returns the gap before `at`, if something was left out there.
    pub fn gap(&self, at: usize) -> Option<&'a Gap> {
        self.gaps.binary_search_by_key(&at, |gap| gap.at).ok().map(|found| &self.gaps[found])
    }

    /// Returns the start of the part that `at` is in, after whatever was left out.
    pub fn part_start(&self, at: usize) -> usize {
        let before = self.gaps.partition_point(|gap| gap.at <= at);
        before.checked_sub(1).map_or(0, |last| self.gaps[last].at)
    }

    /// Returns the end of the line that `at` is in, or of so many bytes of it.
    pub fn line_end(&self, at: usize, most: usize) -> usize {
        let behind = self.gaps.partition_point(|gap| gap.at <= at);
        let last = self.bytes.len().min(at.saturating_add(most));
        let near = self.gaps[behind..].iter().take_while(|gap| gap.at < last);
        near.filter(|gap| gap.line).map(|gap| gap.at).next().unwrap_or(last)
    }

    /// Whether what ends at `end` may go on.
    pub fn may_continue(&self, end: usize) -> bool {
        !self.is_complete && end >= self.bytes.len()
    }

    /// Returns true if a match that is complete at `end` may turn out to be part of something longer.
    pub fn is_undecided(&self, end: usize) -> bool {
        self.may_continue(end) && !self.at_line_end
    }

    /// Returns the end of the bytes of `of` that begin at `from`. Beyond something that was left out they go on if they
    /// look as if they did.
    pub fn run_end(&self, from: usize, of: fn(u8) -> bool) -> usize {
        self.bounded_run_end(from, of, (0, usize::MAX), true)
    }

    /// Returns the end of the bytes of `of` that begin at `from`: at most `most`. Beyond something that was left out
    /// they go on until there are `least`, and, if they vary in length, if they look as if they did.
    pub fn bounded_run_end(
        &self,
        from: usize,
        of: fn(u8) -> bool,
        (least, most): (usize, usize),
        varies: bool,
    ) -> usize {
        if most < usize::MAX {
            return self.scan_run(from, of, (least, most), varies).1;
        }
        let (start, end) = self.scan_run(from, of, (least, most), varies);
        if end - start >= MIN_CACHED_RUN_BYTES && self.runs.borrow().find_end(start, of, varies) != Some(end) {
            self.runs.borrow_mut().insert(CachedRun { of, varies, start, end });
        }
        end
    }

    /// As [`Bytes::run_of`]; and the place from which on the run does not depend on where it began.
    fn scan_run(&self, from: usize, of: fn(u8) -> bool, (least, most): (usize, usize), varies: bool) -> (usize, usize) {
        let last = self.bytes.len().min(from.saturating_add(most));
        let (mut end, mut line, mut first) = (from.min(self.bytes.len()), from, true);
        let mut start = end;
        let mut gaps = &self.gaps[self.gaps.partition_point(|gap| gap.at < from)..];
        loop {
            // What is known of the rest holds once there is enough.
            if most == usize::MAX
                && let Some(known) = self.runs.borrow().find_end(end, of, varies)
                && known - from >= least
                && (known > end || start < end)
            {
                return (start, known);
            }
            let stop = gaps.first().map_or(last, |gap| gap.at.min(last));
            let Some(part) = self.bytes.get(end..stop) else { return (start, end) };
            let Some(count) = part.iter().position(|byte| !of(*byte)) else {
                end = stop;
                let Some(gap) = gaps.first().filter(|gap| gap.at == end && end < last) else {
                    return (start, end);
                };
                let wanted = end - from < least && (!gap.line || first || end - line >= MIN_FULL_LINE);
                let fits = self.get(end).is_some_and(of) && !gap.hard;
                if !fits || !(wanted || (varies && self.looks_continued(end, of))) {
                    return (start, end);
                }
                if wanted {
                    start = end;
                }
                if gap.line {
                    (line, first) = (end, false);
                }
                gaps = &gaps[1..];
                continue;
            };
            return (start, end + count);
        }
    }

    /// Returns the end of the base64 that begins at `from`, with its padding: `=` behind it may be something else.
    pub fn base64_run_end(&self, from: usize, least: usize, varies: bool) -> usize {
        let end = self.bounded_run_end(
            from,
            |byte| is_alnum(byte) || matches!(byte, b'+' | b'/'),
            (least, usize::MAX),
            varies,
        );
        let padding = (0..2).take_while(|padding| self.byte_after(end + padding) == Some(b'=')).count();
        if self.get(end + padding).is_some_and(is_alnum) && self.gap(end + padding).is_none() {
            end
        } else {
            end + padding
        }
    }

    /// Returns true if the text at `from`, in a new line or another colour, looks like more of a token of which there
    /// is enough.
    fn looks_continued(&self, from: usize, of: fn(u8) -> bool) -> bool {
        let behind = self.gaps.partition_point(|gap| gap.at <= from);
        let stop = self.gaps.get(behind).map_or(self.bytes.len(), |gap| gap.at);
        let part = &self.bytes[from..stop];
        let count = part.iter().position(|byte| !of(*byte)).unwrap_or(part.len());
        if self.may_continue(from + count) {
            return true;
        }
        let next = part.get(count);
        if count < MIN_CONTINUATION
            || next.is_some_and(|next| is_alnum(*next) || matches!(next, b'=' | b':' | b'(' | b'/' | b'.'))
        {
            return false;
        }
        let part = &part[..count];
        if PATTERNS.iter().any(|shape| shape.includes_prefix() && part.starts_with(shape.prefix.as_bytes())) {
            return false;
        }
        let has = |is: fn(&u8) -> bool| part.iter().any(is);
        let turns = part.windows(2).filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).count();
        (has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)) || turns > 2
    }

    /// Returns true if a word may begin at `at`: not in the middle of another, unless that is the end of an escape
    /// (`\t`, `\011`, `^I`, `%3D`, `=3D`, `\u003d`), or the letter of an option (`-p`). An underscore is a boundary: names and
    /// italics have it.
    pub fn is_word_start(&self, at: usize) -> bool {
        let Some(before) = self.byte_before(at) else { return true };
        if !is_alnum(before) {
            return true;
        }
        let back = |count: usize| at.checked_sub(count).and_then(|at| self.get(at));
        let hex = |count: usize| back(count).is_some_and(|byte| byte.is_ascii_hexdigit());
        let two = hex(1) && hex(2);
        let octal = |count: usize| back(count).is_some_and(|byte| matches!(byte, b'0'..=b'7'));
        let option = before.is_ascii_alphabetic()
            && back(2) == Some(b'-')
            && !back(3).is_some_and(|byte| is_alnum(byte) || matches!(byte, b'-' | b'_'));
        option
            || (matches!(before, b't' | b'n' | b'r' | b'b' | b'f') && back(2) == Some(b'\\'))
            || (before.is_ascii_uppercase() && back(2) == Some(b'^'))
            || (octal(1) && octal(2) && octal(3) && back(4) == Some(b'\\'))
            || (two && matches!(back(3), Some(b'%' | b'=')))
            || (two && back(3) == Some(b'5') && back(4) == Some(b'2') && back(5) == Some(b'%'))
            || (two && back(3) == Some(b'x') && back(4) == Some(b'\\'))
            || (two && hex(3) && hex(4) && back(5) == Some(b'u') && back(6) == Some(b'\\'))
    }
}
