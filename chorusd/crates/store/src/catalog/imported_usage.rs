//! Usage of conversations of other programs.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chorus_catalog::{
    CatalogRead, CatalogWrite, ImportedDivision, ImportedSums, ImportedUsage, ImportedUsageFilter, ImportedUsageRow,
    ImportedUsageTable, QUARTER_HOUR_NANOS,
};
use chorus_journal::{from_nanos, to_nanos};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use uuid::Uuid;

use super::CatalogDb;
use crate::sqlite::StoreResult;

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteImportedUsageTable {
    pub(super) db: CatalogDb,
}

impl ImportedUsageTable for SqliteImportedUsageTable {
    fn record(&self, session: Uuid, usage: Arc<ImportedUsage>) -> CatalogRead<'_, ()> {
        Box::pin(async move {
            let known = self.db.read(move |conn| select_digest(conn, session)).await?;
            let is_known = known.as_ref().is_some_and(|known| *known == usage.digest());
            if is_known || (usage.calls.is_empty() && known.is_none()) {
                return Ok(());
            }
            self.db.write(move |conn| record(conn, session, &usage)).await
        })
    }

    fn move_to(&self, from: Uuid, to: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            if select_digest(conn, from)?.is_none() {
                return Ok(());
            }
            delete(conn, to)?;
            for table in ["imported_usage", "imported_calls"] {
                conn.execute(
                    &format!("UPDATE {table} SET session_id = ?2 WHERE session_id = ?1"),
                    [from.as_bytes(), to.as_bytes()],
                )?;
            }
            Ok(())
        })
    }

    fn delete(&self, session: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| delete(conn, session))
    }

    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.execute(
                "DELETE FROM imported_usage WHERE session_id IN (SELECT session_id FROM imported_calls WHERE agent_id = ?1)",
                [agent.as_bytes()],
            )?;
            conn.execute("DELETE FROM imported_calls WHERE agent_id = ?1", [agent.as_bytes()])?;
            Ok(())
        })
    }

    fn is_empty(&self) -> CatalogRead<'_, bool> {
        self.db.read(|conn| Ok(!conn.prepare_cached("SELECT 1 FROM imported_calls LIMIT 1")?.exists([])?))
    }

    fn sums(&self, filter: ImportedUsageFilter) -> CatalogRead<'_, Vec<ImportedUsageRow>> {
        self.db.read(move |conn| select_sums(conn, &filter))
    }
}

fn select_digest(conn: &Connection, session: Uuid) -> StoreResult<Option<Vec<u8>>> {
    let mut statement = conn.prepare_cached("SELECT digest FROM imported_calls WHERE session_id = ?1")?;
    Ok(statement.query_row([session.as_bytes()], |row| row.get(0)).optional()?)
}

/// Deletes the usage of a session.
pub(super) fn delete(conn: &Connection, session: Uuid) -> StoreResult<()> {
    for table in ["imported_usage", "imported_calls"] {
        conn.prepare_cached(&format!("DELETE FROM {table} WHERE session_id = ?1"))?.execute([session.as_bytes()])?;
    }
    Ok(())
}

/// Records the usage of a session whose row exists.
pub(super) fn record(conn: &Connection, session: Uuid, usage: &ImportedUsage) -> StoreResult<()> {
    delete(conn, session)?;
    let Some(first) = usage.calls.first() else { return Ok(()) };
    let first = first.key.cast_signed();
    let counted_elsewhere = select_shared_keys(conn, session, first)?;
    let (mut keys, mut sums) = (Vec::with_capacity(usage.calls.len() * 8), BTreeMap::<_, ImportedSums>::new());
    for call in usage.calls.iter().filter(|call| !counted_elsewhere.contains(&call.key)) {
        keys.extend_from_slice(&call.key.to_le_bytes());
        sums.entry((call.model, to_nanos(call.at) / QUARTER_HOUR_NANOS)).or_default().add(&call.sums());
    }
    conn.prepare_cached(
        "INSERT INTO imported_calls (session_id, agent_id, first, digest, calls)
         VALUES (?1, (SELECT agent_id FROM sessions WHERE id = ?1), ?2, ?3, ?4)",
    )?
    .execute(params![session.as_bytes(), first, usage.digest(), keys])?;
    let mut insert = conn.prepare_cached(
        "INSERT INTO imported_usage (session_id, model, quarter_hour, calls, input, output, cache_read, cache_write, cost_usd,
             with_cost, lower_bound)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for ((model, quarter_hour), sums) in sums {
        insert.execute(params![
            session.as_bytes(),
            usage.model_name(model),
            quarter_hour,
            sums.calls.cast_signed(),
            sums.input.cast_signed(),
            sums.output.cast_signed(),
            sums.cache_read.cast_signed(),
            sums.cache_write.cast_signed(),
            sums.cost,
            sums.with_cost.cast_signed(),
            sums.lower_bound.cast_signed(),
        ])?;
    }
    Ok(())
}

