//! The file tools on a workspace, without a daemon around them: what they make of files, and what they refuse.

mod edit;
mod refusals;
mod turns;
mod view;
mod workspace_escape;

use std::fs;
use std::path::{Path, PathBuf};

use chorus_engine::tools::{FileLocks, LineRange, Workspace, WorkspacePath};
use tempfile::TempDir;

/// A workspace, and a directory around it.
struct Bench {
    folder: TempDir,
    workspace: Workspace,
    locks: FileLocks,
}

impl Bench {
    fn new() -> Self {
        // In memory where that can be had: each write is synced.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = TempDir::with_prefix_in("chorus", place).expect("a temporary directory");
        let root = folder.path().join("workspace");
        fs::create_dir(&root).expect("a workspace");
        Self { workspace: Workspace::open(&root).expect("a workspace"), folder, locks: FileLocks::default() }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("its folder");
        fs::write(path, content).expect("a file");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a text file")
    }

    fn place(&self, path: &str) -> Result<WorkspacePath, String> {
        WorkspacePath::parse(path, &self.root())
    }

    fn view(&self, path: &str) -> Result<String, String> {
        self.lines(path, None, None)
    }

    fn lines(&self, path: &str, start: Option<u64>, end: Option<u64>) -> Result<String, String> {
        self.workspace.view(&self.place(path)?, LineRange { start, end })
    }

    fn create(&self, path: &str, content: &str) -> Result<String, String> {
        self.workspace.create_file(&self.place(path)?, content.to_owned(), &self.locks)
    }

    fn append(&self, path: &str, content: &str) -> Result<String, String> {
        self.workspace.append_file(&self.place(path)?, content, &self.locks)
    }

    fn replace(&self, path: &str, old: &str, new: &str) -> Result<String, String> {
        self.workspace.str_replace(&self.place(path)?, (old, new), &self.locks)
    }

    /// Every name below the workspace.
    fn names(&self) -> Vec<String> {
        names_below(&self.root())
    }
}

/// Every name below a folder, sorted.
fn names_below(root: &Path) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            found.push(entry.path().strip_prefix(root).expect("below").to_string_lossy().into_owned());
            if entry.file_type().expect("its type").is_dir() {
                left.push(entry.path());
            }
        }
    }
    found.sort();
    found
}
