//! Every source file belongs to a crate: one that no `mod` names is never compiled, and its tests never run.

use std::collections::BTreeMap;
use std::path::Path;

use super::source::{Source, sources};

const FOLDERS: [&str; 6] = ["proto", "chorusd", "chorusctl", "template", "tests", "xtask"];

/// Directories of a crate, outside of `src`, in which every file is a crate of its own.
const TARGET_DIRS: [&str; 5] = ["tests", "benches", "examples", "bins", "floor"];

/// Returns true for a file that Cargo compiles by itself.
fn is_crate_root(path: &Path) -> bool {
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let dir = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    let is_in_src = path.components().any(|component| component.as_os_str() == "src");
    ["lib.rs", "main.rs", "build.rs"].contains(&file) || (!is_in_src && TARGET_DIRS.contains(&dir))
}

/// Returns true if a file that may declare the module at `path` does so.
fn is_declared(path: &Path, texts: &BTreeMap<String, String>) -> bool {
    let module = if path.ends_with("mod.rs") { path.parent().unwrap_or(path) } else { path };
    let name = module.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let dir = module.parent().unwrap_or(Path::new(""));
    let parents = ["mod.rs", "lib.rs", "main.rs"].map(|file| dir.join(file));
    let declares =
        |text: &String| [format!("mod {name};"), format!("mod {name} {{")].iter().any(|it| text.contains(it));
    let is_parent_declaring = parents
        .iter()
        .chain([&dir.with_extension("rs")])
        .any(|parent| parent.to_str().and_then(|parent| texts.get(parent)).is_some_and(declares));
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let by_path = || texts.values().any(|text| text.contains("#[path = ") && text.contains(&format!("{file}\"]")));
    is_parent_declaring || by_path()
}

#[test]
fn every_source_file_is_compiled() {
    let texts: BTreeMap<_, _> =
        FOLDERS.into_iter().flat_map(sources).map(|Source { path, text }| (path, text)).collect();
    let orphans: Vec<_> =
        texts.keys().map(Path::new).filter(|path| !is_crate_root(path) && !is_declared(path, &texts)).collect();
    assert!(orphans.is_empty(), "no `mod` names these files: {orphans:?}");
}

#[test]
fn a_file_that_no_module_names_is_seen() {
    let of = |files: &[(&str, &str)]| -> BTreeMap<String, String> {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    };
    let texts =
        of(&[("a/src/lib.rs", "mod first;"), ("a/src/first.rs", "pub mod second;"), ("a/src/first/second.rs", "")]);
    assert!(
        is_declared(Path::new("a/src/first.rs"), &texts) && is_declared(Path::new("a/src/first/second.rs"), &texts)
    );
    assert!(!is_declared(Path::new("a/src/first/third.rs"), &texts) && !is_declared(Path::new("a/src/mod.rs"), &texts));
    assert!(is_crate_root(Path::new("a/tests/first.rs")) && !is_crate_root(Path::new("a/src/first/tests/second.rs")));
}