/// Returns the calls that count for other sessions of the same conversation, and for those with the same first call: forks.
fn select_shared_keys(conn: &Connection, session: Uuid, first: i64) -> StoreResult<HashSet<u64>> {
    let mut statement = conn.prepare_cached(
        "SELECT c.calls FROM imported_calls AS c WHERE c.session_id != ?1
             AND EXISTS (SELECT 1 FROM sessions WHERE id = c.session_id)
             AND (c.first = ?2 OR c.session_id IN (
                 SELECT other.id FROM sessions AS own JOIN sessions AS other
                     ON other.source_program = own.source_program AND other.source_conversation = own.source_conversation
                 WHERE own.id = ?1))",
    )?;
    let mut keys = HashSet::new();
    let mut rows = statement.query(params![session.as_bytes(), first])?;
    while let Some(row) = rows.next()? {
        let (calls, _) = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?.as_chunks::<8>();
        keys.extend(calls.iter().map(|key| u64::from_le_bytes(*key)));
    }
    Ok(keys)
}

/// The group of a session's rows.
#[derive(Debug, Clone)]
struct SessionGroup {
    /// Index of the program.
    program: usize,
    /// Index of the project, if it is asked for.
    project: Option<usize>,
}

/// Adds the rows up here rather than in SQLite, which would sort them first.
fn select_sums(conn: &Connection, filter: &ImportedUsageFilter) -> StoreResult<Vec<ImportedUsageRow>> {
    let mut values = Vec::new();
    let condition = match filter.since {
        Some(since) => {
            values.push(Value::Integer(to_nanos(since) / QUARTER_HOUR_NANOS));
            "WHERE quarter_hour >= ?"
        }
        None => "NOT INDEXED",
    };
    let mut statement = conn.prepare_cached(&format!(
        "SELECT session_id, quarter_hour, model, calls, input, output, cache_read, cache_write, cost_usd, with_cost, lower_bound
         FROM imported_usage {condition}"
    ))?;
    let mut find_session =
        conn.prepare_cached("SELECT agent_id, source_program, project FROM sessions WHERE id = ?1")?;
    let (mut sessions, mut days) = (HashMap::<[u8; 16], Option<SessionGroup>>::new(), HashMap::new());
    let mut names = Names::default();
    let mut sums = HashMap::<_, ImportedSums>::new();
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let session = row.get(0)?;
        let group = match sessions.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let found = find_session.query_row([session], |row| group_of(row, filter, &mut names)).optional()?;
                new.insert(found.flatten())
            }
        };
        // A session in the trash, or of another agent.
        let Some(group) = group else { continue };
        let day = (filter.division == ImportedDivision::Day).then_some(row.get::<_, i64>(1)?);
        let day = day.map(|quarter| {
            let at = || from_nanos(quarter.saturating_mul(QUARTER_HOUR_NANOS)).to_zoned(filter.zone.clone()).date();
            *days.entry(quarter).or_insert_with(at)
        });
        let model = names.number(row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?);
        let read = ImportedSums {
            calls: count(row, 3)?,
            input: count(row, 4)?,
            output: count(row, 5)?,
            cache_read: count(row, 6)?,
            cache_write: count(row, 7)?,
            cost: row.get(8)?,
            with_cost: count(row, 9)?,
            lower_bound: count(row, 10)?,
        };
        sums.entry((group.program, group.project, model, day)).or_default().add(&read);
    }
    let rows = sums.into_iter().map(|((program, project, model, day), sums)| ImportedUsageRow {
        program: names.text(program),
        project: project.map(|project| names.text(project)),
        day,
        model: names.text(model),
        sums,
    });
    Ok(rows.collect())
}

/// Returns the group of a session; `None` if it is of another agent than those of the filter.
fn group_of(row: &Row<'_>, filter: &ImportedUsageFilter, names: &mut Names) -> rusqlite::Result<Option<SessionGroup>> {
    let agent = Uuid::from_bytes(row.get(0)?);
    if !filter.agents.is_empty() && !filter.agents.contains(&agent) {
        return Ok(None);
    }
    let program = names.number(row.get_ref(1)?.as_str_or_null().map_err(rusqlite::Error::from)?.unwrap_or_default());
    let project = row
        .get_ref(2)?
        .as_str_or_null()
        .map_err(rusqlite::Error::from)?
        .filter(|_| filter.division == ImportedDivision::Project);
    Ok(Some(SessionGroup { program, project: project.map(|project| names.number(project)) }))
}

/// Texts that occur often, by number.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Names {
    fn number(&mut self, text: &str) -> usize {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    fn text(&self, number: usize) -> String {
        self.texts.get(number).cloned().unwrap_or_default()
    }
}

