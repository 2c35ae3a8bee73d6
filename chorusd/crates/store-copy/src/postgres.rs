//! The database in PostgreSQL, as the source or the target of a copy.

use std::collections::HashSet;
use std::fmt::Write as _;

use bytes::BytesMut;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_store_postgres::DatabaseUrl;
use futures_util::TryStreamExt as _;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row as PostgresRow};
use uuid::Uuid;

use crate::marker::{Attempt, TABLE as MARKER};
use crate::stream::{BATCH_BYTES, Closed, RowSender, RowStream, channel};
use crate::table::{Form, Table};
use crate::value::{Kind, Row, Value};

/// Rows that one statement inserts.
const MAX_ROWS: usize = 1000;

/// Parameters that one statement may have.
const MAX_PARAMETERS: usize = 60_000;

/// Columns that PostgreSQL numbers, with their tables: the next number follows those that were copied.
const NUMBERED: &[(&str, &str)] = &[
    ("sessions", "serial"),
    ("usage", "id"),
    ("audit_log", "position"),
    ("memories", "number"),
    ("discord_outbox", "id"),
    ("discord_identifies", "id"),
];

/// The database, with the name of the node that the home is.
#[derive(Debug)]
pub(crate) struct PostgresSide {
    pub(crate) url: DatabaseUrl,
    pub(crate) node: String,
    pub(crate) client: Client,
    /// Of the target: what a statement of an earlier attempt that is still carried out must not do.
    pub(crate) attempt: Option<Attempt>,
}

pub(crate) fn failed(error: &tokio_postgres::Error) -> Error {
    let what = error.as_db_error().map_or_else(|| error.to_string(), |refused| refused.message().to_owned());
    Error::new(ErrorKind::StorageFailed, format!("PostgreSQL: {what}"))
        .hint("run the command again: it continues where it stopped")
}

fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Int => Type::INT8,
        Kind::Bool => Type::BOOL,
        Kind::Real => Type::FLOAT8,
        Kind::Text => Type::TEXT,
        Kind::TextAsBytes | Kind::Bytes => Type::BYTEA,
        Kind::Id => Type::UUID,
        Kind::Ids => Type::UUID_ARRAY,
        Kind::Hashes => Type::INT8_ARRAY,
        Kind::Texts => Type::TEXT_ARRAY,
    }
}

/// A value to be sent as a kind.
#[derive(Debug)]
struct Parameter<'a>(&'a Value, Kind);

impl ToSql for Parameter<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self.0, self.1) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Int(number), Kind::Bool) => (*number != 0).to_sql(ty, out),
            (Value::Int(number), Kind::Int) => number.to_sql(ty, out),
            // SQLite stores a whole number in a column of reals as an integer, and reads it as a real.
            (Value::Real(number), Kind::Real) => number.to_sql(ty, out),
            (Value::Text(text), Kind::Text) => text.to_sql(ty, out),
            (Value::Text(text), Kind::TextAsBytes) => text.as_bytes().to_sql(ty, out),
            (Value::Bytes(bytes), Kind::Bytes) => bytes.to_sql(ty, out),
            (Value::Bytes(bytes), Kind::Id) => Uuid::from_slice(bytes)?.to_sql(ty, out),
            (Value::Bytes(bytes), Kind::Ids) => {
                let ids: Vec<Uuid> = bytes.as_chunks().0.iter().copied().map(Uuid::from_bytes).collect();
                ids.to_sql(ty, out)
            }
            (Value::Bytes(bytes), Kind::Hashes) => {
                let hashes: Vec<i64> = bytes.as_chunks().0.iter().copied().map(i64::from_le_bytes).collect();
                hashes.to_sql(ty, out)
            }
            (Value::Texts(texts), Kind::Texts) => texts.to_sql(ty, out),
            (value, kind) => Err(format!("{value:?} cannot be stored as {kind:?}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn read_value(row: &PostgresRow, place: usize, kind: Kind) -> Result<Value> {
    fn get<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a PostgresRow, place: usize) -> Result<Option<T>> {
        row.try_get(place).map_err(|e| failed(&e))
    }
    let value = match kind {
        Kind::Int => get(row, place)?.map(Value::Int),
        Kind::Bool => get::<bool>(row, place)?.map(|value| Value::Int(value.into())),
        Kind::Real => get(row, place)?.map(Value::Real),
        Kind::Text => get(row, place)?.map(Value::Text),
        Kind::TextAsBytes => {
            let bytes: Option<Vec<u8>> = get(row, place)?;
            bytes.map(String::from_utf8).transpose().map_err(|e| Error::internal(e.to_string()))?.map(Value::Text)
        }
        Kind::Bytes => get(row, place)?.map(Value::Bytes),
        Kind::Id => get::<Uuid>(row, place)?.map(|id| Value::Bytes(id.as_bytes().to_vec())),
        Kind::Ids => get::<Vec<Uuid>>(row, place)?
            .map(|ids| Value::Bytes(ids.iter().flat_map(Uuid::as_bytes).copied().collect())),
        Kind::Hashes => get::<Vec<i64>>(row, place)?
            .map(|hashes| Value::Bytes(hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect())),
        Kind::Texts => get(row, place)?.map(Value::Texts),
    };
    Ok(value.unwrap_or(Value::Null))
}

