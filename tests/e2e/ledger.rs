//! tests/robustness/LEDGER.md names for each fault the tests that show it, and all of them exist.

use std::collections::BTreeSet;

use crate::tidy::source::{Source, root, sources};

/// Whether a source file is the module `path` and has the test `name`.
fn has(source: &Source, path: &str, name: &str) -> bool {
    let module = source.path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib");
    // A crate below chorusd is named by its folder, as its modules are; the engine's stand for themselves.
    let module = module.replace("/agent-core/src", "/agent").replace("/src", "");
    let is_module = module.strip_suffix(path).is_some_and(|before| before.ends_with('/'));
    is_module && source.text.contains(&format!("fn {name}()"))
}

/// Names of tests in a cell: code with at least one `::` in it.
fn tests(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|code| code.contains("::"))
}

#[test]
fn every_row_is_shown_by_tests_that_exist() {
    let ledger = std::fs::read_to_string(root().join("tests/robustness/LEDGER.md")).expect("the ledger");
    let sources: Vec<Source> = ["tests", "proto", "chorusd"].into_iter().flat_map(sources).collect();
    let mut rows = BTreeSet::new();
    for line in ledger.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| row ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (row, shown) = (cells[0], *cells.last().expect("a cell"));
        assert!(rows.insert(row), "{row} twice");
        assert!(tests(shown).next().is_some() || shown.contains("due with"), "{row}: neither a test nor a part");
        for test in tests(shown) {
            let (path, name) = test.rsplit_once("::").expect("a path");
            let path = path.replace("::", "/");
            assert!(sources.iter().any(|source| has(source, &path, name)), "{row}: there is no test {test}");
        }
    }
    for promise in 1..=22 {
        assert!(rows.contains(&*format!("P{promise}")), "P{promise} has no row");
    }
    assert!(rows.len() > 80, "only {} rows", rows.len());
}
