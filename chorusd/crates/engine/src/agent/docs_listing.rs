//! Lists the agent's docs: the files in docs/ and its folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum depth of folders in docs/.
const MAX_DEPTH: usize = 4;

/// Maximum number of files; the others are ignored.
const MAX_DOCS: usize = 1000;

/// A file in docs/.
#[derive(Debug)]
pub(crate) struct DocFile {
    /// Path relative to docs/.
    pub name: String,
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
}

/// Lists the files by name, those of a folder after those beside it. Skips symbolic links and hidden files. Blocks.
#[must_use]
pub(crate) fn list_docs(dir: &Path) -> Vec<DocFile> {
    let mut found = Vec::new();
    collect_docs(dir, "", MAX_DEPTH, &mut found);
    found
}

fn collect_docs(dir: &Path, before: &str, deeper: usize, found: &mut Vec<DocFile>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let visible = |entry: &fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    let mut entries: Vec<_> = entries.flatten().filter(visible).take(MAX_DOCS).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut folders = Vec::new();
    for entry in entries {
        let (name, path) = (format!("{before}{}", entry.file_name().to_string_lossy()), entry.path());
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() {
            folders.push((name, path));
        } else if metadata.is_file() && found.len() < MAX_DOCS {
            found.push(DocFile { name, path, size: metadata.len() });
        }
    }
    for (name, path) in folders.iter().filter(|_| deeper > 0) {
        collect_docs(path, &format!("{name}/"), deeper - 1, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_lie_in_folders_too_and_links_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        let _ = ["b.md", "a/z.md", "c.md", "a/b/y.md", ".git/config", "a/.hidden", "1/2/3/4/in.md", "1/2/3/4/5/out.md"]
            .map(write);
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
        let names: Vec<String> = list_docs(dir.path()).into_iter().map(|note| note.name).collect();
        assert_eq!(names, ["b.md", "c.md", "1/2/3/4/in.md", "a/z.md", "a/b/y.md"]);
    }
}
