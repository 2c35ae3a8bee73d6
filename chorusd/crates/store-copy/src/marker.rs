//! The marker of a copy in the database in PostgreSQL, and the checks of that database.

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_session_objects::ObjectBodies;
use chorus_store_postgres::DatabaseUrl;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::postgres::failed;
use crate::tables;

/// The table with the marker. It has one row while a copy to the database is not finished.
pub(crate) const TABLE: &str = "store_copy";

/// An attempt to copy to the database; another one starts with another number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) number: i64,
}

/// Starts an attempt to copy the home with the id `copy`. Ends earlier attempts, after the statement that they have sent.
///
/// # Errors
/// `already_exists` if the database has anything else than an earlier copy of this home.
pub(crate) async fn start_attempt(client: &Client, copy: Uuid) -> Result<Attempt> {
    if !has_marker(client).await? {
        refuse_data(client).await?;
        let create = format!(
            "CREATE TABLE {TABLE} (copy uuid NOT NULL, attempt bigint NOT NULL, finished boolean NOT NULL);
             INSERT INTO {TABLE} VALUES ('{copy}', 0, false);"
        );
        // Two statements of one message are one transaction.
        client.batch_execute(&create).await.map_err(|e| failed(&e))?;
    }
    refuse_used(client).await?;
    let next = format!("UPDATE {TABLE} SET attempt = attempt + 1, finished = false WHERE copy = $1 RETURNING attempt");
    let rows = client.query_typed(&next, &[(&copy, Type::UUID)]).await.map_err(|e| failed(&e))?;
    match rows.first() {
        Some(row) => Ok(Attempt { number: row.get(0) }),
        None => Err(copy_of_another_home()),
    }
}

/// Checks that a home may be copied to the database, in which nothing is created before. `copy` is the id of its unfinished copy,
/// if it has one.
///
/// # Errors
/// As [`start_attempt`].
pub(crate) async fn check_target(client: &Client, copy: Option<Uuid>) -> Result<()> {
    if !has_marker(client).await? {
        return refuse_data(client).await;
    }
    refuse_used(client).await?;
    let found = client.query_typed(&format!("SELECT copy FROM {TABLE}"), &[]).await.map_err(|e| failed(&e))?;
    let is_own = found.first().is_none_or(|row| Some(row.get(0)) == copy);
    if is_own { Ok(()) } else { Err(copy_of_another_home()) }
}

fn copy_of_another_home() -> Error {
    other_data("it has an unfinished copy of another home")
}

async fn has_marker(client: &Client) -> Result<bool> {
    has_table(client, TABLE).await
}

async fn has_table(client: &Client, name: &str) -> Result<bool> {
    let sql = format!("SELECT to_regclass('{name}') IS NOT NULL");
    Ok(client.query_typed_one(&sql, &[]).await.map_err(|e| failed(&e))?.get(0))
}

/// Refuses a database that a daemon has used since a copy to it.
async fn refuse_used(client: &Client) -> Result<()> {
    let used = "SELECT EXISTS (SELECT FROM nodes WHERE boot > 0)";
    match client.query_typed_one(used, &[]).await.map_err(|e| failed(&e))?.get(0) {
        true => Err(other_data("a daemon has used it since the copy")),
        false => Ok(()),
    }
}

/// Refuses a database in which anything is stored.
async fn refuse_data(client: &Client) -> Result<()> {
    if has_table(client, "nodes").await? {
        let rows = client.query_typed("SELECT id FROM nodes ORDER BY id", &[]).await.map_err(|e| failed(&e))?;
        if !rows.is_empty() {
            let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            return Err(other_data(&format!("it is the store of {}", name_nodes(&names))));
        }
    }
    for table in tables::all().map(|table| table.postgres).chain(["heads"]) {
        if !has_table(client, table).await? {
            continue;
        }
        let sql = format!("SELECT EXISTS (SELECT FROM {table})");
        if client.query_typed_one(&sql, &[]).await.map_err(|e| failed(&e))?.get(0) {
            return Err(other_data(&format!("it has rows in the table {table}")));
        }
    }
    Ok(())
}

/// Formats `the node a`, or `the nodes a, b`.
fn name_nodes(names: &[String]) -> String {
    format!("the {} {}", if names.len() == 1 { "node" } else { "nodes" }, names.join(", "))
}

fn other_data(why: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("the database is not empty: {why}"))
        .hint("create an empty database for this home: CREATE DATABASE chorus ENCODING 'UTF8' TEMPLATE template0")
}

/// Records that all is copied and compared. A daemon may use the database from here on.
pub(crate) async fn set_finished(client: &Client, attempt: Attempt) -> Result<()> {
    let sql = format!("UPDATE {TABLE} SET finished = true WHERE attempt = {}", attempt.number);
    client.batch_execute(&sql).await.map_err(|e| failed(&e))
}

/// Removes the marker, once the configuration names the database.
///
/// # Errors
/// Fails if the database cannot be reached.
pub async fn remove_marker(url: &DatabaseUrl) -> Result<()> {
    let client = url.connect().await?;
    client.batch_execute(&format!("DROP TABLE IF EXISTS {TABLE}")).await.map_err(|e| failed(&e))
}

