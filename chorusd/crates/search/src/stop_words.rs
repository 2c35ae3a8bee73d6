//! Words of questions that say nothing about what is looked for.

/// English: articles, pronouns, prepositions, auxiliary verbs, words of questions. Sorted.
const ENGLISH: [&str; 108] = [
    "a", "about", "after", "all", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before",
    "being", "but", "by", "can", "could", "did", "do", "does", "doing", "don", "for", "from", "had", "has", "have",
    "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just",
    "many", "may", "me", "might", "much", "must", "my", "no", "not", "of", "on", "or", "our", "ours", "out", "s",
    "shall", "she", "should", "so", "some", "such", "t", "than", "that", "the", "their", "theirs", "them", "then",
    "there", "these", "they", "this", "those", "to", "too", "up", "us", "very", "was", "we", "were", "what", "when",
    "where", "whether", "which", "while", "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
    "yours", "ll", "re", "ve",
];

/// German: the same.
const GERMAN: [&str; 84] = [
    "aber", "alle", "als", "also", "am", "an", "auch", "auf", "aus", "bei", "bin", "bis", "bist", "da", "das", "dass",
    "dein", "dem", "den", "der", "des", "die", "dies", "diese", "doch", "du", "durch", "ein", "eine", "einem", "einen",
    "einer", "er", "es", "fur", "hab", "habe", "haben", "hat", "hatte", "ich", "ihr", "im", "in", "ist", "ja", "kann",
    "man", "mein", "mich", "mir", "mit", "nach", "nicht", "noch", "oder", "schon", "sein", "sich", "sie", "sind", "so",
    "um", "und", "uns", "unser", "vom", "von", "vor", "wann", "war", "waren", "warum", "was", "weil", "welche", "wenn",
    "wer", "wie", "wir", "wird", "wo", "zu", "zum",
];

/// Returns true for a word in lower case that is left out of questions in one of the languages.
#[must_use]
pub fn is_common_word(word: &str) -> bool {
    is_stop_word(word) || is_german_stop_word(word)
}

/// Returns true for a word, folded and in lower case, that is left out of questions.
pub(crate) fn is_stop_word(word: &str) -> bool {
    ENGLISH.contains(&word)
}

/// The same in German, which shares few words with English.
pub(crate) fn is_german_stop_word(word: &str) -> bool {
    GERMAN.contains(&word)
}
