//! The texts for users have none of the phrases that xtask/words.txt lists.

#[path = "../../../xtask/src/words/list.rs"]
mod list;
#[path = "../../../xtask/src/words/scanner.rs"]
mod scanner;

use std::fmt::Write as _;

use super::source::sources;

#[test]
fn texts_for_users_are_plain_english() {
    let phrases = list::parse(include_str!("../../../xtask/words.txt")).expect("xtask/words.txt");
    let mut found = String::new();
    let checked =
        ["chorusd", "chorusctl"].into_iter().flat_map(sources).filter(|source| scanner::is_for_users(&source.path));
    for source in checked {
        for text in scanner::texts(&source.text) {
            for phrase in phrases.iter().filter(|phrase| phrase.pattern.is_match(&text.text)) {
                let _ = writeln!(found, "{}:{}: {:?}: better: {}", source.path, text.line, text.text, phrase.better);
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}
