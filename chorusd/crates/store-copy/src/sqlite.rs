//! The databases of a home in SQLite, as the source or the target of a copy.

use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params, params_from_iter};

use crate::sqlite_records;
use crate::stream::{RowStream, channel};
use crate::table::{File, Form, Table};
use crate::tables::sessions::{ID, header_of};
use crate::value::{Row, Value};

/// The two databases. Their schema is that of this program.
#[derive(Debug)]
pub(crate) struct SqliteSide {
    db: PathBuf,
    journal: Connection,
    catalog: Connection,
}

pub(crate) fn failed(error: &rusqlite::Error) -> Error {
    Error::new(ErrorKind::StorageFailed, format!("SQLite: {error}"))
}

/// Opens one of the databases for reading.
fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(|e| failed(&e))
}

fn open_writer(path: &Path) -> Result<Connection> {
    let open = || {
        let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // A copy that loses power is made again. The end of the copy syncs everything.
        conn.pragma_update(None, "synchronous", "NORMAL")?;
        conn.pragma_update(None, "foreign_keys", "ON")?;
        conn.set_prepared_statement_cache_capacity(64);
        Ok(conn)
    };
    open().map_err(|e: rusqlite::Error| failed(&e))
}

impl SqliteSide {
    /// Opens the databases below `home`, which [`chorus_store::Store::open`] has created.
    pub(crate) fn open(home: &Path) -> Result<Self> {
        let db = home.join(DB_DIR);
        let (journal, catalog) = (open_writer(&db.join(JOURNAL_FILE))?, open_writer(&db.join(CATALOG_FILE))?);
        Ok(Self { db, journal, catalog })
    }

    fn path_of(&self, file: File) -> PathBuf {
        self.db.join(match file {
            File::Journal => JOURNAL_FILE,
            File::Catalog => CATALOG_FILE,
        })
    }

    fn of(&self, table: &Table) -> &Connection {
        match table.file {
            File::Journal => &self.journal,
            File::Catalog => &self.catalog,
        }
    }

    pub(crate) fn count(&self, table: &Table) -> Result<u64> {
        let sql = format!("SELECT count(*) FROM {} WHERE {}", table.sqlite, table.sqlite_where);
        self.of(table).query_row(&sql, [], |row| row.get(0)).map_err(|e| failed(&e))
    }

    /// Reads a table in another thread. `is_unfinished`: an attempt to copy may have ended in the middle of it.
    pub(crate) fn stream(&self, table: &'static Table, is_unfinished: bool) -> Result<RowStream> {
        let (mut rows, stream) = channel();
        let conn = open_reader(&self.path_of(table.file))?;
        let read = move || {
            let outcome = match table.form {
                Form::Records => sqlite_records::read_all(&conn, is_unfinished, &mut rows),
                _ => read_table(&conn, table, |row| rows.send_blocking(row).is_ok()),
            };
            rows.finish_blocking(outcome);
        };
        let thread = std::thread::Builder::new().name("store-copy".into()).spawn(read);
        thread.map_err(|e| Error::io("cannot start a thread", &e))?;
        Ok(stream)
    }

    /// Deletes all rows of a table.
    pub(crate) fn clear(&self, table: &Table) -> Result<()> {
        let conn = self.of(table);
        let clear = match table.form {
            Form::DiscordState => conn.execute_batch(
                "DELETE FROM settings WHERE key IN ('discord.events', 'discord.starts');
                 UPDATE counters SET value = 0 WHERE name IN ('notices_dropped', 'notices_dropped_at')",
            ),
            Form::Records => conn.execute_batch("DELETE FROM records; UPDATE contexts SET last_record = NULL"),
            Form::Plain | Form::Sessions => {
                conn.execute_batch(&format!("DELETE FROM {} WHERE {}", table.sqlite, table.sqlite_where))
            }
        };
        clear.map_err(|e| failed(&e))
    }

    /// Inserts rows in one transaction.
    pub(crate) fn insert(&self, table: &Table, rows: &[Row]) -> Result<()> {
        let conn = self.of(table);
        let transaction = conn.unchecked_transaction().map_err(|e| failed(&e))?;
        match table.form {
            Form::Records => sqlite_records::insert(&transaction, rows)?,
            Form::DiscordState => rows.iter().try_for_each(|row| insert_discord_state(&transaction, row))?,
            Form::Sessions => rows.iter().try_for_each(|row| insert_session(&transaction, table, row))?,
            Form::Plain => rows.iter().try_for_each(|row| insert_row(&transaction, table, row))?,
        }
        transaction.commit().map_err(|e| failed(&e))
    }

    /// Returns whether the records that are there can be continued, if the source has `total` of them.
    pub(crate) fn can_continue_records(&self, total: u64) -> Result<bool> {
        sqlite_records::can_continue(&self.journal, total)
    }

    /// Prepares an empty table of records for `total` rows.
    pub(crate) fn begin_records(&self, total: u64) -> Result<()> {
        sqlite_records::begin(&self.journal, total)
    }

