//! Verifies a backup: every byte against the manifest, the databases page by page, and sessions against the catalog.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_base::hex;
use chorus_proto::methods::backup::Verified;
use chorus_session::{FormatError, file, gzip};
use chorus_store::session_form::{SessionForm, parse_file_name};
use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE, integrity};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::manifest::manifest_path;
use super::reader::{BackupSource, FileReceiver, OnReadProgress};
use super::sink::copy_hashed;

/// Verifies the backup at `path`; `-` is an archive on standard input. Blocks. Fails only if the manifest cannot be
/// read; all other damage is in the result.
pub fn verify(path: &Path, progress: OnReadProgress<'_>) -> Result<Verified> {
    let mut check = BackupVerifier { temp_dir: None, databases: HashMap::new(), sessions: HashMap::new() };
    let (manifest, mut problems) = BackupSource::open(path)?.read(&mut check, progress)?;
    let mut warnings = Vec::new();
    for database in [JOURNAL_FILE, CATALOG_FILE] {
        let found = match check.databases.get(database) {
            Some(at) => integrity::find_problems_in_copy(at),
            None => vec!["missing".to_owned()],
        };
        problems.extend(found.into_iter().map(|what| format!("{DB_DIR}/{database}: {what}")));
    }
    if problems.is_empty() {
        warnings = check.compare_with_catalog()?;
    }
    problems.dedup();
    let ((agents, sessions), (files, bytes)) = (manifest.agent_totals(), manifest.file_totals());
    let ok = problems.is_empty();
    Ok(Verified { ok, created_at: manifest.created_at, agents, sessions, files, bytes, problems, warnings })
}

struct BackupVerifier {
    /// A temporary directory for the databases of an archive.
    temp_dir: Option<TempDir>,
    databases: HashMap<String, PathBuf>,
    /// Session files: the hash of their messages, or why they cannot be read.
    sessions: HashMap<String, std::result::Result<String, String>>,
}

impl BackupVerifier {
    fn receive_database(&mut self, database: &str, source: &mut dyn Read, at: Option<&Path>) -> io::Result<String> {
        if let Some(at) = at {
            self.databases.insert(database.to_owned(), at.to_owned());
            return copy_hashed(source, |_| Ok(()));
        }
        let dir = match &self.temp_dir {
            Some(dir) => dir,
            None => self.temp_dir.insert(tempfile::tempdir()?),
        };
        let place = dir.path().join(database);
        let mut out: File = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&place)?;
        let sha256 = copy_hashed(source, |bytes| out.write_all(bytes))?;
        self.databases.insert(database.to_owned(), place);
        Ok(sha256)
    }

    /// Compares the catalog with the session files, and returns warnings.
    fn compare_with_catalog(&self) -> Result<Vec<String>> {
        let Some(at) = self.databases.get(CATALOG_FILE) else { return Ok(Vec::new()) };
        let mut warnings = Vec::new();
        let known = integrity::list_sessions_in_copy(at).map_err(|e| Error { fatal: false, ..e.into() })?;
        for row in known {
            let path = format!("{}/sessions/{}.json", row.dir, row.session_id);
            match self.sessions.get(&path) {
                None if row.expected => warnings.push(format!("{path}: in the index, but the home had no file")),
                Some(Err(why)) if !row.corrupt => warnings.push(format!("{path}: the file {why}")),
                Some(Ok(sha256)) if !row.corrupt && !row.sha256.is_empty() && *sha256 != row.sha256 => {
                    warnings.push(format!("{path}: its messages were changed after it was saved"));
                }
                _ => {}
            }
        }
        warnings.sort();
        Ok(warnings)
    }
}

impl FileReceiver for BackupVerifier {
    fn receive_file(&mut self, place: &Path, source: &mut dyn Read, at: Option<&Path>) -> io::Result<String> {
        let parts: Vec<&str> = place.iter().map(|part| part.to_str().unwrap_or_default()).collect();
        match parts[..] {
            [DB_DIR, database @ (JOURNAL_FILE | CATALOG_FILE)] => self.receive_database(database, source, at),
            ["agents", _, "sessions", session] if parse_file_name(session).is_some() => {
                let (name, form) = parse_file_name(session).unwrap_or((session, SessionForm::Plain));
                let mut bytes = Vec::new();
                source.read_to_end(&mut bytes)?;
                let sha256 = hex(&Sha256::digest(&bytes));
                let text = match form {
                    SessionForm::Plain => Ok(bytes),
                    SessionForm::Compressed => gzip::read_text(&bytes),
                };
                let text = text.map_err(|e| FormatError::Compression(e.to_string()));
                let read = text.and_then(|text| file::parse(&Bytes::from(text))).map(|file| file.sha256);
                // The plain file counts more than a compressed one.
                let path = manifest_path(&place.with_file_name(format!("{name}.json")));
                match form {
                    SessionForm::Plain => _ = self.sessions.insert(path, read.map_err(|e| e.to_string())),
                    SessionForm::Compressed => {
                        self.sessions.entry(path).or_insert_with(|| read.map_err(|e| e.to_string()));
                    }
                }
                Ok(sha256)
            }
            _ => copy_hashed(source, |_| Ok(())),
        }
    }
}
