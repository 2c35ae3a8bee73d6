//! Checks that the tests named in tests/robustness/LEDGER.md and docs/design/ exist.

use std::collections::BTreeSet;

use crate::tidy::source::{Source, root, sources};

/// Returns true if a source file is the module `path`, which is relative and has slashes.
fn is_module(source: &Source, path: &str) -> bool {
    let module = source.path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib");
    // A crate below chorusd is named by its folder, as its modules are; the engine's stand for themselves.
    let module = module.replace("/agent-core/src", "/agent").replace("/src", "");
    module.strip_suffix(path).is_some_and(|before| before.ends_with('/'))
}

/// Returns true if a source file is the module of `item` (`agent::destroy::test`) and has that function.
fn has(source: &Source, item: &str) -> bool {
    let (path, name) = item.rsplit_once("::").expect("a path");
    is_module(source, &path.replace("::", "/")) && source.text.contains(&format!("fn {name}("))
}

fn all_sources() -> Vec<Source> {
    ["tests", "proto", "chorusd"].into_iter().flat_map(sources).collect()
}

/// Returns the names of tests in a text: code with at least one `::` in it.
fn tests(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|code| code.contains("::"))
}

#[test]
fn every_row_is_shown_by_tests_that_exist() {
    let ledger = std::fs::read_to_string(root().join("tests/robustness/LEDGER.md")).expect("the ledger");
    let sources = all_sources();
    let mut rows = BTreeSet::new();
    for line in ledger.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| row ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (row, shown) = (cells[0], *cells.last().expect("a cell"));
        assert!(rows.insert(row), "{row} twice");
        assert!(tests(shown).next().is_some() || shown.contains("due with"), "{row}: neither a test nor a part");
        for test in tests(shown) {
            assert!(sources.iter().any(|source| has(source, test)), "{row}: there is no test {test}");
        }
    }
    for promise in 1..=22 {
        assert!(rows.contains(&*format!("P{promise}")), "P{promise} has no row");
    }
    assert!(rows.len() > 80, "only {} rows", rows.len());
}

/// The pages name tests, and here and there a module or a function; types are left out.
#[test]
fn every_test_that_a_design_page_names_exists() {
    let sources = all_sources();
    for page in std::fs::read_dir(root().join("docs/design")).expect("docs/design") {
        let page = page.expect("an entry").path();
        let text = std::fs::read_to_string(&page).expect("a page");
        let paths =
            |code: &&str| code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c));
        for name in tests(&text).filter(paths) {
            let path = name.replace("::", "/");
            let exists = sources.iter().any(|source| has(source, name) || is_module(source, &path));
            assert!(exists, "{}: there is no {name}", page.display());
        }
    }
}
