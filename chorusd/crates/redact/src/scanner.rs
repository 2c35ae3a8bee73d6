//! Finds the next secret in a text.

use std::ops::Range;

use super::key_block;
use super::matcher_input::ViewText;
use super::normalized_text::View;
use super::own_key_encodings::encoded_forms;
use super::pattern_matcher::{Match, match_pattern};
use super::patterns::PATTERNS;
use super::prefix_search::PrefixSearch;

/// The kind of the daemon's own keys.
const OWN_KEY_KIND: &str = "chorus-key";

/// Bytes of an encoded key that the automaton searches for. The rest is compared at each hit.
const ANCHOR_BYTES: usize = 12;

/// Length of a prefix from which its continuation is awaited even in the middle of a word.
const MIN_LIKELY_PREFIX: usize = 3;

/// An automaton over the prefixes of all patterns and of the daemon's own keys.
#[derive(Debug)]
pub(crate) struct Automaton {
    search: PrefixSearch,
    /// The candidates that begin with each pattern of `search`, the longest first.
    candidates: Vec<Vec<Candidate>>,
    /// Prefixes that are part of the secret, sorted.
    prefixes: Vec<Vec<u8>>,
    longest_prefix: usize,
    /// Marks the first bytes of these prefixes.
    first_bytes: [bool; 256],
    keys: Vec<String>,
    /// The encoded forms of the own keys, each with the index of its key.
    own_forms: Vec<(Vec<u8>, usize)>,
}

