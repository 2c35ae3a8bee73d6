//! The part of a text that shows what was found.

use std::collections::HashSet;
use std::ops::Range;

use tantivy::tokenizer::{TextAnalyzer, Token};

use crate::analysis;
use crate::query::Snippet;

/// Length of a snippet in characters, if no other is asked for.
pub(crate) const LENGTH: usize = 160;

/// Characters that are shown before the first word that was found.
const BEFORE: usize = 40;

const GAP: &str = "…";

/// Makes the snippet of `text` in `length` characters with as many different words of `words` as one can have.
pub(crate) fn make(
    analyzer: &mut TextAnalyzer,
    plain: &mut TextAnalyzer,
    text: &str,
    words: &HashSet<&str>,
    length: usize,
) -> Snippet {
    let found = analysis::find_words(analyzer, plain, text, words);
    let range = best_range(text, &found, length);
    let mut snippet = Snippet::default();
    if range.start > 0 {
        snippet.text.push_str(GAP);
    }
    let mut marks = found.iter().filter(|token| range.contains(&token.offset_from)).peekable();
    let mut open: Option<(usize, usize)> = None;
    let mut is_space = true;
    let part = text.get(range.clone()).unwrap_or_default();
    for (at, c) in part.char_indices() {
        let at = range.start + at;
        if let Some((begin, end)) = open
            && at >= end
        {
            snippet.marks.push(begin..snippet.text.trim_end().len());
            open = None;
        }
        if let Some(token) = marks.next_if(|token| token.offset_from <= at) {
            match &mut open {
                // Pairs of characters overlap.
                Some((_, end)) => *end = token.offset_to,
                None => open = Some((snippet.text.len(), token.offset_to)),
            }
        }
        let c = if c.is_whitespace() || c.is_control() { ' ' } else { c };
        if c != ' ' || !is_space {
            snippet.text.push(c);
        }
        is_space = c == ' ';
    }
    snippet.text.truncate(snippet.text.trim_end().len());
    if let Some((begin, _)) = open {
        snippet.marks.push(begin..snippet.text.len());
    }
    if range.end < text.trim_end().len() {
        snippet.text.push_str(GAP);
    }
    snippet
}

/// Returns the part of the text to show: around the words that were found, else its begin.
fn best_range(text: &str, found: &[Token], length: usize) -> Range<usize> {
    let begin = densest(text, found, length).map_or(0, |first| back(text, first, BEFORE));
    // Somewhat more text before it if the end is near.
    let left = forward(text, begin, length);
    let begin = if left == text.len() { back(text, left, length).min(begin) } else { begin };
    let (mut start, mut end) = (begin, forward(text, begin, length));
    let is_word = |c: char| c.is_alphanumeric();
    let first = found.iter().map(|token| token.offset_from).find(|from| *from >= start).unwrap_or(usize::MAX);
    if start > 0
        && let Some((space, _)) = text[start..].char_indices().take(BEFORE).find(|(_, c)| !is_word(*c))
        && start + space < first
    {
        start += space;
        start += text[start..].len() - text[start..].trim_start().len();
    }
    if end < text.len()
        && let Some(space) = text[start..end].rfind(char::is_whitespace).filter(|space| *space > (end - start) / 2)
    {
        end = start + space;
    }
    start..end
}

/// Returns the place of the word from which on a snippet has most different words.
fn densest(text: &str, found: &[Token], length: usize) -> Option<usize> {
    let mut best: Option<(usize, usize)> = None;
    for (place, token) in found.iter().enumerate() {
        let end = forward(text, token.offset_from, length.saturating_sub(BEFORE));
        let within = found[place..].iter().take_while(|other| other.offset_to <= end);
        let count = within.map(|other| &*other.text).collect::<HashSet<_>>().len();
        if best.is_none_or(|(most, _)| count > most) {
            best = Some((count, token.offset_from));
        }
    }
    best.map(|(_, at)| at)
}

/// Returns the place so many characters before `at`.
fn back(text: &str, at: usize, chars: usize) -> usize {
    text[..at].char_indices().rev().take(chars).last().map_or(at, |(place, _)| place)
}

/// Returns the place so many characters behind `at`.
fn forward(text: &str, at: usize, chars: usize) -> usize {
    text[at..].char_indices().nth(chars).map_or(text.len(), |(place, _)| at + place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::IndexOptions;

    fn shown(text: &str, words: &[&str]) -> String {
        let mut analyzer = analysis::analyzer(IndexOptions::new("english", false));
        let words = words.iter().copied().collect();
        let snippet = make(&mut analyzer, &mut analysis::prefix_analyzer(), text, &words, LENGTH);
        let mut marked = snippet.text.clone();
        for mark in snippet.marks.iter().rev() {
            marked.insert(mark.end, ']');
            marked.insert(mark.start, '[');
        }
        marked
    }

    #[test]
    fn words_are_marked_on_one_line() {
        assert_eq!(shown("We  dropped\n\tRedis,\u{7} then.", &["drop", "redi"]), "We [dropped] [Redis], then.");
        assert_eq!(shown("nothing here", &["redi"]), "nothing here");
        assert_eq!(shown("東京都に行く", &["東京", "京都"]), "[東京都]に行く");
        assert_eq!(shown("end Redis", &["redi"]), "end [Redis]");
        assert_eq!(shown("", &["redi"]), "");
    }

    #[test]
    fn a_long_text_is_cut_around_the_most_words() {
        let text = format!(
            "{}redis {}why we dropped redis for good {}",
            "lorem ipsum ".repeat(40),
            "dolor sit ".repeat(40),
            "amet ".repeat(80)
        );
        let snippet = shown(&text, &["drop", "redi"]);
        assert!(snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
        assert!(snippet.contains("why we [dropped] [redis] for good"), "{snippet}");
        assert!((100..200).contains(&snippet.chars().count()), "{snippet}");
        let unbroken = shown(&"x".repeat(1000), &[]);
        assert_eq!(unbroken.chars().count(), LENGTH + 1);
    }
}
