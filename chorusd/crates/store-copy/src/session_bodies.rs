//! The messages of saved sessions. They are in files, or in a bucket, and each is read and compared with the hash in its row.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::create_private;
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use chorus_session::stored_message::StoredMessage;
use chorus_session_objects::{BodyRow, NewBody, SessionBodies};
use chorus_store::{session_files, session_form};
use futures_util::{StreamExt as _, stream};
use tokio_postgres::Row as PostgresRow;
use uuid::Uuid;

use crate::postgres::{PostgresSide, failed};
use crate::progress::{Meter, Phase};
use crate::side::Side;
use crate::sqlite::SqliteSide;
use crate::tables;
use crate::tables::sessions::header_of;
use crate::value::{Row, Value};

/// Sessions that are read at a time.
const AT_ONCE: usize = 6;

/// Damaged sessions that an error names.
const MAX_NAMED: usize = 10;

/// The home with the files, and the bucket, if there is one.
#[derive(Debug)]
pub(crate) struct SessionPlaces {
    pub(crate) home: PathBuf,
    pub(crate) bodies: Option<Arc<dyn SessionBodies>>,
}

/// A session with what is known of its messages.
#[derive(Debug)]
struct Session {
    row: Row,
    id: Uuid,
    agent: Uuid,
    name: String,
    path: Option<PathBuf>,
    sha256: String,
    body: Option<BodyRow>,
    /// Its agent was purged: destroyed, and its files deleted.
    is_purged: bool,
}

/// The result of the work on a session.
enum Outcome {
    Unchanged,
    /// The bucket has it now.
    Stored(BodyRow),
    /// Its file was written, and has this stamp.
    Restored(String),
}

/// Counts of sessions.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SessionCounts {
    pub(crate) verified: u64,
    /// Those whose messages were written to the bucket.
    pub(crate) stored: u64,
    /// Those whose files were written from it.
    pub(crate) restored: u64,
}

/// Verifies all sessions. Stores those that a bucket is to have, or restores the files of those that it has.
///
/// # Errors
/// `corrupt_session` with the names of the damaged ones; the errors of the bucket and of the databases.
pub(crate) async fn verify_all(
    source: &Side,
    target: &Side,
    places: &SessionPlaces,
    meter: &mut Meter<'_>,
) -> Result<SessionCounts> {
    let table = tables::all().find(|table| table.name == "sessions");
    let table = table.ok_or_else(|| Error::internal("no table of sessions"))?;
    meter.start(Phase::Sessions, source.count(table).await?);
    let dirs = agent_dirs(source).await?;
    let postgres = match (source, target) {
        (Side::Postgres(side), _) | (_, Side::Postgres(side)) => side,
        _ => return Err(Error::internal("a copy between two databases of SQLite")),
    };
    let mut bodies = read_bodies(postgres).await?;
    let mut rows = source.stream(table).await?;
    let (mut counts, mut damaged) = (SessionCounts::default(), Vec::new());
    loop {
        let mut some = Vec::new();
        while some.len() < AT_ONCE * 8
            && let Some(row) = rows.next().await?
        {
            some.push(Session::new(row, places, &dirs, &mut bodies)?);
        }
        if some.is_empty() {
            break;
        }
        let running = some.into_iter().map(|session| async {
            let outcome = match (target, &places.bodies) {
                (Side::Postgres(_), Some(bodies)) => session.store(&**bodies).await,
                (Side::Sqlite(_), Some(bodies)) if session.body.is_some() => session.restore(&**bodies).await,
                _ => session.verify_file().await.map(|_| Outcome::Unchanged),
            };
            (session, outcome)
        });
        let mut running = stream::iter(running).buffer_unordered(AT_ONCE);
        while let Some((session, outcome)) = running.next().await {
            meter.add(1);
            match outcome {
                Ok(outcome) => session.record(outcome, target, &mut counts).await?,
                // Its agent was purged, with its files.
                Err(failure) if failure.kind == ErrorKind::SessionNotFound && session.is_purged => {}
                Err(failure) if is_damage(&failure) => damaged.push((session.name, failure.message)),
                Err(failure) => return Err(failure),
            }
        }
    }
    if damaged.is_empty() { Ok(counts) } else { Err(damaged_error(&damaged)) }
}

