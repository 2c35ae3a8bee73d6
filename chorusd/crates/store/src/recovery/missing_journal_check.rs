//! Refuses to create an empty journal in a home that had one: somebody moved or removed it and may want to put it back.

use std::fs;
use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;

use super::header_and_wal::DatabaseFiles;
use super::incident::list_incidents;
use super::position_file::POSITION_FILE as NEWEST;
use super::wal::Wal;
use crate::{CATALOG_FILE, DB_DIR, JOURNAL_FILE};

/// Files of `db/` that are created after the journal, so that a first start that was interrupted leaves none of them
/// without it.
const FILES_AFTER_JOURNAL: [&str; 4] = [CATALOG_FILE, "chorus.db.bak", NEWEST, "home.id"];

/// Refuses a home whose journal is missing.
pub(crate) fn refuse_missing_journal(home: &Path) -> Result<()> {
    let Some(evidence) = evidence_of_journal(home)? else { return Ok(()) };
    let path = home.join(DB_DIR).join(JOURNAL_FILE);
    // The journal was moved away on purpose.
    if list_incidents(&home.join(DB_DIR)).iter().any(|found| found.facts.begins_anew) {
        return Ok(());
    }
    let what = format!("{} is missing, but the home is not new: it has {evidence}", path.display());
    let lost = if home.join(DB_DIR).join(CATALOG_FILE).exists() {
        "without the live conversations (everything else is kept)"
    } else {
        "without the live conversations, memory, settings, usage and the audit log (agents and sessions are kept)"
    };
    Err(Error::new(ErrorKind::Denied, what).hint(format!(
        "restore {DB_DIR}/, or restore a backup into an empty home; otherwise `chorusctl doctor --salvage` \
         starts a new journal {lost}"
    )))
}

/// Names a file that proves that `home` had a journal. Returns `None` if it has one or a log from which one can be
/// recovered, or if it never had one.
pub(crate) fn evidence_of_journal(home: &Path) -> Result<Option<String>> {
    let db = home.join(DB_DIR);
    let path = db.join(JOURNAL_FILE);
    if path.metadata().is_ok_and(|of| of.len() > 0) {
        return Ok(None);
    }
    let files = DatabaseFiles::read(&path, None)?;
    if Wal::parse(&files.log, None).is_some_and(|log| log.has_commits()) {
        return Ok(None);
    }
    if let Some(name) = FILES_AFTER_JOURNAL.iter().find(|name| db.join(name).exists()) {
        return Ok(Some(format!("{DB_DIR}/{name}")));
    }
    let agents = fs::read_dir(home.join("agents")).into_iter().flatten().flatten();
    let mut names = agents.filter(|agent| agent.path().join("agent.json").is_file()).map(|agent| agent.file_name());
    Ok(names.next().map(|name| format!("agents/{}", name.to_string_lossy())))
}
