//! The vectors of many texts: on disk with a byte for each dimension, in memory with a bit.

use std::collections::HashSet;
use std::path::Path;

use chorus_base::sync::{Mutex, RwLock};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::EmbeddingError;
use crate::quantize::{Quantized, signs_of};
use crate::signs::{Place, Signs};

/// Version of the file, and of what the vectors are made of. One of another version is made again.
const FORMAT: i64 = 3;

/// Bytes of the file that searches read where the system has them in memory, without a copy.
const MAPPED_BYTES: i64 = 2 << 30;

/// A text that is close to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    pub key: u64,
    /// The cosine of the angle between the vectors, of the closest part of the text.
    pub similarity: f32,
}

/// Vectors by key, in a file. A key may have several, for the parts of a long text.
pub struct VectorStore {
    dimensions: usize,
    /// Reads and writes; searches have their own, so that they do not wait for writes.
    writing: Mutex<Connection>,
    reading: Mutex<Connection>,
    signs: RwLock<Signs>,
}

impl std::fmt::Debug for VectorStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VectorStore").field("dimensions", &self.dimensions).finish_non_exhaustive()
    }
}

impl VectorStore {
    /// Opens the store in the file `path`. If it is missing, cannot be read, or is of another version or number of dimensions, an empty one takes
    /// its place. Reads the signs of all vectors. Blocks.
    ///
    /// # Errors
    /// Fails if no new one can be made.
    pub fn open(path: &Path, dimensions: usize) -> Result<Self, EmbeddingError> {
        Self::open_existing(path, dimensions).or_else(|error| {
            if !is_beyond_repair(&error) {
                return Err(error);
            }
            for suffix in ["", "-wal", "-shm"] {
                let mut name = path.as_os_str().to_owned();
                name.push(suffix);
                match std::fs::remove_file(&name) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                    _ => {}
                }
            }
            Self::open_existing(path, dimensions)
        })
    }

    fn open_existing(path: &Path, dimensions: usize) -> Result<Self, EmbeddingError> {
        let writing = connect(path)?;
        writing.execute_batch(
            "CREATE TABLE IF NOT EXISTS vectors (
                id INTEGER PRIMARY KEY, key INTEGER NOT NULL, scale REAL NOT NULL, codes BLOB NOT NULL
            );
            CREATE INDEX IF NOT EXISTS vectors_by_key ON vectors (key);
            CREATE TABLE IF NOT EXISTS form (format INTEGER NOT NULL, dimensions INTEGER NOT NULL);",
        )?;
        let form = (FORMAT, dimensions);
        let known = writing
            .query_row("SELECT format, dimensions FROM form", [], |row| Ok((row.get(0)?, row.get::<_, usize>(1)?)))
            .optional()?;
        match known {
            None => drop(writing.execute("INSERT INTO form VALUES (?1, ?2)", form)?),
            Some(known) if known == form => {}
            Some(_) => return Err(EmbeddingError::Output("the store has another form".into())),
        }
        // A crash may have come between a removal and this.
        truncate_log(&writing)?;
        let signs = read_signs(&writing, dimensions)?;
        let reading = connect(path)?;
        reading.pragma_update(None, "mmap_size", MAPPED_BYTES)?;
        let reading = Mutex::new(reading);
        Ok(Self { dimensions, writing: Mutex::new(writing), reading, signs: RwLock::new(signs) })
    }

    /// Number of dimensions of its vectors.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Number of vectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.signs.read().len()
    }

    /// Returns true if it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys of all texts.
    #[must_use]
    pub fn keys(&self) -> HashSet<u64> {
        self.signs.read().keys().collect()
    }

    /// Returns true if a text has vectors.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn contains(&self, key: u64) -> Result<bool, EmbeddingError> {
        let reading = self.reading.lock();
        Ok(reading.prepare_cached("SELECT 1 FROM vectors WHERE key = ?1 LIMIT 1")?.exists([to_row(key)])?)
    }

    /// Adds texts with the vectors of their parts, in place of any that they had. Durable when it returns, all or none.
    ///
    /// # Errors
    /// Fails if they cannot be written, or have other dimensions.
    pub fn insert(&self, texts: &[(u64, Vec<Vec<f32>>)]) -> Result<(), EmbeddingError> {
        if texts.iter().flat_map(|(_, parts)| parts).any(|vector| vector.len() != self.dimensions) {
            return Err(EmbeddingError::Output(format!("a vector does not have {} dimensions", self.dimensions)));
        }
        let mut writing = self.writing.lock();
        let transaction = writing.transaction()?;
        let mut added = Vec::new();
        {
            let mut delete = transaction.prepare_cached("DELETE FROM vectors WHERE key = ?1")?;
            let mut insert =
                transaction.prepare_cached("INSERT INTO vectors (key, scale, codes) VALUES (?1, ?2, ?3)")?;
            for (key, parts) in texts {
                delete.execute([to_row(*key)])?;
                for vector in parts {
                    let Quantized { codes, scale } = Quantized::of(vector);
                    let bytes: Vec<u8> = codes.iter().map(|code| code.cast_unsigned()).collect();
                    let row = insert.insert(params![to_row(*key), scale, bytes])?;
                    added.push((Place { key: *key, row }, signs_of(codes.iter().map(|code| *code > 0))));
                }
            }
        }
        transaction.commit()?;
        let replaced: HashSet<u64> = texts.iter().map(|(key, _)| *key).collect();
        let mut signs = self.signs.write();
        if signs.keys().any(|key| replaced.contains(&key)) {
            signs.retain(|key| !replaced.contains(&key));
        }
        added.iter().for_each(|(place, words)| signs.push(*place, words));
        Ok(())
    }

    /// Removes all texts whose key is not to be kept, and overwrites their vectors. Returns how many texts were removed.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn retain(&self, keep: impl Fn(u64) -> bool) -> Result<usize, EmbeddingError> {
        let gone: HashSet<u64> = self.keys().into_iter().filter(|key| !keep(*key)).collect();
        if gone.is_empty() {
            return Ok(0);
        }
        let mut writing = self.writing.lock();
        let transaction = writing.transaction()?;
        {
            let mut delete = transaction.prepare_cached("DELETE FROM vectors WHERE key = ?1")?;
            for key in &gone {
                delete.execute([to_row(*key)])?;
            }
        }
        transaction.commit()?;
        self.signs.write().retain(|key| !gone.contains(&key));
        truncate_log(&writing)?;
        Ok(gone.len())
    }

    /// Returns the texts that are closest to a vector of length 1, the closest first.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn nearest(&self, vector: &[f32], limit: usize) -> Result<Vec<Match>, EmbeddingError> {
        let mut close = {
            let signs = self.signs.read();
            if signs.len() == 0 || vector.len() != self.dimensions {
                return Ok(Vec::new());
            }
            signs.nearest(vector, limit)
        };
        // In the order of the file, and in one transaction, so that it is locked once.
        close.sort_unstable_by_key(|place| place.row);
        let mut reading = self.reading.lock();
        let transaction = reading.transaction()?;
        let mut select = transaction.prepare_cached("SELECT scale, codes FROM vectors WHERE id = ?1 AND key = ?2")?;
        let mut found = Vec::with_capacity(close.len());
        for Place { key, row } in close {
            let similarity =
                select.query_row(params![row, to_row(key)], |row| similarity_of(row, 0, vector)).optional()?;
            // Removed since.
            found.extend(similarity.map(|similarity| Match { key, similarity }));
        }
        found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.key.cmp(&b.key)));
        let mut seen = HashSet::new();
        found.retain(|found| seen.insert(found.key));
        found.truncate(limit);
        Ok(found)
    }

    /// Returns the similarity of each of these texts to a vector; `None` for those that are not here.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn similarities(&self, vector: &[f32], keys: &[u64]) -> Result<Vec<Option<f32>>, EmbeddingError> {
        let mut reading = self.reading.lock();
        let transaction = reading.transaction()?;
        let mut select = transaction.prepare_cached("SELECT scale, codes FROM vectors WHERE key = ?1")?;
        let mut of_key = |key: &u64| -> Result<Option<f32>, EmbeddingError> {
            let mut rows = select.query([to_row(*key)])?;
            let mut best: Option<f32> = None;
            while let Some(row) = rows.next()? {
                let similarity = similarity_of(row, 0, vector)?;
                best = Some(best.map_or(similarity, |best| best.max(similarity)));
            }
            Ok(best)
        };
        keys.iter().map(&mut of_key).collect()
    }
}