/// Writes a text as a literal of SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl PostgresSide {
    /// Puts the name of the node into a text.
    fn with_node(&self, sql: &str) -> String {
        sql.replace("{node}", &literal(&self.node))
    }

    pub(crate) async fn count(&self, table: &Table) -> Result<u64> {
        let sql = match table.form {
            Form::Records => {
                "SELECT count(*) FROM records WHERE context_id IN (SELECT id FROM contexts WHERE NOT ended)".to_owned()
            }
            Form::DiscordState => "SELECT 1::bigint".to_owned(),
            _ => self.with_node(&format!("SELECT count(*) FROM {} WHERE {}", table.postgres, table.postgres_where)),
        };
        let row = self.client.query_typed_one(&sql, &[]).await.map_err(|e| failed(&e))?;
        Ok(row.get::<_, i64>(0).cast_unsigned())
    }

    /// Reads a table over a separate connection.
    pub(crate) async fn stream(&self, table: &'static Table) -> Result<RowStream> {
        let client = self.url.connect().await?;
        let sql = self.with_node(&select(table));
        let (mut rows, stream) = channel();
        chorus_runtime::spawn(async move {
            let outcome = send_rows(&client, table, &sql, &mut rows).await;
            rows.finish(outcome).await;
        });
        Ok(stream)
    }

    /// Deletes all rows of a table.
    pub(crate) async fn clear(&self, table: &Table) -> Result<()> {
        let fence = self.fence()?;
        let condition = if table.form == Form::Records { "true" } else { table.postgres_where };
        let delete = format!("DELETE FROM {} WHERE ({condition}) AND EXISTS ({fence})", table.postgres);
        self.client.batch_execute(&self.with_node(&delete)).await.map_err(|e| failed(&e))
    }

    /// Inserts rows, in several statements if there are many.
    pub(crate) async fn insert(&self, table: &Table, rows: &[Row]) -> Result<()> {
        let derived = table.derived.map_or(&[][..], |derived| derived.columns);
        let width = table.columns.len() + derived.len();
        for rows in rows.chunks(MAX_ROWS.min(MAX_PARAMETERS / width)) {
            let mut wide = Vec::with_capacity(rows.len());
            for row in rows {
                refuse_nul(table, row)?;
                let mut row = row.clone();
                if let Some(derived) = table.derived {
                    row.extend((derived.values)(&row, &self.node)?);
                }
                wide.push(row);
            }
            let kinds: Vec<Kind> = table.columns.iter().map(|c| c.kind).chain(derived.iter().map(|d| d.1)).collect();
            let parameters: Vec<(Parameter<'_>, Type)> = wide
                .iter()
                .flat_map(|row| row.iter().zip(&kinds))
                .map(|(value, kind)| (Parameter(value, *kind), type_of(*kind)))
                .collect();
            let typed: Vec<(&(dyn ToSql + Sync), Type)> =
                parameters.iter().map(|(value, ty)| (value as &(dyn ToSql + Sync), ty.clone())).collect();
            let sql = self.with_node(&insertion(table, rows.len(), width, &self.fence()?));
            let inserted = self.client.execute_typed(&sql, &typed).await.map_err(|e| {
                let failure = failed(&e);
                Error { message: format!("{} and later: {}", table.describe(&rows[0]), failure.message), ..failure }
            })?;
            if inserted != rows.len() as u64 {
                return Err(superseded());
            }
        }
        Ok(())
    }

    /// A statement that returns a row, and locks it, while no other attempt to copy has started.
    fn fence(&self) -> Result<String> {
        let attempt = self.attempt.as_ref().ok_or_else(|| Error::internal("the source of a copy is not changed"))?;
        Ok(format!("SELECT FROM {MARKER} WHERE attempt = {} FOR SHARE", attempt.number))
    }

    /// Names the body of a session.
    pub(crate) async fn set_body(&self, session: Uuid, body: &chorus_session_objects::BodyRow) -> Result<()> {
        let sql = format!(
            "UPDATE sessions SET body_key = $2, body_count = $3, body_bytes = $4, object_bytes = $5, body_sha256 = $6,
                 index_sha256 = $7
             WHERE id = $1 AND EXISTS ({})",
            self.fence()?
        );
        let numbers = [body.messages, body.body_bytes, body.object_bytes].map(u64::cast_signed);
        let [messages, bytes, object] = &numbers;
        let changed = self
            .client
            .execute_typed(
                &sql,
                &[
                    (&session, Type::UUID),
                    (&body.key, Type::TEXT),
                    (messages, Type::INT8),
                    (bytes, Type::INT8),
                    (object, Type::INT8),
                    (&body.sha256, Type::TEXT),
                    (&body.index_sha256, Type::TEXT),
                ],
            )
            .await
            .map_err(|e| failed(&e))?;
        if changed == 1 { Ok(()) } else { Err(superseded()) }
    }

    /// Does what a daemon needs before its first start: its node, the row of each agent, which this node takes at its start,
    /// and the numbers that come next.
    pub(crate) async fn finish(&self, version: &str) -> Result<()> {
        let mut sql = format!(
            "INSERT INTO nodes (id, boot, address, version, heartbeat, stopped)
                 VALUES ({{node}}, 0, '', {version}, clock_timestamp(), true) ON CONFLICT (id) DO NOTHING;
             INSERT INTO writers VALUES ({{node}}, 0, 0, 0, 0) ON CONFLICT (node) DO NOTHING;
             UPDATE writers SET event = (SELECT coalesce(max(seq), 0) FROM events WHERE node = {{node}}) WHERE node = {{node}};
             DELETE FROM heads;
             INSERT INTO heads (agent_id, epoch, released_by) SELECT id, 1, {{node}} FROM agents;
             UPDATE contexts c SET last_record = r.newest
                 FROM (SELECT context_id, max(number) AS newest FROM records GROUP BY context_id) r
                 WHERE r.context_id = c.id AND c.last_record <> r.newest;
             SELECT setval('processes', greatest(1, (SELECT max(id) >> 32 FROM contexts),
                 (SELECT max(context) >> 32 FROM usage)));",
            version = literal(version)
        );
        for (table, column) in NUMBERED {
            let _ = write!(
                sql,
                "SELECT setval(pg_get_serial_sequence('{table}', '{column}'),
                     greatest(1, (SELECT max({column}) FROM {table})), EXISTS (SELECT FROM {table}));"
            );
        }
        sql.push_str("ANALYZE;");
        self.client.batch_execute(&self.with_node(&sql)).await.map_err(|e| failed(&e))
    }
}

