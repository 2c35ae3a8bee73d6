//! The source files of a crate, as lines of code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).expect("the workspace")
}

/// One source file.
pub struct Source {
    /// From the root of the workspace, with `/`.
    pub path: String,
    pub text: String,
}

/// Every Rust file below `folder` of the workspace.
pub fn sources(folder: &str) -> Vec<Source> {
    let root = root();
    let (mut found, mut folders) = (Vec::new(), vec![root.join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                let path = path.strip_prefix(&root).expect("inside").to_string_lossy().into_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|one, two| one.path.cmp(&two.path));
    found
}

impl Source {
    /// The code without comments and without the tests at its end.
    pub fn code(&self) -> String {
        let lines = self.text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
        lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    }

    /// The first words after `crate::`, and every crate that is named in a path.
    pub fn uses(&self) -> BTreeSet<String> {
        let code = self.code();
        let mut found = BTreeSet::new();
        for (at, _) in code.match_indices("::") {
            let head = word_before(&code[..at]);
            if head == "crate" {
                found.extend(heads(&code[at + 2..]).into_iter().map(|part| format!("crate::{part}")));
            } else if head.starts_with(|c: char| c.is_ascii_lowercase()) && is_start_of_path(&code[..at - head.len()]) {
                found.insert(head.to_owned());
                found.extend(heads(&code[at + 2..]).into_iter().map(|second| format!("{head}::{second}")));
            }
        }
        found
    }
}

fn word_before(text: &str) -> &str {
    let start = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    &text[start..]
}

fn is_start_of_path(before: &str) -> bool {
    !before.ends_with("::")
}

/// The words a path goes on with: one, or those of a group in braces.
fn heads(rest: &str) -> Vec<&str> {
    let word = |text: &'_ str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(group) = rest.strip_prefix('{') else { return vec![&rest[..word(rest)]] };
    let (mut depth, mut found, mut start) = (0, Vec::new(), 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&group[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.into_iter().map(str::trim).map(|item| &item[..word(item)]).filter(|item| !item.is_empty()).collect()
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let text = "use crate::{store::{self, Catalog}, ops};\nuse std::{fs, io::Read};\n// use tokio::spawn;\n\
                fn f() { crate::server::go(tokio::time::now()) }\n#[cfg(test)]\nmod tests { use crate::llm; }";
    let source = Source { path: String::new(), text: text.into() };
    let found = source.uses();
    for due in ["crate::store", "crate::ops", "crate::server", "std::fs", "std::io", "tokio", "tokio::time"] {
        assert!(found.contains(due), "{due}: {found:?}");
    }
    for not_due in ["crate::llm", "tokio::spawn", "crate::Catalog", "crate::self"] {
        assert!(!found.contains(not_due), "{not_due}: {found:?}");
    }
}