fn is_damage(failure: &Error) -> bool {
    matches!(failure.kind, ErrorKind::CorruptSession | ErrorKind::SessionNotFound)
}

fn damaged_error(damaged: &[(String, String)]) -> Error {
    let named = damaged.iter().take(MAX_NAMED).map(|(name, why)| format!("{name} ({why})"));
    let mut named = named.collect::<Vec<_>>().join(", ");
    if damaged.len() > MAX_NAMED {
        named.push_str(&format!(" and {} more", damaged.len() - MAX_NAMED));
    }
    Error::new(ErrorKind::CorruptSession, format!("damaged sessions: {named}"))
        .hint("the configuration is unchanged; repair, restore or delete them, then run the command again")
}

/// The directories of all agents below the home, and whether the agent was destroyed.
async fn agent_dirs(source: &Side) -> Result<HashMap<Uuid, (String, bool)>> {
    let table = tables::all().find(|table| table.name == "agents");
    let mut rows = source.stream(table.ok_or_else(|| Error::internal("no table of agents"))?).await?;
    let mut dirs = HashMap::new();
    while let Some(row) = rows.next().await? {
        if let (Some(id), Some(dir)) = (id_in(&row, 0), row[5].as_text()) {
            dirs.insert(id, (dir.to_owned(), row[2].as_text() == Some("destroyed")));
        }
    }
    Ok(dirs)
}

fn id_in(row: &[Value], column: usize) -> Option<Uuid> {
    row.get(column).and_then(Value::as_bytes).and_then(|bytes| Uuid::from_slice(bytes).ok())
}

/// The bodies that rows name.
async fn read_bodies(side: &PostgresSide) -> Result<HashMap<Uuid, BodyRow>> {
    let sql = "SELECT id, body_key, body_count, body_bytes, object_bytes, body_sha256, index_sha256 FROM sessions
         WHERE body_key IS NOT NULL";
    let rows = side.client.query_typed(sql, &[]).await.map_err(|e| failed(&e))?;
    let number = |row: &PostgresRow, column: usize| row.get::<_, i64>(column).cast_unsigned();
    let bodies = rows.iter().map(|row| {
        let body = BodyRow {
            key: row.get(1),
            messages: number(row, 2),
            body_bytes: number(row, 3),
            object_bytes: number(row, 4),
            sha256: row.get(5),
            index_sha256: row.get(6),
        };
        (row.get(0), body)
    });
    Ok(bodies.collect())
}

impl Session {
    fn new(
        row: Row,
        places: &SessionPlaces,
        dirs: &HashMap<Uuid, (String, bool)>,
        bodies: &mut HashMap<Uuid, BodyRow>,
    ) -> Result<Self> {
        let text = |column: usize| row.get(column).and_then(Value::as_text).unwrap_or_default().to_owned();
        let missing = || Error::internal("a session without its ids");
        let (id, agent) = (id_in(&row, 1).ok_or_else(missing)?, id_in(&row, 2).ok_or_else(missing)?);
        let (name, sha256) = (text(3), text(7));
        let place = dirs.get(&agent).map(|(dir, is_destroyed)| (places.home.join(dir), *is_destroyed));
        let is_purged = place.as_ref().is_some_and(|(dir, is_destroyed)| *is_destroyed && !dir.exists());
        let path = place.map(|(dir, _)| session_files::path_of(&dir, &name));
        Ok(Self { id, agent, name, path, sha256, body: bodies.remove(&id), is_purged, row })
    }

