//! The parts of a message that get vectors of their own. Models look at the begin of a text only, and a vector of much text says
//! little.

/// Characters of a passage, about: 250 tokens of English.
const PASSAGE_CHARS: usize = 1000;

/// Passages of a message; what is behind them is found by its words.
const MAX_PASSAGES: usize = 8;

/// Splits what somebody says at paragraphs, lines, sentences or at least words, each part with the name of the speaker: questions
/// name who has said something. An empty text has no passages.
#[must_use]
pub fn passages_of(speaker: &str, text: &str) -> Vec<String> {
    let mut passages = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() && passages.len() < MAX_PASSAGES {
        let (passage, behind) = rest.split_at(passage_end(rest));
        let passage = passage.trim_end();
        passages.push(if speaker.is_empty() { passage.to_owned() } else { format!("{speaker}: {passage}") });
        rest = behind.trim_start();
    }
    passages
}

/// Returns where the first passage ends.
fn passage_end(text: &str) -> usize {
    let Some((limit, _)) = text.char_indices().nth(PASSAGE_CHARS) else { return text.len() };
    let begin = &text[..limit];
    // The last good place in its second half.
    let half = text.char_indices().nth(PASSAGE_CHARS / 2).map_or(0, |(at, _)| at);
    let ends = ["\n\n", "\n", ". ", "。", " "];
    let found = ends.iter().find_map(|end| begin[half..].rfind(end).map(|at| half + at + end.len()));
    found.unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_split_where_it_hurts_least() {
        assert_eq!(passages_of("", " short \n"), ["short"]);
        assert_eq!(passages_of("Ann", "I do."), ["Ann: I do."]);
        assert!(passages_of("Ann", " \n ").is_empty());
        let paragraph = "A sentence of some words. ".repeat(30);
        let text = format!("{paragraph}\n\n{paragraph}\n\n{paragraph}");
        assert_eq!(passages_of("", &text), [paragraph.trim_end(); 3]);
        let words = "word ".repeat(300);
        let parts = passages_of("", &words);
        assert!(parts.len() == 2 && parts.iter().all(|part| part.ends_with("word")));
        let unbroken = "é".repeat(20_000);
        assert_eq!(passages_of("", &unbroken).len(), MAX_PASSAGES);
        assert_eq!(passages_of("", &unbroken)[0].chars().count(), PASSAGE_CHARS);
    }
}
