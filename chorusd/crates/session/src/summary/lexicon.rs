//! Word lists that show the role of a sentence. They are English; in other languages, only position and names count.

use super::words::Words;

/// Returns whether a word carries no meaning of its own.
pub(super) fn is_stop_word(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
        "could", "did", "do", "does", "for", "from", "get", "had", "has", "have", "he", "help", "her", "here", "hi",
        "his", "how", "i", "i'd", "i'll", "i'm", "i've", "if", "in", "into", "is", "it", "it's", "its", "just", "let",
        "let's", "like", "me", "my", "need", "no", "not", "now", "of", "on", "or", "our", "out", "please", "she", "so",
        "some", "sure", "thank", "thanks", "that", "that's", "the", "their", "them", "then", "there", "these", "they",
        "this", "to", "up", "us", "want", "was", "we", "we'll", "were", "what", "when", "which", "will", "with",
        "would", "yes", "you", "your",
    ];
    const RANGES: [(usize, usize); 26] = ranges_by_initial(WORDS);
    let Some(initial) = word.bytes().next().filter(u8::is_ascii_lowercase) else { return false };
    let (start, end) = RANGES[usize::from(initial - b'a')];
    WORDS[start..end].contains(&word)
}

/// Returns whether a word is an abbreviation, after which the sentence continues.
pub(super) fn is_abbreviation(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "approx", "bzw", "ca", "cf", "dr", "e.g", "eg", "et al", "fig", "i.e", "ie", "mr", "mrs", "ms", "no", "nr",
        "prof", "resp", "st", "u.a", "usw", "vs", "z.b",
    ];
    // "no." is far more often an answer than an abbreviation of "number".
    word != "no" && WORDS.binary_search(&word).is_ok()
}

/// Counts the words that report how something ended.
pub(super) fn count_outcome_words(words: &Words) -> usize {
    const WORDS: &[&str] = &[
        "added",
        "agreed",
        "applied",
        "booked",
        "cancelled",
        "canceled",
        "cannot",
        "can't",
        "changed",
        "charged",
        "chose",
        "complete",
        "completed",
        "confirmed",
        "correct",
        "created",
        "decided",
        "deleted",
        "denied",
        "deployed",
        "done",
        "downgraded",
        "failed",
        "finished",
        "fixed",
        "implemented",
        "merged",
        "modified",
        "passed",
        "passes",
        "processed",
        "recovered",
        "refunded",
        "removed",
        "renamed",
        "replaced",
        "resolved",
        "saved",
        "sent",
        "solved",
        "success",
        "successful",
        "successfully",
        "succeeded",
        "transferred",
        "unable",
        "unfortunately",
        "updated",
        "upgraded",
        "verified",
        "works",
    ];
    const PHRASES: &[&str] =
        &["we have the", "i got the", "we found", "i found", "i've found", "it works", "not allowed"];
    let said = WORDS.iter().filter(|cue| words.iter().any(|word| word == **cue)).count();
    said + usize::from(contains_phrase(words, PHRASES))
}

const GREETINGS: &[&str] = &[
    "hi",
    "hello",
    "hey",
    "hiya",
    "greetings",
    "good morning",
    "good afternoon",
    "good evening",
    "dear",
    "hallo",
    "bonjour",
    "hola",
    "ciao",
    "olá",
    "salut",
    "привет",
    "здравствуйте",
    "مرحبا",
    "안녕하세요",
    "你 好",
    "您 好",
    "こ ん に ち は",
];

/// Returns whether a sentence only greets.
pub(super) fn is_greeting(words: &Words) -> bool {
    words.len() <= 5 && starts_with_phrase(words, GREETINGS)
}

/// Removes a greeting before the first comma, dash or exclamation mark.
pub(super) fn strip_greeting(text: &str) -> &str {
    let Some((head, rest)) = text.split_once([',', '!', '-', '–', '—']) else { return text };
    let words = head.split_whitespace().collect();
    let rest = rest.trim_start();
    if is_greeting(&words) && !rest.is_empty() { rest } else { text }
}

/// Returns whether a sentence only closes, thanks or agrees.
pub(super) fn is_closing(words: &Words) -> bool {
    const STARTS: &[&str] = &[
        "thank",
        "thanks",
        "many thanks",
        "bye",
        "goodbye",
        "great",
        "perfect",
        "ok",
        "okay",
        "you're welcome",
        "welcome",
        "cheers",
        "talk soon",
        "safe travels",
        "have a",
        "no that's all",
        "that's all",
        "that is all",
        "i really appreciate",
        "i appreciate",
        "awesome",
        "wonderful",
        "sounds good",
        "nice",
        "cool",
        "understood",
        "got it",
        "no problem",
        "take care",
        "merci",
        "gracias",
        "danke",
        "appreciate",
        "i hope",
        "this is really helpful",
        "this is very helpful",
    ];
    const WITHIN: &[&str] = &[
        "that's all i needed",
        "that's everything",
        "that'll be all",
        "nothing else",
        "sounds great",
        "sounds good",
        "all set",
        "you too",
        "reach out if",
    ];
    (words.len() <= 14 && starts_with_phrase(words, STARTS)) || contains_phrase(words, WITHIN)
}

/// Returns whether a sentence offers more help or asks to continue. It is neither an outcome nor an open question.
pub(super) fn is_offer(words: &Words) -> bool {
    const WITHIN: &[&str] = &[
        "feel free",
        "let me know",
        "anything else",
        "further assistance",
        "further questions",
        "any other",
        "any more questions",
        "need help with",
        "happy to help",
        "happy to assist",
        "glad i could",
        "you're welcome",
        "how can i",
        "is there anything",
        "need any further",
        "have any questions",
        "reach out",
        "hold on",
        "please wait",
        "one moment",
        "i can help you with that",
        "i can assist you",
        "safe travels",
        "have a great",
        "have a good",
        "apologize",
        "i'm sorry",
        "thank you for",
    ];
    contains_phrase(words, WITHIN)
}