/// The columns of a table in PostgreSQL, in the order of its key.
fn select(table: &Table) -> String {
    let columns: Vec<&str> = table.columns.iter().map(|column| column.read_postgres).collect();
    let columns = columns.join(", ");
    match table.form {
        Form::Records => format!("SELECT {columns} FROM records ORDER BY context_id DESC, number DESC"),
        Form::DiscordState => format!("SELECT {columns}"),
        Form::Plain | Form::Sessions => {
            let key = table.columns.iter().take(table.key).map(|column| match column.kind {
                // As SQLite does: by bytes.
                Kind::Text => format!("({}) COLLATE \"C\"", column.read_postgres),
                _ => column.read_postgres.to_owned(),
            });
            let order = key.collect::<Vec<_>>().join(", ");
            format!("SELECT {columns} FROM {} WHERE {} ORDER BY {order}", table.postgres, table.postgres_where)
        }
    }
}

/// The statement that inserts rows if the fence returns one.
fn insertion(table: &Table, rows: usize, width: usize, fence: &str) -> String {
    let derived = table.derived.map_or(&[][..], |derived| derived.columns);
    let mut names: Vec<&str> = table.columns.iter().map(|column| column.postgres).collect();
    let mut values: Vec<String> = table
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| column.write_postgres.replace('?', &format!("c{place}")))
        .collect();
    for (place, (name, _)) in (table.columns.len()..).zip(derived) {
        names.push(name);
        values.push(format!("c{place}"));
    }
    for (name, value) in table.constants {
        names.push(name);
        values.push((*value).to_owned());
    }
    let columns: Vec<String> = (0..width).map(|place| format!("c{place}")).collect();
    let mut sql = format!(
        "WITH fence AS ({fence}) INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM fence, (VALUES ",
        table.postgres,
        names.join(", "),
        values.join(", ")
    );
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for place in 0..width {
            let _ = write!(sql, "{}${}", if place == 0 { "" } else { ", " }, row * width + place + 1);
        }
        sql.push(')');
    }
    let _ = write!(sql, ") AS rows ({})", columns.join(", "));
    sql
}

