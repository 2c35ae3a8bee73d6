//! The licences of the libraries that are in the programs: whoever passes the programs on passes these on, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::shell::Shell;

/// What a file with a licence or a notice is called, in lower case.
const FILE_NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: String,
    /// `None` for the crates of the workspace.
    source: Option<String>,
}

/// Returns the text: each crate with its licence, then each text once with the crates that have it.
pub(super) fn text(shell: &Shell, target: &str) -> Result<String> {
    let args = ["metadata", "--locked", "--format-version", "1", "--filter-platform", target];
    let metadata = shell.output(&shell.cargo().args(args))?;
    let metadata: Metadata = serde_json::from_str(&metadata)
        .map_err(|error| Error::new(format!("cannot read the answer of cargo metadata: {error}")))?;
    let mut list = String::from("Chorus contains these libraries:\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata.packages.iter().filter(|package| package.source.is_some()) {
        let name = format!("{} {}", package.name, package.version);
        let license = package.license.as_deref().unwrap_or("see below");
        let _ = writeln!(list, "{name} ({license})");
        for text in license_texts(Path::new(&package.manifest_path))? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (text, crates) in &texts {
        let _ = write!(list, "\n{}\n{}\n\n{text}\n", "-".repeat(78), crates.join(", "));
    }
    Ok(list)
}

/// Returns the texts of the licences beside a manifest.
fn license_texts(manifest: &Path) -> Result<Vec<String>> {
    let Some(directory) = manifest.parent() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| Error::file("read", directory, &error))? {
        let path = entry.map_err(|error| Error::file("read", directory, &error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if path.is_file() && FILE_NAMES.iter().any(|start| name.starts_with(start)) {
            let bytes = fs::read(&path).map_err(|error| Error::file("read", &path, &error))?;
            found.push(String::from_utf8_lossy(&bytes).replace("\r\n", "\n").trim_end().to_owned());
        }
    }
    found.sort();
    Ok(found)
}
