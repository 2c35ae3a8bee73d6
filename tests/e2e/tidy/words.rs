//! The texts for users have none of the phrases that xtask/words.txt lists.

#[path = "../../../xtask/src/words/list.rs"]
mod list;
#[path = "../../../xtask/src/words/pages.rs"]
mod pages;
#[path = "../../../xtask/src/words/scanner.rs"]
mod scanner;

use std::fmt::Write as _;
use std::fs;

use super::source::{root, sources};

#[test]
fn texts_for_users_are_plain_english() {
    let phrases = list::parse(include_str!("../../../xtask/words.txt")).expect("xtask/words.txt");
    let checked =
        ["chorusd", "chorusctl"].into_iter().flat_map(sources).filter(|source| scanner::is_for_users(&source.path));
    let mut all: Vec<_> = checked.map(|source| (source.path, scanner::texts(&source.text))).collect();
    for page in pages::PAGES {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        all.push((page.to_owned(), pages::prose(&text)));
    }
    let mut found = String::new();
    for (path, texts) in all {
        for text in texts {
            for phrase in phrases.iter().filter(|phrase| phrase.pattern.is_match(&text.text)) {
                let _ = writeln!(found, "{path}:{}: {:?}: better: {}", text.line, text.text, phrase.better);
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}
