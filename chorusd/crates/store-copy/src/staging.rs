//! The directory in the home where databases in SQLite are made before they replace those of the home, and the id of a copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{create_private, remove_dir, sync_dir, write_private};
use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE};
use uuid::Uuid;

/// The directory. It exists while a copy is not finished.
pub const STAGING_DIR: &str = ".store-copy";

/// File there with the id of a copy to PostgreSQL, which the marker in the database has, too.
const ID_FILE: &str = "copy.id";

/// Start of the names of directories with the databases of a home from before a copy.
const BEFORE_PREFIX: &str = "before-copy-";

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::io(format_args!("cannot change {}", path.display()), error)
}

/// Returns the id of the copy of this home that is not finished; `None` if there is none.
pub(crate) fn find_copy_id(home: &Path) -> Result<Option<Uuid>> {
    let path = home.join(STAGING_DIR).join(ID_FILE);
    match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map(Some).map_err(|_| {
            Error::invalid(format!("{} is not an id", path.display())).hint("delete it, and use an empty database")
        }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed(&path, &e)),
    }
}

/// Returns the id of the copy of this home that is not finished, or makes one.
pub(crate) fn copy_id(home: &Path) -> Result<Uuid> {
    if let Some(id) = find_copy_id(home)? {
        return Ok(id);
    }
    let (id, dir) = (Uuid::new_v4(), home.join(STAGING_DIR));
    let path = dir.join(ID_FILE);
    create_private(&dir).map_err(|e| failed(&dir, &e))?;
    write_private(&path, id.to_string().as_bytes()).map_err(|e| failed(&path, &e))?;
    sync_dir(&dir).map_err(|e| failed(&dir, &e))?;
    Ok(id)
}

/// Deletes the [`STAGING_DIR`] if only a part of the databases is in it, because the last attempt ended while it moved them.
///
/// # Errors
/// Fails if it cannot be deleted.
pub fn prepare_staging(home: &Path) -> Result<()> {
    let db = home.join(STAGING_DIR).join(DB_DIR);
    if [JOURNAL_FILE, CATALOG_FILE].iter().all(|name| db.join(name).is_file()) {
        return Ok(());
    }
    remove_staging(home)
}

/// Replaces the databases of the home by those in the [`STAGING_DIR`], which no one has open. The former ones are moved to a
/// directory below `db`, which is returned; `None` if there were none.
///
/// # Errors
/// Fails if a file cannot be moved. Then a copy has to be made again.
pub fn move_into_place(home: &Path, now: &str) -> Result<Option<PathBuf>> {
    let (db, staged) = (home.join(DB_DIR), home.join(STAGING_DIR).join(DB_DIR));
    let before = db.join(format!("{BEFORE_PREFIX}{now}"));
    let former = database_files(&db)?;
    if !former.is_empty() {
        create_private(&before).map_err(|e| failed(&before, &e))?;
    }
    for name in &former {
        fs::rename(db.join(name), before.join(name)).map_err(|e| failed(&db.join(name), &e))?;
    }
    // The journal first: without it, a catalog would be proof that one is missing.
    for name in [JOURNAL_FILE, CATALOG_FILE] {
        fs::rename(staged.join(name), db.join(name)).map_err(|e| failed(&staged.join(name), &e))?;
    }
    sync_dir(&db).map_err(|e| failed(&db, &e))?;
    Ok((!former.is_empty()).then_some(before))
}

/// Names of the files that belong to the two databases: their logs, copies and positions, too.
fn database_files(db: &Path) -> Result<Vec<String>> {
    let stems = [JOURNAL_FILE, CATALOG_FILE].map(|name| name.trim_end_matches("db"));
    let mut names = Vec::new();
    for entry in fs::read_dir(db).map_err(|e| failed(db, &e))? {
        let entry = entry.map_err(|e| failed(db, &e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if stems.iter().any(|stem| name.starts_with(stem)) && entry.path().is_file() {
            names.push(name);
        }
    }
    Ok(names)
}

/// Deletes the [`STAGING_DIR`].
///
/// # Errors
/// Fails if it cannot be deleted.
pub fn remove_staging(home: &Path) -> Result<()> {
    let dir = home.join(STAGING_DIR);
    match remove_dir(&dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(&dir, &e)),
        _ => Ok(()),
    }
}