    fn damaged(&self, why: impl Into<String>) -> Error {
        Error::new(ErrorKind::CorruptSession, why)
    }

    /// Reads the messages in the file.
    async fn verify_file(&self) -> Result<Vec<StoredMessage>> {
        if let Some(why) = self.row[9].as_text() {
            return Err(self.damaged(format!("the file {why}")));
        }
        let path = self.path.clone().ok_or_else(|| self.damaged("its agent is unknown"))?;
        let file = run_blocking(move || session_files::read(&path)).await?.file;
        let file = file.map_err(|e| self.damaged(format!("the file {e}")))?;
        if file.sha256 != self.sha256 {
            return Err(self.damaged("the file has other messages than were saved"));
        }
        Ok(file.messages)
    }

    /// Reads the messages in the bucket.
    async fn verify_body(&self, bodies: &dyn SessionBodies, body: &BodyRow) -> Result<Vec<StoredMessage>> {
        if body.sha256 != self.sha256 {
            return Err(self.damaged("the bucket has other messages than were saved"));
        }
        bodies.read(body.clone()).await
    }

    /// Writes the messages to the bucket, unless they are there, and reads them again.
    async fn store(&self, bodies: &dyn SessionBodies) -> Result<Outcome> {
        if let Some(body) = self.body.as_ref().filter(|body| body.sha256 == self.sha256) {
            match self.verify_body(bodies, body).await {
                Ok(_) => return Ok(Outcome::Unchanged),
                // An earlier attempt had another bucket.
                Err(failure) if matches!(failure.kind, ErrorKind::SessionNotFound | ErrorKind::CorruptSession) => {}
                Err(failure) => return Err(failure),
            }
        }
        let messages = self.verify_file().await?;
        // The first owner of the agent has the epoch 2.
        let written = bodies.write(NewBody { agent: self.agent, session: self.id, epoch: 1, messages }).await?.row;
        self.verify_body(bodies, &written).await?;
        Ok(Outcome::Stored(written))
    }

    /// Verifies the messages in the bucket, and writes the file if it is missing or out of date.
    async fn restore(&self, bodies: &dyn SessionBodies) -> Result<Outcome> {
        let path = self.path.clone().ok_or_else(|| self.damaged("its agent is unknown"))?;
        let stamp = session_form::stamp_of(&path);
        if stamp.as_deref() == self.row[8].as_text() && self.verify_file().await.is_ok() {
            return Ok(Outcome::Unchanged);
        }
        let Some(body) = &self.body else { return Err(self.damaged("the bucket does not have it")) };
        let messages = self.verify_body(bodies, body).await?;
        let (header, sha256) = (header_of(&self.row)?, self.sha256.clone());
        let write = move || {
            let sessions = path.parent().unwrap_or(Path::new("."));
            let agent = sessions.parent().unwrap_or(Path::new("."));
            if !agent.is_dir() {
                let what = format!("the directory {} is missing", agent.display());
                return Err(Error::new(ErrorKind::CorruptSession, what));
            }
            create_private(sessions)
                .map_err(|e| Error::io(format_args!("cannot create {}", sessions.display()), &e))?;
            session_files::stage(agent, &header, &messages, sha256)?.persist()
        };
        Ok(Outcome::Restored(run_blocking(write).await?.stamp))
    }

    /// Records an outcome in the target.
    async fn record(&self, outcome: Outcome, target: &Side, counts: &mut SessionCounts) -> Result<()> {
        counts.verified += 1;
        match (outcome, target) {
            (Outcome::Stored(body), Side::Postgres(side)) => {
                counts.stored += 1;
                side.set_body(self.id, &body).await
            }
            (Outcome::Restored(stamp), Side::Sqlite(side)) => {
                counts.restored += 1;
                SqliteSide::set_file_stamp(side, self.id.as_bytes(), &stamp)
            }
            _ => Ok(()),
        }
    }
}