/// Reads a number that was stored as it is signed.
fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use chorus_catalog::ImportedCallRow;
    use jiff::tz::TimeZone;

    use super::super::schema::MIGRATIONS;
    use super::*;
    use crate::sqlite;

    fn add_session(conn: &Connection, id: u128, conversation: &str) {
        conn.execute(
            "INSERT INTO sessions (id, agent_id, session_id, saved_at, header, sha256, file_stamp, last_used_at,
                 source_program, source_conversation, project)
             VALUES (?1, zeroblob(16), hex(?1), 1, '{\"started_at\": \"2026-01-01\"}', '', '', 1, 'codex', ?2, '/p')",
            params![Uuid::from_u128(id).as_bytes(), conversation],
        )
        .unwrap();
    }

    fn usage(keys: &[u64]) -> ImportedUsage {
        let call = |key: &u64| ImportedCallRow {
            key: *key,
            at: "2026-01-01T23:50:00Z".parse().unwrap(),
            model: 0,
            calls: 1,
            with_cost: 0,
            lower_bound: 0,
            input: 10,
            output: *key,
            cache_read: 0,
            cache_write: 0,
            cost: 0.0,
        };
        ImportedUsage { models: vec!["m".into()], calls: keys.iter().map(call).collect() }
    }

    fn filter(division: ImportedDivision, zone: TimeZone) -> ImportedUsageFilter {
        ImportedUsageFilter { agents: Vec::new(), since: None, zone, division }
    }

    fn outputs(conn: &Connection) -> u64 {
        let sums = select_sums(conn, &filter(ImportedDivision::None, TimeZone::UTC)).unwrap();
        sums.iter().map(|row| row.sums.output).sum()
    }

    #[test]
    fn what_several_sessions_share_counts_for_the_first_until_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let conn = sqlite::open(&dir.path().join("chorus.db"), MIGRATIONS).unwrap();
        let [first, fork, revision, other] = [1, 2, 3, 4].map(Uuid::from_u128);
        for (id, conversation) in [(1, "a"), (2, "b"), (3, "a"), (4, "c")] {
            add_session(&conn, id, conversation);
        }
        record(&conn, first, &usage(&[1, 2, 4])).unwrap();
        record(&conn, fork, &usage(&[1, 2, 8])).unwrap();
        // Its first call is another one.
        record(&conn, revision, &usage(&[16, 4])).unwrap();
        // Another conversation may have equal keys only if it begins the same.
        record(&conn, other, &usage(&[32, 4])).unwrap();
        assert_eq!(outputs(&conn), 1 + 2 + 4 + 8 + 16 + 32 + 4);
        // Each grows by its own.
        record(&conn, first, &usage(&[1, 2, 4, 64])).unwrap();
        record(&conn, fork, &usage(&[1, 2, 8, 128])).unwrap();
        assert_eq!(outputs(&conn), 1 + 2 + 4 + 8 + 16 + 32 + 4 + 64 + 128);
        conn.execute("DELETE FROM sessions WHERE id = ?1", [first.as_bytes()]).unwrap();
        assert_eq!(outputs(&conn), 8 + 16 + 32 + 4 + 128, "it is in the trash");
        record(&conn, fork, &usage(&[1, 2, 8, 128])).unwrap();
        assert_eq!(outputs(&conn), 1 + 2 + 8 + 16 + 32 + 4 + 128);
        record(&conn, fork, &usage(&[])).unwrap();
        assert_eq!(select_digest(&conn, fork).unwrap(), None);
    }

    #[test]
    fn days_are_those_of_the_zone_and_other_agents_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let conn = sqlite::open(&dir.path().join("chorus.db"), MIGRATIONS).unwrap();
        add_session(&conn, 1, "a");
        record(&conn, Uuid::from_u128(1), &usage(&[1])).unwrap();
        for (zone, day) in [(TimeZone::UTC, "2026-01-01"), (TimeZone::fixed(jiff::tz::offset(1)), "2026-01-02")] {
            let rows = select_sums(&conn, &filter(ImportedDivision::Day, zone)).unwrap();
            assert_eq!(rows.iter().map(|row| row.day.unwrap().to_string()).collect::<Vec<_>>(), [day]);
        }
        let projects = select_sums(&conn, &filter(ImportedDivision::Project, TimeZone::UTC)).unwrap();
        assert_eq!((projects[0].project.as_deref(), &*projects[0].program), (Some("/p"), "codex"));
        let others =
            ImportedUsageFilter { agents: vec![Uuid::from_u128(9)], ..filter(ImportedDivision::None, TimeZone::UTC) };
        assert_eq!(select_sums(&conn, &others).unwrap(), []);
        let since = Some("2026-01-02T00:00:00Z".parse().unwrap());
        let later = ImportedUsageFilter { since, ..filter(ImportedDivision::None, TimeZone::UTC) };
        assert_eq!(select_sums(&conn, &later).unwrap(), []);
    }
}
