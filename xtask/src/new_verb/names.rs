//! The names of a verb.

use crate::error::{Error, Result};

/// Words of Rust that would need another file name.
const KEYWORDS: [&str; 22] = [
    "as", "async", "await", "break", "const", "continue", "dyn", "else", "enum", "fn", "for", "if", "impl", "in",
    "let", "match", "mod", "move", "return", "type", "use", "where",
];

/// `trash empty`, spelled as each place needs it.
#[derive(Debug, Clone)]
pub struct Names {
    pub noun: String,
    pub verb: String,
    /// `Trash`
    pub noun_type: String,
    /// `Empty`
    pub verb_type: String,
}

impl Names {
    pub fn new(noun: &str, verb: &str) -> Result<Self> {
        for word in [noun, verb] {
            let sound = word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
            if !sound {
                return Err(Error::new(format!("{word:?} is not a name for a verb"))
                    .hint("use one lower-case word, for example: cargo xtask new-verb trash count"));
            }
            if KEYWORDS.contains(&word) {
                return Err(Error::new(format!("`{word}` is a keyword of Rust"))
                    .hint("use another word; `agent use` shows what a keyword takes: files use_.rs, functions use_"));
            }
        }
        Ok(Self { noun: noun.into(), verb: verb.into(), noun_type: capitalized(noun), verb_type: capitalized(verb) })
    }
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_ascii_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_for_each_place() {
        let names = Names::new("trash", "empty").unwrap();
        assert_eq!((&*names.noun_type, &*names.verb_type), ("Trash", "Empty"));
        for (noun, verb) in [("Trash", "empty"), ("trash", ""), ("trash", "two-words"), ("trash", "9")] {
            assert!(Names::new(noun, verb).unwrap_err().to_string().contains("hint: use one lower-case word"));
        }
        assert!(Names::new("agent", "use").unwrap_err().to_string().contains("keyword"));
    }
}