#[derive(Debug, Clone, Copy)]
enum Candidate {
    Pattern(usize),
    OwnKey(usize),
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScanResult {
    Nothing,
    /// A secret may begin at this offset; more text is needed to decide.
    Incomplete(usize),
    Secret(FoundSecret),
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundSecret {
    /// The range of the secret in the original text, and in its view.
    pub text_range: Range<usize>,
    pub view_range: Range<usize>,
    pub kind: &'static str,
    /// The index of the daemon's own key, if it is one.
    pub key: Option<usize>,
    /// Its last `=` was taken for a soft line break and is not part of the view.
    pub padded: bool,
}

/// A secret that was found in a view.
struct ViewMatch {
    part: Range<usize>,
    kind: &'static str,
    what: Candidate,
    own_key: Option<usize>,
}

impl Automaton {
    /// Builds the automaton for the patterns of others' secrets and for `keys`.
    pub(crate) fn new(keys: Vec<String>) -> Self {
        let own_forms: Vec<_> = keys
            .iter()
            .enumerate()
            .flat_map(|(number, key)| encoded_forms(key).into_iter().map(move |form| (form, number)))
            .collect();
        let shapes =
            PATTERNS.iter().enumerate().map(|(at, shape)| (shape.prefix.as_bytes().to_vec(), Candidate::Pattern(at)));
        let own = own_forms.iter().enumerate();
        let own = own.map(|(at, (form, _))| (form[..form.len().min(ANCHOR_BYTES)].to_vec(), Candidate::OwnKey(at)));
        let mut all: Vec<(Vec<u8>, Candidate)> = own.chain(shapes).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        let mut patterns: Vec<Vec<u8>> = all.iter().map(|(start, _)| start.clone()).collect();
        patterns.dedup();
        let candidates = patterns
            .iter()
            .map(|pattern| {
                // The prefixes of the pattern, the longest first.
                let lengths = (1..=pattern.len()).rev();
                let here = lengths.flat_map(|length| {
                    let from = all.partition_point(|(start, _)| start.as_slice() < &pattern[..length]);
                    all[from..].iter().take_while(move |(start, _)| start.as_slice() == &pattern[..length])
                });
                here.map(|(_, what)| *what).collect()
            })
            .collect();
        let search = PrefixSearch::new(patterns);
        let itself = |what: &Candidate| !matches!(what, Candidate::Pattern(at) if !PATTERNS[*at].includes_prefix());
        let mut prefixes: Vec<_> =
            all.iter().filter(|(_, what)| itself(what)).map(|(start, _)| start.clone()).collect();
        prefixes.dedup();
        let longest_prefix = prefixes.iter().map(Vec::len).max().unwrap_or(0);
        let mut first_bytes = [false; 256];
        prefixes.iter().filter_map(|start| start.first()).for_each(|byte| first_bytes[usize::from(*byte)] = true);
        Self { search, candidates, prefixes, longest_prefix, first_bytes, keys, own_forms }
    }

    /// Returns the daemon's own keys.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Returns the first secret in `view` that ends after `done`. The text before `done` is only used as context.
    pub(crate) fn next_secret(&self, view: &View<'_>, from: usize, done: usize) -> ScanResult {
        let text = ViewText::from_view(view);
        let mut at = view.view_offset(from);
        let told = done;
        let done = view.view_offset(told);
        let waits = |from: usize| ScanResult::Incomplete(view.original_offset(from).max(told));
        let mut open: Option<usize> = None;
        self.search.count(text.bytes.len().saturating_sub(at));
        while let Some((found, pattern)) = self.search.find(text.bytes, at) {
            if open.is_some_and(|open| open <= found.start) {
                break;
            }
            at = found.start + 1;
            for what in &self.candidates[pattern] {
                match self.match_candidate(&text, found.start, *what) {
                    (Match::Secret { part, kind }, key) if part.end > done => {
                        // Something that may begin before the match has to be decided first.
                        if let Some(open) = open.filter(|open| *open < part.start) {
                            return waits(open);
                        }
                        let seen = ViewMatch { part: part.start.max(done)..part.end, kind, what: *what, own_key: key };
                        let from = seen.part.start;
                        return match self.resolve_kind(&text, seen) {
                            Some(seen) => ScanResult::Secret(to_original(view, &text, seen)),
                            None => waits(from),
                        };
                    }
                    (Match::Incomplete(from), _) => {
                        open = Some(open.map_or(from, |open| open.min(from)).max(done));
                        break;
                    }
                    _ => {}
                }
            }
        }
        let tail = if text.is_complete { None } else { self.find_partial_start(&text, view.view_offset(from), done) };
        match (open, tail) {
            (Some(open), Some(tail)) => waits(open.min(tail)),
            (Some(open), None) | (None, Some(open)) => waits(open),
            (None, None) => ScanResult::Nothing,
        }
    }

    /// Replaces the kind of a secret that was recognised by the text before it, if its own prefix names a kind. Returns
    /// `None` if more text is needed.
    fn resolve_kind(&self, text: &ViewText<'_>, seen: ViewMatch) -> Option<ViewMatch> {
        if !matches!(seen.what, Candidate::Pattern(at) if !PATTERNS[at].includes_prefix()) {
            return Some(seen);
        }
        let rest = &text.bytes[seen.part.start..];
        let own = self.own_forms.iter().enumerate().filter(|(_, (form, _))| rest.starts_with(form));
        let own = own.map(|(at, _)| Candidate::OwnKey(at));
        let shapes = PATTERNS.iter().enumerate().filter(|(_, shape)| shape.includes_prefix());
        let shapes =
            shapes.filter(|(_, shape)| rest.starts_with(shape.prefix.as_bytes())).map(|(at, _)| Candidate::Pattern(at));
        for what in own.chain(shapes) {
            match self.match_candidate(text, seen.part.start, what) {
                (Match::Secret { part, kind }, key) if part.start == seen.part.start && part.end >= seen.part.end => {
                    return Some(ViewMatch { part, kind, what, own_key: key });
                }
                (Match::Incomplete(_), _) => return None,
                _ => {}
            }
        }
        Some(seen)
    }

    fn match_candidate(&self, text: &ViewText<'_>, at: usize, what: Candidate) -> (Match, Option<usize>) {
        match what {
            Candidate::Pattern(shape) => (match_pattern(text, at, &PATTERNS[shape]), None),
            Candidate::OwnKey(form) => {
                let (form, key) = &self.own_forms[form];
                (match_own_key(text, at, form), Some(*key))
            }
        }
    }

    /// Returns the offset from which the end of `text` may be the start of a secret. It may begin in text that was
    /// already emitted.
    fn find_partial_start(&self, text: &ViewText<'_>, from: usize, done: usize) -> Option<usize> {
        let end = text.bytes.len();
        let begins = (from.max(end.saturating_sub(self.longest_prefix))..end).find(|at| {
            let tail = &text.bytes[*at..];
            if !self.first_bytes[usize::from(tail[0])] {
                return false;
            }
            let near = self.prefixes.partition_point(|start| start.as_slice() < tail);
            self.prefixes.get(near).is_some_and(|start| start.starts_with(tail))
                && (tail.len() >= MIN_LIKELY_PREFIX || text.is_word_start(*at))
        });
        let block = key_block::unfinished_key_start(text);
        [begins, block].into_iter().flatten().min().map(|from| from.max(done)).filter(|from| *from < end)
    }

    /// Returns the part of a secret at the end of a truncated text: the start of one of the daemon's own keys, or of a
    /// pattern that is incomplete.
    pub(crate) fn find_truncated(&self, view: &View<'_>, done: usize) -> Option<FoundSecret> {
        const LEAST: usize = 8;
        let ScanResult::Incomplete(from) = self.next_secret(view, done, done) else { return None };
        let (text, from) = (ViewText::from_view(view), view.view_offset(from));
        let rest = text.bytes.get(from..).filter(|rest| rest.len() >= LEAST)?;
        let known = self.own_forms.iter().any(|(form, _)| form.starts_with(rest));
        let shape = PATTERNS.iter().filter(|shape| rest.starts_with(shape.prefix.as_bytes()));
        let long =
            shape.filter(|shape| rest.len() >= shape.prefix.len() + LEAST).max_by_key(|shape| shape.prefix.len());
        // Secrets that lack only their end were found before this is called.
        let (kind, what) =
            if known { (OWN_KEY_KIND, Candidate::OwnKey(0)) } else { (long?.kind, Candidate::Pattern(0)) };
        let random = known || rest.iter().any(u8::is_ascii_digit);
        let seen = ViewMatch { part: from..text.bytes.len(), kind, what, own_key: None };
        random.then(|| to_original(view, &text, seen))
    }
}

/// Matches the form `form` of one of the daemon's own keys at `at`. A blank or a backslash of it may be missing at the
/// end of a line.
fn match_own_key(text: &ViewText<'_>, at: usize, form: &[u8]) -> Match {
    let mut end = at;
    for envelope in form {
        match text.get(end) {
            None if !text.is_complete => return Match::Incomplete(at),
            Some(found) if found == *envelope => end += 1,
            _ if matches!(envelope, b' ' | b'\\') && text.gap(end).is_some() => {}
            _ => return Match::No,
        }
    }
    Match::Secret { part: at..end, kind: OWN_KEY_KIND }
}

/// Converts a secret in the view to one in the original text.
fn to_original(view: &View<'_>, text: &ViewText<'_>, seen: ViewMatch) -> FoundSecret {
    let ViewMatch { part, kind, what, own_key: key } = seen;
    let padded = text.gap(part.end).is_some_and(|gap| gap.equals)
        && matches!(what, Candidate::Pattern(at) if PATTERNS[at].may_end_with_padding())
        && part.end < text.bytes.len();
    let end = view.original_end(part.end) + usize::from(padded);
    FoundSecret { text_range: view.original_offset(part.start)..end, view_range: part, kind, key, padded }
}