/// Returns true if the file is none of a store with these dimensions, rather than that it cannot be read now.
fn is_beyond_repair(error: &EmbeddingError) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error {
        EmbeddingError::Store(error) => match error.sqlite_error_code() {
            Some(code) => matches!(code, DatabaseCorrupt | NotADatabase),
            // A column has another type.
            None => true,
        },
        EmbeddingError::Output(_) => true,
        EmbeddingError::Io(_) | EmbeddingError::Model { .. } => false,
    }
}

/// Overwrites the log, which has the pages of before.
fn truncate_log(connection: &Connection) -> Result<(), EmbeddingError> {
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    match is_busy {
        true => Err(EmbeddingError::Io(std::io::Error::other("the log of vectors is in use"))),
        false => Ok(()),
    }
}

fn read_signs(connection: &Connection, dimensions: usize) -> Result<Signs, EmbeddingError> {
    let mut signs = Signs::new(dimensions);
    let mut rows = connection.prepare("SELECT id, key, codes FROM vectors")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let codes = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        if codes.len() != dimensions {
            return Err(EmbeddingError::Output("a vector has another length".into()));
        }
        let words = signs_of(codes.iter().map(|code| code.cast_signed() > 0));
        signs.push(Place { row: row.get(0)?, key: to_key(row.get(1)?) }, &words);
    }
    Ok(signs)
}

fn similarity_of(row: &rusqlite::Row<'_>, column: usize, vector: &[f32]) -> rusqlite::Result<f32> {
    let scale: f32 = row.get(column)?;
    let bytes = row.get_ref(column + 1)?.as_blob()?;
    Ok(Quantized::similarity(bytes, scale, vector))
}

fn connect(path: &Path) -> Result<Connection, EmbeddingError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;")?;
    Ok(connection)
}

fn to_row(key: u64) -> i64 {
    key.cast_signed()
}

fn to_key(row: i64) -> u64 {
    row.cast_unsigned()
}
