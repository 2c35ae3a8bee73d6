//! Finds statements of two branches that may contradict each other, by rules: the same words except for a negation, the
//! same subject with another value, or nearly the same words. People settle what is found, so one contradiction too
//! many does less harm than one too few.

use std::collections::BTreeSet;

use chorus_proto::{Item, ItemSource};
use sha2::{Digest as _, Sha256};

use crate::summary::items::is_same_text;
use crate::summary::text_limit::truncate_chars;

/// Largest number of contradictions that are listed.
const MAX_CONTRADICTIONS: usize = 20;

/// Number of the newest statements of each branch that are compared.
const MAX_COMPARED: usize = 200;

/// Length of the longest statement that is quoted, in characters.
const MAX_QUOTED_CHARS: usize = 200;

/// Words that do not show what a statement is about.
const FILLER_WORDS: [&str; 40] = [
    "a", "an", "the", "we", "i", "you", "it", "this", "that", "to", "of", "for", "in", "on", "at", "by", "and", "or",
    "our", "is", "are", "was", "be", "will", "shall", "should", "must", "have", "has", "had", "now", "then", "so",
    "decided", "agreed", "chose", "decision", "with", "from", "i'll",
];

const NEGATIONS: [&str; 10] =
    ["not", "no", "never", "without", "don't", "doesn't", "won't", "isn't", "aren't", "can't"];

/// Words between the subject of a statement and its value.
const COPULAS: [&str; 8] = ["is", "are", "=", ":", "was", "will", "must", "should"];

/// Verbs that choose one thing.
const CHOICE_VERBS: [&str; 6] = ["use", "go", "keep", "choose", "pick", "stick"];

/// Finds contradictions between the statements of `a` and `b`, each given with its name, in the order of those of `a`.
pub(super) fn find_contradictions(a: (&str, &[&Item]), b: (&str, &[&Item])) -> Vec<Item> {
    let only = |mine: &[&Item], others: &[&Item]| {
        let alone = mine.iter().filter(|item| !others.iter().any(|other| is_same_text(&item.text, &other.text)));
        let statements: Vec<Statement> = alone.map(|item| Statement::parse(&item.text)).collect();
        let old = statements.len().saturating_sub(MAX_COMPARED);
        statements.into_iter().skip(old).collect::<Vec<_>>()
    };
    let (of_a, of_b) = (only(a.1, b.1), only(b.1, a.1));
    let pairs = of_a.iter().flat_map(|one| of_b.iter().map(move |other| (one, other)));
    pairs
        .filter(|(one, other)| one.contradicts(other))
        .take(MAX_CONTRADICTIONS)
        .map(|(one, other)| contradiction_item((a.0, one), (b.0, other)))
        .collect()
}

fn contradiction_item((a, one): (&str, &Statement), (b, other): (&str, &Statement)) -> Item {
    let text = format!(
        "{a}: “{}” – {b}: “{}”",
        truncate_chars(&one.text, MAX_QUOTED_CHARS),
        truncate_chars(&other.text, MAX_QUOTED_CHARS)
    );
    let hash = Sha256::digest(text.as_bytes());
    let id = hash[..6].iter().fold("c-".to_owned(), |id, byte| format!("{id}{byte:02x}"));
    Item { id, text, source: ItemSource::Rule, message_id: None }
}

/// A parsed statement.
struct Statement {
    text: String,
    /// The words before and after the first copula: the subject, and what is said of it.
    subject: BTreeSet<String>,
    value: BTreeSet<String>,
    /// All words except fillers, negations and copulas.
    words: BTreeSet<String>,
    is_negated: bool,
}

impl Statement {
    fn parse(text: &str) -> Self {
        let spaced = text.to_lowercase().replace('’', "'").replace('=', " = ").replace(": ", " : ");
        let words: Vec<&str> = spaced
            .split_whitespace()
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '=' | ':' | '/' | '-')))
            .map(|word| if word.len() > 1 { word.trim_end_matches([':', '.']) } else { word })
            .filter(|word| !word.is_empty())
            .collect();
        let telling = |words: &[&str]| {
            let telling =
                |word: &&&str| !FILLER_WORDS.contains(*word) && !NEGATIONS.contains(*word) && !COPULAS.contains(*word);
            words.iter().filter(telling).map(|word| (*word).to_owned()).collect::<BTreeSet<_>>()
        };
        let (subject, value) = match words.iter().position(|word| COPULAS.contains(word)) {
            Some(at) => (telling(&words[..at]), telling(&words[at + 1..])),
            None => Default::default(),
        };
        Self {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            subject,
            value,
            is_negated: words.iter().filter(|word| NEGATIONS.contains(word)).count() % 2 == 1,
            words: telling(&words),
        }
    }

    fn contradicts(&self, other: &Self) -> bool {
        if self.words.is_empty() || other.words.is_empty() {
            return false;
        }
        if self.words == other.words {
            return self.is_negated != other.is_negated;
        }
        let said_of_the_same = !self.subject.is_empty() && self.subject == other.subject;
        if said_of_the_same && !self.value.is_empty() && !other.value.is_empty() {
            return true;
        }
        let shared = self.words.intersection(&other.words).count();
        let (alone, others_alone) = (self.words.len() - shared, other.words.len() - shared);
        let choice = self.words.intersection(&other.words).any(|word| CHOICE_VERBS.contains(&word.as_str()));
        // Matches `use Postgres` and `use SQLite`.
        if choice && shared == 1 {
            return alone == 1 && others_alone == 1;
        }
        let near = shared >= 2 && shared * 2 >= self.words.len().max(other.words.len());
        near && ((alone > 0 && others_alone > 0 && alone.max(others_alone) <= 3) || self.is_negated != other.is_negated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contradict(one: &str, other: &str) -> bool {
        let found = Statement::parse(one).contradicts(&Statement::parse(other));
        assert_eq!(found, Statement::parse(other).contradicts(&Statement::parse(one)), "{one} – {other}");
        found
    }

    #[test]
    fn what_cannot_both_hold_is_found() {
        for (one, other) in [
            ("The port is 8080.", "The port is 9090."),
            ("port = 8080", "port: 9090"),
            ("We'll use Postgres.", "we'll use SQLite"),
            ("We decided to drop the old rows.", "We decided not to drop the old rows."),
            ("We agreed to ship the release on Monday.", "We agreed to ship the release on Friday."),
            ("The deadline is March 3.", "The deadline was moved to April."),
        ] {
            assert!(contradict(one, other), "{one} – {other}");
        }
    }

    #[test]
    fn what_speaks_of_different_things_is_not() {
        for (one, other) in [
            ("The port is 8080.", "The host is example.org."),
            ("We decided to use Postgres for the cache.", "Write the test of the import first."),
            ("We decided to drop the old rows.", "We decided to drop the old rows."),
            ("Let's go with plan B.", "The import runs at night."),
            ("", "The port is 9090."),
        ] {
            assert!(!contradict(one, other), "{one} – {other}");
        }
    }
}