/// PostgreSQL has texts without the character NUL.
fn refuse_nul(table: &Table, row: &Row) -> Result<()> {
    let has_nul =
        |(value, kind): (&Value, Kind)| kind == Kind::Text && value.as_text().is_some_and(|text| text.contains('\0'));
    if row.iter().zip(table.columns.iter().map(|column| column.kind)).any(has_nul) {
        let what = format!("{} has the character NUL, which PostgreSQL cannot store", table.describe(row));
        return Err(Error::new(ErrorKind::Unsupported, what).hint("change or delete it, then run the command again"));
    }
    Ok(())
}

fn superseded() -> Error {
    Error::new(ErrorKind::Conflict, "another copy to this database has started")
        .hint("one copy at a time; the other one continues")
}

/// Sends the rows of a query.
async fn send_rows(client: &Client, table: &Table, sql: &str, rows: &mut RowSender) -> Result<()> {
    // A reader that waits for the other database must not be disconnected. Sorting all records would need as much space again.
    let begin = "BEGIN READ ONLY; SELECT set_config('idle_in_transaction_session_timeout', '0', true),
        set_config('enable_sort', CASE WHEN $1 THEN 'off' ELSE 'on' END, true)";
    let begin = begin.replace("$1", if table.form == Form::Records { "true" } else { "false" });
    client.batch_execute(&begin).await.map_err(|e| failed(&e))?;
    let live: HashSet<i64> = match table.form {
        Form::Records => {
            let live = client.query_typed("SELECT id FROM contexts WHERE NOT ended", &[]).await;
            live.map_err(|e| failed(&e))?.iter().map(|row| row.get(0)).collect()
        }
        _ => HashSet::new(),
    };
    let none: [(i64, Type); 0] = [];
    let found = client.query_typed_raw(sql, none).await.map_err(|e| failed(&e))?;
    let mut found = std::pin::pin!(found);
    while let Some(row) = found.try_next().await.map_err(|e| failed(&e))? {
        let values = table.columns.iter().enumerate().map(|(place, column)| read_value(&row, place, column.kind));
        let values = values.collect::<Result<Row>>()?;
        let is_ended = || values[0].as_int().is_some_and(|context| !live.contains(&context));
        if table.form == Form::Records && is_ended() {
            continue;
        }
        if let Err(Closed) = rows.send(values).await {
            break;
        }
    }
    Ok(())
}

/// Bytes of rows that are inserted at a time.
pub(crate) const INSERT_BYTES: usize = BATCH_BYTES;

/// Rows that are inserted at a time.
pub(crate) const INSERT_ROWS: usize = MAX_ROWS;
