//! The tool `self_edit_docs`: writes the agent's docs/, which are part of its prompt. Files are opened beneath a
//! directory handle, so that links cannot lead elsewhere.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{TEMPORARY_PREFIX, sync};
use chorus_catalog::AuditDecision;
use chorus_permissions::Action;
use chorus_runtime::run_blocking;
use chorus_store::AgentDir;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, renameat, unlinkat};
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{MAX_TEXT_LEN, docs_quota, ensure_no_secret};
use crate::tools::tool::{Tool, ToolOutcome};
use crate::tools::{ToolContext, error_outcome};

/// Limit on nested directories below docs/.
const MAX_DEPTH: usize = 4;

pub(crate) struct SelfEditDocs;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// For example `plan.md`.
    path: String,
    /// The complete content. Empty content removes the file.
    content: String,
}

impl Tool for SelfEditDocs {
    const NAME: &'static str = "self_edit_docs";
    const DESCRIPTION: &'static str =
        "Writes a file in docs/. You see these files in every conversation, so keep them short.";
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        check_note_path(&params.path)?;
        ensure_no_secret(&params.path, "path", ctx)?;
        if params.content.len() > MAX_TEXT_LEN {
            return Err(format!("`content` is longer than {MAX_TEXT_LEN} bytes; shorten it, or use another file"));
        }
        if params.content.contains('\0') {
            return Err("`content` contains a NUL character".into());
        }
        Ok(Action::SelfEditDocs { path: &params.path }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let row = AuditDecision {
            at: ctx.services.clock.now(),
            agent: ctx.agent,
            agent_name: ctx.agent_name.clone(),
            turn: Some(ctx.turn),
            action: Action::SelfEditDocs { path: &params.path }.to_string(),
            decision: "changed".into(),
            rule: "the agent changed its own settings".into(),
            user: ctx.requester.to_string(),
            old: None,
            new: None,
        };
        let content = ctx.redact_for_storage(params.content);
        match write_or_remove_note(Params { content: content.text, ..params }, &ctx, row).await {
            Ok(done) => ToolOutcome::success(done + content.note),
            Err(failure) => error_outcome(failure),
        }
    }
}

/// Checks that a path may name a note. Valid paths are used unchanged.
fn check_note_path(path: &str) -> Result<(), String> {
    let wrong =
        |why: &str| Err(format!("{path:?} is not a valid path: {why}; use one below docs/, such as \"plan.md\""));
    let parts: Vec<&str> = path.split('/').collect();
    if path.len() > 512 || parts.iter().any(|part| part.len() > 200) {
        return Err("`path` is too long".into());
    }
    if path.chars().any(char::is_control) {
        return wrong("it contains control characters");
    }
    if parts.iter().any(|part| part.is_empty() || *part == "." || *part == "..") {
        return wrong("it contains an empty part, `.` or `..`");
    }
    if parts.iter().any(|part| part.starts_with('.')) {
        return wrong("hidden files are not allowed");
    }
    if parts.len() > MAX_DEPTH + 1 {
        return wrong("it is nested too deeply");
    }
    Ok(())
}

/// A note by its name in an open directory.
struct NoteFile {
    dir: File,
    name: String,
}

async fn write_or_remove_note(params: Params, ctx: &ToolContext, row: AuditDecision) -> Result<String> {
    // The old text for the audit log must be the one that is replaced.
    let _alone = ctx.services.docs_locks.lock(ctx.agent).await;
    let Params { path, content } = params;
    let shown = path.clone();
    let failed = move |what: &str, e: &io::Error| Error::io(format_args!("{what} docs/{shown}"), e);
    let docs = ctx.dir.join("docs");
    let (removes, at) = (content.is_empty(), path.clone());
    let opening = failed.clone();
    let length = content.len() as u64;
    let (note, old) = run_blocking(move || {
        if !removes {
            docs_quota::check_quota(&docs, &at, length)?;
        }
        let note = open_note(&docs, &at, !removes).map_err(|e| opening("cannot open", &e))?;
        let old = note.read().map_err(|e| opening("cannot read", &e))?;
        Ok((note, old))
    })
    .await?;
    if removes && old.is_none() {
        return Err(Error::invalid(format!("docs/{path} does not exist; nothing was removed")));
    }
    let new = (!removes).then(|| content.clone());
    let audit = |decision: &str, row: AuditDecision| AuditDecision {
        decision: decision.into(),
        old: old.clone(),
        new: new.clone(),
        ..row
    };
    ctx.services.store.catalog.audit.append(audit("changed", row.clone())).await?;
    let done = run_blocking(move || {
        let written = if removes { note.remove() } else { note.write(content.as_bytes()) };
        written.map_err(|e| failed("cannot write", &e))
    })
    .await;
    if let Err(failure) = ctx.services.store.escalate_fatal(done) {
        let row = AuditDecision { rule: failure.message.clone(), at: ctx.services.clock.now(), ..row };
        if let Err(failure) = ctx.services.store.catalog.audit.append(audit("not_changed", row)).await {
            tracing::error!(%failure, "cannot record a failed change in the audit log");
        }
        return Err(failure);
    }
    let done = if removes { format!("removed docs/{path}") } else { format!("wrote docs/{path}") };
    let files = AgentDir { agent: ctx.agent, name: ctx.agent_name.clone(), dir: ctx.dir.clone() };
    match ctx.services.store.store_file_edits(files).await {
        Ok(()) => Ok(done),
        Err(failure) => {
            tracing::warn!(agent = ctx.agent_name, %failure, "cannot store the files of an agent for other nodes yet");
            Ok(format!("{done} on this machine; it is not stored for other machines yet: {}", failure.message))
        }
    }
}

