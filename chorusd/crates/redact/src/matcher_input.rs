//! Accessors of a view that the matchers use.

use std::cell::RefCell;

use super::alphabet::is_alnum;
use super::normalized_text::{Gap, View};
use super::patterns::PATTERNS;

/// The bytes of a view and the gaps between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewText<'a> {
    pub bytes: &'a [u8],
    gaps: &'a [Gap],
    /// No more text follows.
    pub is_complete: bool,
    /// The text ends with a line end.
    at_line_end: bool,
    runs: &'a RefCell<RunCache>,
}

/// Cache of the ends of runs. A text may contain the start of a secret every few bytes of a run that is as long as the
/// text.
#[derive(Debug, Default)]
pub(crate) struct RunCache {
    ends: Vec<CachedRun>,
    /// Index of the entry that is replaced next.
    next: usize,
}

/// A run of bytes that ends at `end` from any start inside it, provided that it contains enough bytes.
#[derive(Debug, Clone, Copy)]
struct CachedRun {
    of: fn(u8) -> bool,
    varies: bool,
    start: usize,
    end: usize,
}

/// Number of cached runs, since several places ask for the same one.
const MAX_CACHED_RUNS: usize = 64;

/// Length of the shortest run that is cached.
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

/// Length of a line from which a token that fills it may continue in the next two lines.
const MIN_FULL_LINE: usize = 16;

/// Number of random-looking bytes from which they may continue a token that could have ended before them.
const MIN_CONTINUATION: usize = 6;

impl<'a> ViewText<'a> {
    /// Creates the accessors of `view`.
    pub(crate) fn from_view(view: &'a View<'_>) -> Self {
        Self {
            bytes: &view.bytes,
            gaps: &view.gaps,
            is_complete: view.is_complete,
            at_line_end: view.at_line_end,
            runs: &view.runs,
        }
    }

    /// Returns the byte at `at`.
    pub(crate) fn get(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// Returns the byte at `at`, the end of a match, unless something was left out before it.
    pub(crate) fn byte_after(&self, at: usize) -> Option<u8> {
        if self.gap(at).is_some() { None } else { self.get(at) }
    }

    /// Returns the byte before `at`, unless something was left out between them.
    pub(crate) fn byte_before(&self, at: usize) -> Option<u8> {
        if self.gap(at).is_some() { None } else { at.checked_sub(1).and_then(|before| self.get(before)) }
    }

    /// Returns the gap before `at`, if something was left out there.
    pub(crate) fn gap(&self, at: usize) -> Option<&'a Gap> {
        self.gaps.binary_search_by_key(&at, |gap| gap.at).ok().map(|found| &self.gaps[found])
    }

    /// Returns the start of the part that contains `at`, after the last gap.
    pub(crate) fn part_start(&self, at: usize) -> usize {
        let before = self.gaps.partition_point(|gap| gap.at <= at);
        before.checked_sub(1).map_or(0, |last| self.gaps[last].at)
    }

    /// Returns the end of the line that contains `at`, but at most `most` bytes after `at`.
    pub(crate) fn line_end(&self, at: usize, most: usize) -> usize {
        let behind = self.gaps.partition_point(|gap| gap.at <= at);
        let last = self.bytes.len().min(at.saturating_add(most));
        let near = self.gaps[behind..].iter().take_while(|gap| gap.at < last);
        near.filter(|gap| gap.line).map(|gap| gap.at).next().unwrap_or(last)
    }

    /// Returns whether a run that ends at `end` may continue when more text arrives.
    pub(crate) fn may_continue(&self, end: usize) -> bool {
        !self.is_complete && end >= self.bytes.len()
    }

    /// Returns whether a match that is complete at `end` may turn out to be part of something longer.
    pub(crate) fn is_undecided(&self, end: usize) -> bool {
        self.may_continue(end) && !self.at_line_end
    }

    /// Returns the end of the bytes of `of` that begin at `from`. The run crosses a gap if the bytes after it look like
    /// a continuation.
    pub(crate) fn run_end(&self, from: usize, of: fn(u8) -> bool) -> usize {
        self.bounded_run_end(from, of, (0, usize::MAX), true)
    }

    /// Returns the end of the bytes of `of` that begin at `from`, at most `most` of them. The run crosses gaps until it
    /// has `least` bytes and, if `varies` is true, also when the bytes after a gap look like a continuation.
    pub(crate) fn bounded_run_end(
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

    /// Returns the result of [`ViewText::bounded_run_end`] and the offset from which the end does not depend on where
    /// the run began.
    fn scan_run(&self, from: usize, of: fn(u8) -> bool, (least, most): (usize, usize), varies: bool) -> (usize, usize) {
        let last = self.bytes.len().min(from.saturating_add(most));
        let (mut end, mut line, mut first) = (from.min(self.bytes.len()), from, true);
        let mut start = end;
        let mut gaps = &self.gaps[self.gaps.partition_point(|gap| gap.at < from)..];
        loop {
            // A cached end is valid once the run has enough bytes.
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

    /// Returns the end of the base64 that begins at `from`, with its padding: `=` after it may be something else.
    pub(crate) fn base64_run_end(&self, from: usize, least: usize, varies: bool) -> usize {
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

    /// Returns whether the text at `from`, on a new line or in another colour, looks like the continuation of a token
    /// that already has enough bytes.
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

    /// Returns whether a word may begin at `at`: not in the middle of another word, unless that is the end of an escape
    /// (`\t`, `\011`, `^I`, `%3D`, `=3D`, `\u003d`) or the letter of an option (`-p`). An underscore is a boundary,
    /// since names and italics contain it.
    pub(crate) fn is_word_start(&self, at: usize) -> bool {
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
