//! The files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Returns the directory that has the workspace's Cargo.toml.
pub fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().filter(|root| root.join("Cargo.toml").is_file());
    root.map(Path::to_path_buf).ok_or_else(|| {
        Error::new(format!("the workspace is no longer at {}", here.display()))
            .hint("run it from the workspace as `cargo xtask`, which builds it again")
    })
}

pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Error::file("read", path, &error))
}

/// Returns the names in a directory for which `keep` returns a name, in alphabetical order.
pub fn names(directory: &Path, keep: impl Fn(&Path) -> Option<String>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| Error::file("read", directory, &error))? {
        let entry = entry.map_err(|error| Error::file("read", directory, &error))?;
        names.extend(keep(&entry.path()));
    }
    names.sort();
    Ok(names)
}

/// Returns all Rust files below a directory.
pub fn sources(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_path_buf()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| Error::file("read", &directory, &error))? {
            let path = entry.map_err(|error| Error::file("read", &directory, &error))?.path();
            if path.is_dir() && !path.ends_with("target") {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Checks that each of `wanted` is one of `known`; without `wanted` returns all of them.
pub fn select(what: &str, wanted: &[String], known: Vec<String>) -> Result<Vec<String>> {
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(name)) {
        return Err(Error::new(format!("no {what} {unknown:?}")).hint(format!("use one of: {}", known.join(", "))));
    }
    Ok(if wanted.is_empty() { known } else { wanted.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_those_there_are() {
        let known = || vec!["append".to_owned(), "status".to_owned()];
        assert_eq!(select("bench", &[], known()).unwrap(), known());
        assert_eq!(select("bench", &["status".into()], known()).unwrap(), ["status"]);
        let error = select("bench", &["stauts".into()], known()).unwrap_err().to_string();
        assert_eq!(error, "error: no bench \"stauts\"\nhint: use one of: append, status\n");
    }
}
