//! Finds ignored files that restoring a commit would destroy. Git treats them as expendable: it overwrites them,
//! replaces a directory of them by a file, and reports nothing in a dry run.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::read_dir;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::GitResult;
use super::run::Git;

/// Bytes of the list requested at once, because long output of a command is cut in the middle.
const PAGE_LEN: usize = 128 << 10;

/// Limit on the number of pages.
const MAX_PAGES: usize = 256;

/// The differences between two commits.
#[derive(Debug, Default, PartialEq, Eq)]
struct TreeChanges {
    /// Files that are new or have another type than before.
    added: Vec<PathBuf>,
    /// Files of HEAD that are removed or have another type than before.
    removed: HashSet<PathBuf>,
}

/// Returns a path in `workspace` that git would destroy and that is in no commit, if the files of `commit` replaced
/// those of HEAD. The path is relative to the workspace.
pub(super) async fn find_conflict(git: &Git<'_>, workspace: PathBuf, commit: &str) -> GitResult<Option<PathBuf>> {
    let changed = parse_changes(&list_changes(git, commit).await?).ok_or("cannot read the changes of the commit")?;
    let found = chorus_runtime::spawn_blocking(move || {
        changed.added.iter().find_map(|path| conflict_at(&workspace, path, &changed.removed).transpose()).transpose()
    });
    found.await.map_err(|e| e.to_string())?.map_err(|e| format!("cannot read the workspace: {e}"))
}

async fn list_changes(git: &Git<'_>, commit: &str) -> GitResult<String> {
    let mut all = String::new();
    for page in 0..MAX_PAGES {
        // The dot preserves a newline at the end of the page.
        let script = format!(
            "git \"$@\" -c core.quotePath=true diff-tree -r --no-renames --no-relative --ignore-submodules=all --name-status HEAD {commit} \
             | tail -c +{} | head -c {PAGE_LEN}; echo .",
            page * PAGE_LEN + 1
        );
        let said = git.run_script(&script).await?.text;
        let text = said.strip_suffix('.').ok_or("cannot read the changes of the commit")?;
        all.push_str(text);
        if text.len() < PAGE_LEN {
            return Ok(all);
        }
    }
    Err("the commit has too many changes".into())
}

/// Parses the output of `diff-tree --name-status`.
fn parse_changes(list: &str) -> Option<TreeChanges> {
    let mut changed = TreeChanges::default();
    for line in list.lines() {
        let (status, name) = line.split_once('\t')?;
        let path = PathBuf::from(OsString::from_vec(unquote(name)?));
        match status {
            "A" => changed.added.push(path),
            "D" => drop(changed.removed.insert(path)),
            "T" => {
                changed.added.push(path.clone());
                changed.removed.insert(path);
            }
            "M" => {}
            _ => return None,
        }
    }
    Some(changed)
}

/// Decodes a name as git prints it: with unusual characters it is in quotes and has C escapes.
fn unquote(name: &str) -> Option<Vec<u8>> {
    let Some(inside) = name.strip_prefix('"') else { return Some(name.as_bytes().to_vec()) };
    let mut bytes = inside.strip_suffix('"')?.bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                high @ b'0'..=b'3' => {
                    let mut low =
                        || bytes.next().filter(|digit| matches!(digit, b'0'..=b'7')).map(|digit| digit - b'0');
                    ((high - b'0') << 6) | (low()? << 3) | low()?
                }
                other => other,
            },
            other => other,
        });
    }
    Some(plain)
}

/// Returns a file that `path` would replace, unless it is in `going`.
fn conflict_at(workspace: &Path, path: &Path, going: &HashSet<PathBuf>) -> io::Result<Option<PathBuf>> {
    let above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    // From the top, because what lies below a link is not in the workspace.
    for above in above.into_iter().rev() {
        match file_type(&workspace.join(above))? {
            None => return Ok(None),
            Some(kind) if kind.is_dir() => {}
            Some(_) => return Ok((!going.contains(above)).then(|| above.to_owned())),
        }
    }
    match file_type(&workspace.join(path))? {
        None => Ok(None),
        Some(kind) if kind.is_dir() => first_conflict_below(workspace, path, going),
        Some(_) => Ok((!going.contains(path)).then(|| path.to_owned())),
    }
}

/// Returns the first file in a directory that is not in `going`.
fn first_conflict_below(workspace: &Path, dir: &Path, going: &HashSet<PathBuf>) -> io::Result<Option<PathBuf>> {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in read_dir(workspace.join(&dir))? {
            let entry = entry?;
            let path = dir.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                dirs.push(path);
            } else if !going.contains(&path) {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

fn file_type(path: &Path) -> io::Result<Option<std::fs::FileType>> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_git_prints_them() {
        let changed = parse_changes("A\ta b\nT\t\"\\303\\244\\t\\\"\\\\\"\nD\tx\nM\ty\n").unwrap();
        assert_eq!(changed.added, [PathBuf::from("a b"), PathBuf::from("ä\t\"\\")]);
        assert_eq!(changed.removed, HashSet::from([PathBuf::from("ä\t\"\\"), PathBuf::from("x")]));
        assert_eq!(parse_changes("fatal: no"), None);
        assert_eq!(parse_changes("A\t\"\\30\""), None);
    }
}