/// Returns whether a sentence announces what comes next.
pub(super) fn is_plan(words: &Words) -> bool {
    const STARTS: &[&str] = &[
        "let me",
        "let's",
        "let us",
        "i will",
        "i'll",
        "i am going",
        "i'm going",
        "we will",
        "we'll",
        "we should",
        "first",
        "next",
        "now let",
        "now let's",
        "now i",
        "now we",
        "try to",
        "to proceed",
        "calling",
        "i need to",
        "we need to",
        "here are",
        "here is",
        "here's",
        "would you",
        "please",
        "could you",
        "to assist",
    ];
    const WITHIN: &[&str] = &[
        "please confirm",
        "please provide",
        "please let",
        "will try",
        "let's try",
        "let me try",
        "hopefully",
        "i will submit",
        "i will now",
    ];
    starts_with_phrase(words, STARTS) || contains_phrase(words, WITHIN)
}

/// Returns whether a sentence only introduces what follows it.
pub(super) fn is_introduction(words: &Words, text: &str) -> bool {
    const WITHIN: &[&str] =
        &["the following", "here's the", "here is the", "here are the", "see below", "as follows", "description is"];
    (text.ends_with(':') && words.len() <= 12) || (words.len() <= 14 && contains_phrase(words, WITHIN))
}

/// Returns whether a message begins with words that no person speaks: wrappers, continued sessions, demonstrations.
pub(super) fn is_preamble(words: &Words) -> bool {
    const STARTS: &[&str] = &["caveat", "this session is being continued", "request interrupted", "note the user"];
    const WITHIN: &[&str] = &[
        "here is a demonstration",
        "a demonstration of how",
        "demonstration trajectory",
        "generated by the user while running local commands",
    ];
    starts_with_phrase(words, STARTS) || contains_phrase(words, WITHIN)
}

/// Returns whether a user's sentence only agrees or gives what was asked for.
pub(super) fn is_bare_answer(words: &Words) -> bool {
    const STARTS: &[&str] = &[
        "yes",
        "no",
        "sure",
        "yeah",
        "yep",
        "ok",
        "okay",
        "of course",
        "my user",
        "my name",
        "i understand",
        "i'm sorry",
        "unfortunately",
    ];
    const WITHIN: &[&str] = &[
        "user id",
        "can you help",
        "could you help",
        "i don't remember",
        "i don't have",
        "go ahead",
        "please proceed",
        "let me know",
    ];
    starts_with_phrase(words, STARTS) || contains_phrase(words, WITHIN)
}

fn starts_with_phrase(words: &Words, phrases: &[&str]) -> bool {
    has_phrase_at(words, 0, phrases)
}

fn contains_phrase(words: &Words, phrases: &[&str]) -> bool {
    (0..words.len()).any(|index| has_phrase_at(words, index, phrases))
}

/// Returns whether one of the phrases begins with the word at `index`.
fn has_phrase_at(words: &Words, index: usize, phrases: &[&str]) -> bool {
    words.get(index).is_some_and(|first| {
        phrases.iter().any(|phrase| has_same_first_byte(first, phrase) && matches_phrase(words, index, phrase))
    })
}

/// Compares the first bytes, which rules out most phrases.
fn has_same_first_byte(word: &str, phrase: &str) -> bool {
    word.as_bytes().first() == phrase.as_bytes().first()
}

fn matches_phrase(words: &Words, index: usize, phrase: &str) -> bool {
    let mut rest = phrase;
    for word in words.iter_from(index) {
        match rest.strip_prefix(word) {
            Some("") => return true,
            Some(after) if after.starts_with(' ') => rest = &after[1..],
            _ => return false,
        }
    }
    false
}

/// Returns the range of the words that begin with each letter from `a` to `z`, in a sorted list of words in lower case.
const fn ranges_by_initial(words: &[&str]) -> [(usize, usize); 26] {
    let mut ranges = [(0, 0); 26];
    let mut at = 0;
    while at < words.len() {
        let initial = (words[at].as_bytes()[0] - b'a') as usize;
        if ranges[initial].1 == 0 {
            ranges[initial].0 = at;
        }
        at += 1;
        ranges[initial].1 = at;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Words {
        super::super::sentence::Sentence::new(text).words
    }

    #[test]
    fn sentences_are_known_by_their_words() {
        assert!(is_greeting(&words("Hi there!")) && !is_greeting(&words("Hi, I want to book a flight")));
        assert_eq!(strip_greeting("Hello Claude! Fix it"), "Fix it");
        assert_eq!(strip_greeting("Fix it, please"), "Fix it, please");
        assert!(is_closing(&words("Thank you so much for your help!")));
        assert!(is_offer(&words("If you need anything else, feel free to ask!")));
        assert!(is_plan(&words("Let’s submit our changes.")));
        assert!(is_preamble(&words("Here is a demonstration of how to do it.")));
        assert_eq!(count_outcome_words(&words("It has been successfully fixed.")), 2);
    }

    #[test]
    fn sorted_lists_are_sorted() {
        for word in ["a", "i'm", "your", "that's", "we'll"] {
            assert!(is_stop_word(word), "{word}");
        }
        for word in ["approx", "e.g", "vs", "z.b"] {
            assert!(is_abbreviation(word), "{word}");
        }
    }
}
