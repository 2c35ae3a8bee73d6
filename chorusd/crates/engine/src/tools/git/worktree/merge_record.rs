//! The record of a merge that is replacing the files of the workspace. If git is killed then, some of them are new, some old,
//! and one may be half written, while the index is still the old one. The next merge puts them back by the record.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_base::private_fs::{create_private, sync_dir, write_private};

use super::{Worktree, run_blocking};
use crate::tools::git::GitResult;
use crate::tools::git::run::Git;

/// Name of the record's file in the directory of the agent's worktrees, where no command can write.
const FILE_NAME: &str = ".merging";

/// A lock of the index that is empty and this old is that of a git that was killed.
const STALE_LOCK_AGE: Duration = Duration::from_secs(2);

/// Puts back the files that differ between the commits HEAD and TIP, and the index. Each file has to be that of one of both,
/// missing, or the beginning of the new one; otherwise the names of others are printed and nothing changes.
const PUT_BACK_SCRIPT: &str = r#"
set -u
export LC_ALL=C
dir=$(mktemp -d) && index=$GIT_DIR/index || exit 1
if [ ! -e "$index" ]; then echo "$index is missing"; exit 1; fi
for commit in HEAD TIP; do
    git "$@" diff-index --cached --quiet $commit -- && known=1
done
if [ -z "${known-}" ]; then echo "other changes are staged in the workspace (git reset unstages them)"; exit 1; fi
changes() {
    filter=$1 form=$2; shift 2
    git "$@" diff-tree -r $form --no-renames --ignore-submodules=all --name-only --diff-filter=$filter HEAD TIP
}
modified() {
    copy=$dir/$1; shift
    GIT_INDEX_FILE=$copy git "$@" update-index -q --refresh >/dev/null
    GIT_INDEX_FILE=$copy git "$@" diff-files --no-ext-diff --ignore-submodules=all --name-only --diff-filter=MT | sort
}
for commit in HEAD TIP; do
    cp "$index" "$dir/$commit" && GIT_INDEX_FILE=$dir/$commit git "$@" read-tree -m -i $commit || exit 1
    modified $commit "$@" >"$dir/changed-$commit"
done
changes A --no-relative "$@" | sort | comm -12 - "$dir/changed-TIP" >"$dir/odd"
changes D --no-relative "$@" | sort | comm -12 - "$dir/changed-HEAD" >>"$dir/odd"
changes MT --no-relative "$@" | sort | comm -12 - "$dir/changed-HEAD" | comm -12 - "$dir/changed-TIP" >>"$dir/odd"
while IFS= read -r path; do
    if [ -f "$path" ] && [ ! -h "$path" ]; then
        size=$(wc -c <"$path")
        git "$@" cat-file blob "TIP:$path" 2>/dev/null | head -c "$size" | cmp -s - "$path" && continue
    fi
    printf '%s\n' "$path"
done <"$dir/odd" >"$dir/others"
if [ -s "$dir/others" ]; then cat "$dir/others"; exit 3; fi
changes A -z "$@" | xargs -0 -r rm -f --
changes A -z "$@" | xargs -0 -r dirname -z -- | sort -zu | xargs -0 -r rmdir -p --ignore-fail-on-non-empty -- 2>/dev/null
changes DMT --no-relative "$@" | while IFS= read -r path; do
    if [ -d "$path" ] && [ ! -h "$path" ]; then printf '%s\n' "$path"; fi
done >"$dir/others"
if [ -s "$dir/others" ]; then cat "$dir/others"; exit 3; fi
git "$@" read-tree -m -i HEAD && changes DMT -z "$@" | git "$@" checkout-index -q -f -z --stdin || exit 1
git "$@" update-index -q --refresh >/dev/null
:"#;

/// The commits between which a merge replaces the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MergeRecord {
    pub head: String,
    pub tip: String,
}

/// The result of [`MergeRecord::put_back`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PutBack {
    Done,
    /// These files were changed since, or something else than the merge did.
    Changed(Vec<String>),
}

impl MergeRecord {
    /// Reads the record of a merge that was cut off; `None` if there is none.
    pub(super) async fn read(worktree: &Worktree) -> GitResult<Option<Self>> {
        let path = path(worktree);
        run_blocking(move || match fs::read_to_string(&path) {
            Ok(text) => Ok(parse(&text)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(format!("{}: {e}", path.display())),
        })
        .await
    }

    /// Writes the record. It is on the disk afterwards.
    pub(super) async fn write(&self, worktree: &Worktree) -> GitResult<()> {
        let (path, text) = (path(worktree), format!("{} {}\n", self.head, self.tip));
        run_blocking(move || {
            let dir = path.parent().unwrap_or(Path::new("/"));
            let written = create_private(dir).and_then(|()| write_private(&path, text.as_bytes()));
            written.map_err(|e| format!("{}: {e}", path.display()))
        })
        .await
    }

    /// Removes the record, because all files are those of one commit.
    pub(super) async fn remove(worktree: &Worktree) -> GitResult<()> {
        let path = path(worktree);
        run_blocking(move || match fs::remove_file(&path) {
            Ok(()) => path.parent().map_or(Ok(()), sync_dir).map_err(|e| format!("{}: {e}", path.display())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(format!("{}: {e}", path.display())),
        })
        .await
    }

    /// Puts back the files of the workspace and removes the record.
    pub(super) async fn put_back(&self, git: &Git<'_>, worktree: &Worktree) -> GitResult<PutBack> {
        remove_stale_lock(git, worktree).await?;
        let commits = [("HEAD", &self.head), ("TIP", &self.tip)];
        let script = commits.iter().fold(PUT_BACK_SCRIPT.to_owned(), |script, (word, id)| script.replace(word, id));
        let said = git.run_script(&script).await?;
        match said.status {
            0 => Self::remove(worktree).await.map(|()| PutBack::Done),
            3 => Ok(PutBack::Changed(said.text.lines().map(str::to_owned).collect())),
            _ => Err(said.text),
        }
    }
}

fn path(worktree: &Worktree) -> PathBuf {
    worktree.dir.with_file_name(FILE_NAME)
}

fn parse(text: &str) -> Option<MergeRecord> {
    let is_id = |id: &&str| matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [head, tip] if [head, tip].iter().all(is_id) => Some(MergeRecord { head: head.into(), tip: tip.into() }),
        _ => None,
    }
}

/// Removes the lock of the index that a killed git has left, as it does while it replaces files. That of a git at work is not
/// that old, or has the new index in it.
async fn remove_stale_lock(git: &Git<'_>, worktree: &Worktree) -> GitResult<()> {
    let lock = worktree.repository.join("index.lock");
    let examine = || {
        let lock = lock.clone();
        run_blocking(move || Ok(lock.symlink_metadata().ok().filter(|found| found.is_file() && found.len() == 0)))
    };
    let Some(before) = examine().await? else { return Ok(()) };
    let age = before.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
    tokio::time::sleep(STALE_LOCK_AGE.saturating_sub(age)).await;
    match examine().await? {
        Some(now) if now.ino() == before.ino() => git.run_shell(r#"rm -f -- "$1""#, [lock.into_os_string()]).await,
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_record_of_two_commits_is_one() {
        let id = |c: &str| c.repeat(40);
        let record = MergeRecord { head: id("a"), tip: id("b") };
        assert_eq!(parse(&format!("{} {}\n", record.head, record.tip)), Some(record.clone()));
        for wrong in
            [String::new(), id("a"), format!("{} $(id)", id("a")), format!("{} {} {}", id("a"), id("b"), id("c"))]
        {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
    }
}
