//! Finds the test modules that read a variable, so that chores follow the tests wherever they move.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::shell::{Shell, Step};
use crate::workspace::{read, sources};

/// Tests of one package, as `cargo test` selects them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suite {
    pub package: String,
    /// In the end-to-end tests; else in the library.
    pub end_to_end: bool,
    /// `context::idle`; a prefix of the names of its tests.
    pub module: String,
}

/// One source file with tests.
struct Source {
    suite: Suite,
    text: String,
}

/// Returns the test modules that read one of `variables`, themselves or through a public function of their package.
pub fn reading(root: &Path, variables: &[&str]) -> Result<Vec<Suite>> {
    let sources = tested(root)?;
    let quoted: Vec<String> = variables.iter().map(|name| format!("\"{name}\"")).collect();
    let mut readers = BTreeSet::new();
    let mut found = BTreeSet::new();
    for source in &sources {
        for at in quoted.iter().flat_map(|name| source.text.match_indices(name.as_str())).map(|(at, _)| at) {
            found.insert(source.suite.clone());
            readers.extend(public_function(&source.text[..at]).map(|name| (&source.suite.package, name)));
        }
    }
    let uses = |source: &&Source| {
        readers.iter().any(|(package, name)| **package == source.suite.package && calls(&source.text, name))
    };
    found.extend(sources.iter().filter(uses).map(|source| source.suite.clone()));
    // The harness has no tests of its own.
    found.retain(|suite| !suite.module.is_empty());
    Ok(without_covered(found))
}

/// Returns `cargo test` for the suites of each package.
pub fn commands(shell: &Shell, suites: &[Suite]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let targets: BTreeSet<_> = suites.iter().map(|suite| (suite.package.clone(), suite.end_to_end)).collect();
    for (package, end_to_end) in targets {
        let of_target = suites.iter().filter(|suite| suite.package == package && suite.end_to_end == end_to_end);
        let target: &[&str] = if end_to_end { &["--test", "e2e"] } else { &["--lib"] };
        let step = shell.cargo().args(["test", "-p", &package]).args(target.iter().copied()).arg("--");
        steps.push(step.args(of_target.map(|suite| format!("{}::", suite.module))));
    }
    steps
}

fn tested(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for folder in ["tests/e2e", "tests/harness", "chorusd"] {
        for path in sources(&root.join(folder))? {
            found.push(Source { suite: suite(root, &path)?, text: read(&path)? });
        }
    }
    Ok(found)
}

/// Returns the suite of a file: its package is the one above it, its module follows from its path.
fn suite(root: &Path, path: &Path) -> Result<Suite> {
    let directory = path.ancestors().skip(1).take_while(|dir| dir.starts_with(root));
    let package = directory.into_iter().find(|dir| dir.join("Cargo.toml").is_file()).unwrap_or(root);
    let inside: PathBuf = path.strip_prefix(package).unwrap_or(path).to_path_buf();
    let end_to_end = inside.starts_with("e2e");
    let module = if end_to_end || inside.starts_with("src") { module(&inside) } else { String::new() };
    let manifest = read(&package.join("Cargo.toml"))?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let name = name.ok_or_else(|| Error::new(format!("no package name in {}/Cargo.toml", package.display())))?;
    Ok(Suite { package: name.to_owned(), end_to_end, module })
}

/// `e2e/context/idle.rs` is `context::idle`; a `mod.rs` stands for its folder.
fn module(path: &Path) -> String {
    let path = path.with_extension("");
    let mut parts: Vec<_> = path.iter().skip(1).map(|part| part.to_string_lossy().into_owned()).collect();
    parts.pop_if(|last| ["mod", "main", "lib"].contains(&last.as_str()));
    parts.join("::")
}

/// Returns the name of the public function in which `before` ends.
fn public_function(before: &str) -> Option<String> {
    let start = before.rfind("\npub fn ")? + "\npub fn ".len();
    // A line of code at the margin has ended it.
    if before[start..].contains("\n}") {
        return None;
    }
    let name: String = before[start..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(name)
}

/// Returns true if `text` calls the function `name`: not a method of that name, and not with arguments of its own.
fn calls(text: &str, name: &str) -> bool {
    let call = format!("{name}()");
    text.match_indices(&call).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '.') && !text[..at].ends_with("fn ")
    })
}

/// Leaves out modules below another one that is there.
fn without_covered(found: BTreeSet<Suite>) -> Vec<Suite> {
    let mut kept: Vec<Suite> = Vec::new();
    for suite in found {
        let covered = kept.iter().any(|other| {
            (&other.package, other.end_to_end) == (&suite.package, suite.end_to_end)
                && suite.module.starts_with(&format!("{}::", other.module))
        });
        if !covered {
            kept.push(suite);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_follows_from_the_path() {
        for (path, due) in [
            ("e2e/main.rs", ""),
            ("e2e/events.rs", "events"),
            ("e2e/context/mod.rs", "context"),
            ("e2e/context/idle/race.rs", "context::idle::race"),
            ("src/redact/matrix/mod.rs", "redact::matrix"),
        ] {
            assert_eq!(module(Path::new(path)), due, "{path}");
        }
    }

    #[test]
    fn functions_that_read_a_variable_are_found_with_their_callers() {
        let text = "//! x\npub fn all() -> bool {\n    std::env::var(\"X\")\n}\nfn own() { \"Y\" }\n";
        let at = |what: &str| &text[..text.find(what).unwrap()];
        assert_eq!(public_function(at("\"X\"")), Some("all".into()));
        assert_eq!(public_function(at("\"Y\"")), None);
        assert!(calls("if all() { 3 }", "all") && calls("all()", "all"));
        assert!(!calls("list.all()", "all") && !calls("pub fn all() {", "all") && !calls("small()", "all"));
    }

    #[test]
    fn what_another_suite_covers_is_left_out() {
        let suite = |module: &str| Suite { package: "p".into(), end_to_end: true, module: module.into() };
        let found = ["a::b", "a", "ab", "c::d"].map(suite).into();
        assert_eq!(without_covered(found), ["a", "ab", "c::d"].map(suite));
    }
}