/// Checks that no other cluster uses the bucket. Writes nothing.
///
/// # Errors
/// As [`take_bucket`].
pub(crate) async fn check_bucket(client: &Client, bodies: Option<&ObjectBodies>) -> Result<()> {
    let Some(bodies) = bodies else { return Ok(()) };
    // Without the table, the database has no id yet.
    let id = match has_table(client, "cluster").await? {
        true => Some(client.query_typed_one("SELECT id FROM cluster", &[]).await.map_err(|e| failed(&e))?.get(0)),
        false => None,
    };
    bodies.check_mark(id).await
}

/// Makes sure that no other cluster uses the bucket, before anything is written to it. No daemon has used the database, so an earlier
/// attempt may have had another bucket, or one where this has none.
///
/// # Errors
/// `invalid_config` if one does; those of the database and the bucket.
pub(crate) async fn take_bucket(client: &Client, bodies: Option<&ObjectBodies>) -> Result<()> {
    if let Some(bodies) = bodies {
        let row = client.query_typed_one("SELECT id FROM cluster", &[]).await.map_err(|e| failed(&e))?;
        bodies.check_or_mark(row.get(0), false).await?;
    }
    let note = format!("UPDATE cluster SET has_bucket = {}", bodies.is_some());
    client.batch_execute(&note).await.map_err(|e| failed(&e))
}

/// Refuses a database with a copy that is not finished, so that no daemon starts with a part of a home.
///
/// # Errors
/// `denied` if there is one; fails if the database cannot be reached.
pub async fn refuse_unfinished(url: &DatabaseUrl) -> Result<()> {
    refuse_unfinished_copy(&url.connect().await?).await
}

async fn refuse_unfinished_copy(client: &Client) -> Result<()> {
    if !has_marker(client).await? {
        return Ok(());
    }
    let sql = format!("SELECT EXISTS (SELECT FROM {TABLE} WHERE NOT finished)");
    if client.query_typed_one(&sql, &[]).await.map_err(|e| failed(&e))?.get(0) {
        return Err(Error::new(ErrorKind::Denied, "the copy of a home to this database is not finished")
            .hint("set `kind = \"sqlite\"` in [store], and finish it: chorusctl store copy --to postgres"));
    }
    Ok(())
}

/// Refuses a database with rows in a table that the copy does not know.
pub(crate) async fn refuse_unknown_tables(client: &Client) -> Result<()> {
    let sql = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1";
    for row in client.query_typed(sql, &[]).await.map_err(|e| failed(&e))? {
        let name: String = row.get(0);
        if tables::known().any(|known| known == name) {
            continue;
        }
        let rows = format!("SELECT EXISTS (SELECT FROM \"{}\")", name.replace('"', "\"\""));
        if client.query_typed_one(&rows, &[]).await.map_err(|e| failed(&e))?.get(0) {
            return Err(Error::new(ErrorKind::Unsupported, format!("the table {name} of the database is unknown"))
                .hint("use a database that only Chorus uses, and the version of Chorus that the daemon has"));
        }
    }
    Ok(())
}

/// Checks that the database may be copied to SQLite as the home of `node`: what no stop of a daemon would change comes first.
///
/// # Errors
/// `not_found` if no daemon has used it; `denied` with a part of a home; `unsupported` if it has what belongs to other nodes; `busy` if
/// a daemon uses it.
pub(crate) async fn check_source(client: &Client, node: &str, stale_after: f64) -> Result<()> {
    if !has_table(client, "nodes").await? {
        return Err(Error::new(ErrorKind::NotFound, "the database has no store of Chorus")
            .hint("check the URL that the table [store] of config.toml names"));
    }
    refuse_unfinished_copy(client).await?;
    refuse_other_nodes(client, node).await?;
    refuse_running_nodes(client, stale_after).await
}

/// Refuses a database that a daemon uses.
///
/// # Errors
/// `busy` with the names of the nodes that run.
async fn refuse_running_nodes(client: &Client, stale_after: f64) -> Result<()> {
    let sql = "SELECT id FROM nodes WHERE NOT stopped
        AND heartbeat > clock_timestamp() - make_interval(secs => $1) ORDER BY id";
    let rows = client.query_typed(sql, &[(&stale_after, Type::FLOAT8)]).await.map_err(|e| failed(&e))?;
    if rows.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Err(Error::new(ErrorKind::Busy, format!("daemons use the database: {}", names.join(", ")))
        .hint("stop them; one that was killed is noticed after 8 seconds"))
}

/// Refuses a database with the audit log of another node: SQLite has one chain.
///
/// # Errors
/// `unsupported` with the names of the other nodes.
async fn refuse_other_nodes(client: &Client, node: &str) -> Result<()> {
    let mut others: Vec<String> = Vec::new();
    for table in ["audit_log", "captured_files"] {
        // An early version of the schema had none.
        if !has_table(client, table).await? {
            continue;
        }
        let sql = format!("SELECT DISTINCT node FROM {table} WHERE node <> $1");
        let rows = client.query_typed(&sql, &[(&node, Type::TEXT)]).await.map_err(|e| failed(&e))?;
        others.extend(rows.iter().map(|row| row.get::<_, String>(0)));
    }
    if others.is_empty() {
        return Ok(());
    }
    others.sort();
    others.dedup();
    let what = format!("other nodes have an audit log or captured files there: {}", others.join(", "));
    Err(Error::new(ErrorKind::Unsupported, what)
        .hint("SQLite has those of one node; export the agents and import them into a new home"))
}