/// Opens the directory of a note. With `makes`, creates missing directories.
fn open_note(docs: &Path, path: &str, makes: bool) -> io::Result<NoteFile> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut dir = File::from(openat(CWD, docs, flags, Mode::empty())?);
    let (folders, name) = path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
    for folder in folders.into_iter().flat_map(|folders| folders.split('/')) {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(&dir, folder, flags, Mode::empty(), resolve);
        dir = match opened {
            Err(rustix::io::Errno::NOENT) if makes => {
                match mkdirat(&dir, folder, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(e) => return Err(e.into()),
                }
                sync(&dir)?;
                openat2(&dir, folder, flags, Mode::empty(), resolve)?.into()
            }
            other => other?.into(),
        };
    }
    Ok(NoteFile { dir, name: name.to_owned() })
}

impl NoteFile {
    /// Returns the note's text if it exists, or a placeholder with its hash if it is too long or not UTF-8.
    fn read(&self) -> io::Result<Option<String>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.dir, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        let mut bytes = Vec::new();
        (&file).take(MAX_TEXT_LEN as u64 + 1).read_to_end(&mut bytes)?;
        Ok(Some(match String::from_utf8(bytes) {
            Ok(text) if text.len() <= MAX_TEXT_LEN => text,
            other => {
                let bytes = other.map_or_else(std::string::FromUtf8Error::into_bytes, String::into_bytes);
                hash_placeholder(&file, &bytes)?
            }
        }))
    }

    /// Replaces the note atomically.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let temporary = format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let written = (|| {
            let mut file = File::from(openat(&self.dir, &temporary, flags, Mode::from_raw_mode(0o600))?);
            file.write_all(bytes)?;
            sync(&file)?;
            renameat(&self.dir, &temporary, &self.dir, &self.name)?;
            sync(&self.dir)
        })();
        if written.is_err() {
            let _ = unlinkat(&self.dir, &temporary, AtFlags::empty());
        }
        written
    }

    fn remove(&self) -> io::Result<()> {
        unlinkat(&self.dir, &self.name, AtFlags::empty())?;
        sync(&self.dir)
    }
}

/// Returns the placeholder for a note that is too long to be recorded. `read` is the part read already.
fn hash_placeholder(mut file: &File, read: &[u8]) -> io::Result<String> {
    let (mut hash, mut piece) = (Sha256::new_with_prefix(read), [0; 64 << 10]);
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        hash.update(&piece[..length]);
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("[{} bytes, sha256 {hash}]", file.metadata()?.len()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_of_notes() {
        for good in ["a.md", "plans/next week.md", "a/b/c/d/e.md", "ä.md"] {
            assert_eq!(check_note_path(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            "./a",
            ".hidden",
            "a/.git/x",
            "a\nb",
            "a\0b",
            "1/2/3/4/5/6",
        ] {
            assert!(check_note_path(bad).is_err(), "{bad}");
        }
        assert!(check_note_path(&"x".repeat(201)).is_err());
    }

    #[test]
    fn links_lead_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let (docs, outside) = (dir.path().join("docs"), dir.path().join("outside"));
        fs::create_dir(&docs).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a.md"), "theirs").unwrap();
        symlink(&outside, docs.join("folder")).unwrap();
        symlink(outside.join("a.md"), docs.join("a.md")).unwrap();
        assert!(open_note(&docs, "folder/a.md", true).is_err());
        let note = open_note(&docs, "a.md", true).unwrap();
        assert!(note.read().is_err(), "what is behind a link is not read");
        note.write(b"mine").unwrap();
        assert_eq!(fs::read_to_string(outside.join("a.md")).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(docs.join("a.md")).unwrap(), "mine");
        assert!(!docs.join("a.md").is_symlink());
        assert!(open_note(dir.path(), "docs/folder/x.md", true).is_err());
        fs::rename(&docs, dir.path().join("moved")).unwrap();
        symlink(&outside, &docs).unwrap();
        assert!(open_note(&docs, "a.md", true).is_err(), "docs/ itself is no link");
    }

    #[test]
    fn notes_are_made_replaced_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let note = open_note(dir.path(), "a/b/c.md", true).unwrap();
        assert_eq!(note.read().unwrap(), None);
        note.write(b"one").unwrap();
        assert_eq!(note.read().unwrap().as_deref(), Some("one"));
        fs::write(dir.path().join("a/b/c.md"), [0xFF; 10]).unwrap();
        assert!(note.read().unwrap().unwrap().starts_with("[10 bytes, sha256 "));
        note.remove().unwrap();
        assert_eq!(fs::read_dir(dir.path().join("a/b")).unwrap().count(), 0);
        assert!(open_note(dir.path(), "x/y.md", false).is_err(), "nothing is made for what is removed");
    }
}