    /// Records the stamp of the file of a session.
    pub(crate) fn set_file_stamp(&self, session: &[u8], stamp: &str) -> Result<()> {
        let sql = "UPDATE sessions SET file_stamp = ?2 WHERE id = ?1 AND file_stamp <> ?2";
        self.catalog.execute(sql, params![session, stamp]).map(drop).map_err(|e| failed(&e))
    }

    /// Records the newest row of the audit log, which the journal has to know.
    pub(crate) fn finish(&self) -> Result<()> {
        let newest = "SELECT id || ' ' || lower(hex(hash)) FROM audit_log ORDER BY id DESC LIMIT 1";
        let finish = || {
            let mut newest = self.catalog.prepare(newest)?;
            let newest = newest.query_map([], |row| row.get::<_, String>(0))?.next().transpose()?;
            self.journal.execute("DELETE FROM marks WHERE name = 'audit_head'", [])?;
            if let Some(newest) = newest {
                self.journal.execute("INSERT INTO marks (name, value) VALUES ('audit_head', ?1)", [newest])?;
            }
            Ok(())
        };
        finish().map_err(|e: rusqlite::Error| failed(&e))
    }

    /// Removes what only the copy needs, and makes everything durable in the two files, without their logs.
    pub(crate) fn seal(&self) -> Result<()> {
        sqlite_records::finish(&self.journal)?;
        let seal = || {
            for conn in [&self.journal, &self.catalog] {
                conn.pragma_update(None, "synchronous", "FULL")?;
                conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            }
            Ok(())
        };
        seal().map_err(|e: rusqlite::Error| failed(&e))
    }
}

/// Passes each row to `take` until that returns false.
fn read_table(conn: &Connection, table: &Table, mut take: impl FnMut(Row) -> bool) -> Result<()> {
    let columns: Vec<&str> = table.columns.iter().map(|column| column.read_sqlite).collect();
    let order: Vec<String> = (1..=table.key).map(|column| column.to_string()).collect();
    let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
    let sql = format!("SELECT {} FROM {} WHERE {}{order}", columns.join(", "), table.sqlite, table.sqlite_where);
    let mut statement = conn.prepare(&sql).map_err(|e| failed(&e))?;
    let mut rows = statement.query([]).map_err(|e| failed(&e))?;
    while let Some(row) = rows.next().map_err(|e| failed(&e))? {
        let mut values = Row::with_capacity(table.columns.len());
        for (place, column) in table.columns.iter().enumerate() {
            let value = row.get_ref(place).map_err(|e| failed(&e))?;
            let value = read_value(value).ok_or_else(|| {
                let name = table.describe(&values);
                Error::new(ErrorKind::StorageFailed, format!("{name}: {} is not valid UTF-8", column.sqlite))
            })?;
            values.push(value);
        }
        if !take(values) {
            return Ok(());
        }
    }
    Ok(())
}

fn read_value(value: ValueRef<'_>) -> Option<Value> {
    Some(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(str::from_utf8(text).ok()?.to_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_owned()),
    })
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Unknown | Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Texts(_) => return Err(rusqlite::Error::InvalidQuery),
        }))
    }
}

fn insert_row(conn: &Connection, table: &Table, row: &Row) -> Result<()> {
    let columns: Vec<&str> = table.columns.iter().map(|column| column.sqlite).collect();
    let marks = vec!["?"; columns.len()].join(", ");
    let sql = format!("INSERT INTO {} ({}) VALUES ({marks})", table.sqlite, columns.join(", "));
    let insert = || conn.prepare_cached(&sql)?.execute(params_from_iter(row));
    insert().map(drop).map_err(|e| failed(&e))
}

fn insert_session(conn: &Connection, table: &Table, row: &Row) -> Result<()> {
    insert_row(conn, table, row)?;
    let header = header_of(row)?;
    let source = header.source.as_ref();
    let add = || {
        if let Some(source) = source {
            conn.prepare_cached(
                "UPDATE sessions SET source_program = ?2, source_conversation = ?3, project = ?4 WHERE id = ?1",
            )?
            .execute(params![row[ID], source.program, source.conversation, source.project])?;
        }
        let mut tag = conn.prepare_cached("INSERT OR IGNORE INTO session_tags (id, tag) VALUES (?1, ?2)")?;
        for name in &header.tags {
            tag.execute(params![row[ID], name])?;
        }
        Ok(())
    };
    add().map_err(|e: rusqlite::Error| failed(&e))
}

fn insert_discord_state(conn: &Connection, row: &Row) -> Result<()> {
    let add = || {
        for (key, value) in [("discord.events", &row[0]), ("discord.starts", &row[1])] {
            // Settings are texts.
            conn.execute(
                "INSERT INTO settings (key, value) SELECT ?1, CAST(?2 AS TEXT) WHERE ?2 IS NOT NULL",
                params![key, value],
            )?;
        }
        for (name, value) in [("notices_dropped", &row[2]), ("notices_dropped_at", &row[3])] {
            conn.execute("UPDATE counters SET value = coalesce(?2, 0) WHERE name = ?1", params![name, value])?;
        }
        Ok(())
    };
    add().map_err(|e: rusqlite::Error| failed(&e))
}
