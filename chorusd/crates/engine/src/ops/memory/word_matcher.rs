//! Finds the words of a query in short texts: in any script, ignoring case, also within longer words.

use chorus_search::is_common_word;

/// The words of a query.
#[derive(Debug, Clone)]
pub(super) struct WordMatcher {
    /// In lower case.
    words: Vec<String>,
    /// The words without those that say nothing in a question.
    telling: Vec<String>,
}

/// How well a text matches. The greatest is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MatchScore {
    /// True if the text contains all words of the query.
    pub(super) all: bool,
    /// Number of telling words in the text.
    found: usize,
    /// Number of words that are not part of longer ones.
    whole: usize,
}

impl WordMatcher {
    pub(super) fn new(query: &str) -> Self {
        let word = |part: &str| {
            let trimmed = part.trim_matches(|c: char| !c.is_alphanumeric());
            if trimmed.is_empty() { part } else { trimmed }.to_lowercase()
        };
        let words: Vec<String> = query.split_whitespace().map(word).collect();
        let mut telling: Vec<String> = words.iter().filter(|word| !is_common_word(word)).cloned().collect();
        if telling.is_empty() {
            telling.clone_from(&words);
        }
        Self { words, telling }
    }

    /// Scores a text.
    pub(super) fn score(&self, text: &str) -> MatchScore {
        let text = text.to_lowercase();
        let is_whole = |word: &&String| text.split(|c: char| !c.is_alphanumeric()).any(|part| part == **word);
        MatchScore {
            all: !self.words.is_empty() && self.words.iter().all(|word| text.contains(word.as_str())),
            found: self.telling.iter().filter(|word| text.contains(word.as_str())).count(),
            whole: self.words.iter().filter(is_whole).count(),
        }
    }

    /// Returns true if a text with this score is shown: with all words or, if `partial`, with half of the telling ones.
    pub(super) fn accepts(&self, score: MatchScore, partial: bool) -> bool {
        score.all || partial && score.found > 0 && 2 * score.found >= self.telling.len()
    }

    /// Returns true if a text contains a telling word.
    pub(super) fn finds_any(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.telling.iter().any(|word| text.contains(word.as_str()))
    }

    /// Returns the start and end of each telling word in a text, in characters, in order.
    pub(super) fn marks(&self, text: &str) -> Vec<(usize, usize)> {
        // One character may become several in lower case.
        let lower: Vec<(char, usize)> =
            text.chars().enumerate().flat_map(|(at, c)| c.to_lowercase().map(move |c| (c, at))).collect();
        let words: Vec<Vec<char>> = self.telling.iter().map(|word| word.chars().collect()).collect();
        let (mut marks, mut at) = (Vec::new(), 0);
        while at < lower.len() {
            let is_here = |word: &&Vec<char>| {
                lower[at..].len() >= word.len() && lower[at..].iter().zip(*word).all(|((c, _), wanted)| c == wanted)
            };
            match words.iter().filter(is_here).map(Vec::len).max().filter(|length| *length > 0) {
                Some(length) => {
                    marks.push((lower[at].1, lower[at + length - 1].1 + 1));
                    at += length;
                }
                None => at += 1,
            }
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;

    /// Returns the texts that a query finds, best first.
    fn find<'a>(query: &str, partial: bool, texts: &[&'a str]) -> Vec<&'a str> {
        let matcher = WordMatcher::new(query);
        let mut found: Vec<_> = texts.iter().map(|text| (matcher.score(text), *text)).collect();
        found.retain(|(score, _)| matcher.accepts(*score, partial));
        found.sort_by_key(|(score, _)| Reverse(*score));
        found.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn words_are_found_in_any_script_and_case_and_whole_ones_come_first() {
        let texts = ["Gateposts are oak", "The GATE sticks", "北の門は固い", "Ärger docs/gate.md"];
        let find = |query| find(query, false, &texts);
        assert_eq!(find("gate"), ["The GATE sticks", "Ärger docs/gate.md", "Gateposts are oak"]);
        assert_eq!(find("STICKS the"), ["The GATE sticks"]);
        assert_eq!(find("門"), ["北の門は固い"]);
        assert_eq!(find("äRGER?"), ["Ärger docs/gate.md"]);
        assert_eq!(find("gate oak steel"), Vec::<&str>::new());
        assert_eq!(find("  "), Vec::<&str>::new());
    }

    #[test]
    fn a_question_finds_what_has_half_of_its_telling_words() {
        let texts = ["We keep what we have", "Redis was too slow", "Redis was dropped", "Drop the ball"];
        assert_eq!(find("why did we drop redis?", false, &texts), Vec::<&str>::new());
        assert_eq!(
            find("why did we drop redis?", true, &texts),
            ["Redis was dropped", "Redis was too slow", "Drop the ball"]
        );
        assert_eq!(find("redis cluster of the north", true, &texts), Vec::<&str>::new());
        assert_eq!(find("what we", true, &texts), ["We keep what we have"], "no other words");
    }

    #[test]
    fn marks_are_in_characters() {
        let marks = |query: &str, text: &str| WordMatcher::new(query).marks(text);
        assert_eq!(marks("redis drop", "Größe: REDIS dropped redis"), [(7, 12), (13, 17), (21, 26)]);
        assert_eq!(marks("i̇x", "aİx"), [(1, 3)], "the first character has two in lower case");
        assert_eq!(marks("the redis", "the end"), [], "it says nothing");
    }
}
