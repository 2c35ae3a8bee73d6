//! The list of phrases in words.txt. The tidy test includes this file.

use regex::{Regex, RegexBuilder};

/// A turn of phrase, and the plain words for it.
#[derive(Debug)]
pub struct Phrase {
    pub pattern: Regex,
    pub better: String,
}

/// Parses words.txt: a regular expression and the plain words on each line, separated by a tab. `#` starts a comment.
pub fn parse(text: &str) -> Result<Vec<Phrase>, String> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let phrase = |(line, number): (&str, usize)| {
        let (pattern, better) = line.split_once('\t').ok_or(format!("line {number} has no tab"))?;
        let pattern = RegexBuilder::new(pattern).case_insensitive(true).build();
        Ok(Phrase { pattern: pattern.map_err(|error| format!("line {number}: {error}"))?, better: better.to_owned() })
    };
    lines.map(phrase).collect()
}
