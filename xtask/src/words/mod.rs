//! `cargo xtask words`: texts for users that are not plain English, by the list in words.txt.

mod list;
mod pages;
mod scanner;

use std::io::{self, Write as _};

use crate::error::{Error, Result};
use crate::workspace;

const LIST: &str = include_str!("../../words.txt");

/// The programs whose texts are checked.
const PROGRAMS: [&str; 2] = ["chorusd", "chorusctl"];

/// Prints each text of the programs and of the pages for users that has a phrase of the list. Fails if there is one.
pub fn run() -> Result<()> {
    let phrases = list::parse(LIST).map_err(|error| Error::new(format!("xtask/words.txt: {error}")))?;
    let root = workspace::root()?;
    let mut count = 0;
    for program in PROGRAMS {
        for path in workspace::sources(&root.join(program))? {
            let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
            if scanner::is_for_users(&name) {
                count += print_found(&name, &scanner::texts(&workspace::read(&path)?), &phrases);
            }
        }
    }
    for page in pages::PAGES {
        count += print_found(page, &pages::prose(&workspace::read(&root.join(page))?), &phrases);
    }
    match count {
        0 => Ok(()),
        _ => {
            Err(Error::new(format!("texts to rewrite: {count}")).hint("use the words on the right of xtask/words.txt"))
        }
    }
}

/// Prints the texts of `file` that have a phrase of the list. Returns how many there are.
fn print_found(file: &str, texts: &[scanner::Text], phrases: &[list::Phrase]) -> usize {
    let (mut out, mut count) = (io::stdout().lock(), 0);
    for text in texts {
        for phrase in phrases.iter().filter(|phrase| phrase.pattern.is_match(&text.text)) {
            count += 1;
            // The exit status reports the result even if standard output is closed.
            let _ = writeln!(out, "{file}:{}: {:?}\n    better: {}", text.line, text.text, phrase.better);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_help_texts_are_found_and_tests_are_not() {
        let source = "/// Plain.\nfn a(c: char) {\n    // \"comment\"\n    let (b, d) = ('\"', r#\"raw \"text\"\"#);\n    \
                      say(\"one \\\n        two\");\n}\n/// Help\n#[derive(Debug, clap::Args)]\nstruct Args {\n    /// Option\n    \
                      at: u8,\n}\n/// Plain.\n#[expect(lint, reason = \"why\")]\nfn e() {}\n\n#[cfg(test)]\nmod tests {\n    \
                      const T: &str = \"test\";\n}\n";
        let found: Vec<_> = scanner::texts(source).into_iter().map(|text| (text.line, text.text)).collect();
        let due = [(4, "raw \"text\""), (5, "one two"), (8, "Help"), (11, "Option")];
        assert_eq!(found, due.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn pages_are_read_without_their_code() {
        let page = "One `code\nspan` two\n\n    code\n```\nfence\n```\n- three ``\n";
        let found: Vec<_> = pages::prose(page).into_iter().map(|text| (text.line, text.text)).collect();
        let due = [(1, "One `"), (2, " two"), (3, ""), (8, "- three `")];
        assert_eq!(found, due.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn files_of_tests_and_data_are_left_out() {
        assert!(scanner::is_for_users("chorusd/crates/engine/src/ops/hints.rs"));
        for path in
            ["chorusctl/tests/x.rs", "chorusd/crates/a/src/b/tests.rs", "chorusd/crates/store/src/catalog/schema.rs"]
        {
            assert!(!scanner::is_for_users(path), "{path}");
        }
    }

    #[test]
    fn the_list_is_valid_and_ignores_case() {
        let phrases = list::parse(LIST).unwrap();
        let has = |text: &str| phrases.iter().any(|phrase| phrase.pattern.is_match(text));
        for bad in ["There is no key", "it is no number", "the turn goes on", "Chorus was started anew"] {
            assert!(has(bad), "{bad}");
        }
        for good in ["is no longer valid", "no key `x`", "restarted", "continue with start_line 5"] {
            assert!(!has(good), "{good}");
        }
        assert!(list::parse("a").is_err());
    }
}
