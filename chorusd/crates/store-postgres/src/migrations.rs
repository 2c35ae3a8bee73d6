//! The schema of the database, in numbered steps.

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, IsolationLevel};

use crate::errors::read_failed;
use crate::route::TRANSACTION_SETTINGS;

/// The steps, the first with number 1. Steps are only ever added.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_journal.sql"),
    include_str!("../migrations/0002_sessions.sql"),
    concat!(include_str!("../migrations/0003_agents.sql"), include_str!("../migrations/0003_agents_functions.sql")),
    concat!(
        include_str!("../migrations/0004_discord_and_capture.sql"),
        include_str!("../migrations/0004_discord_posts.sql"),
        include_str!("../migrations/0004_discord_functions.sql")
    ),
    include_str!("../migrations/0005_released_by.sql"),
    include_str!("../migrations/0006_session_bodies.sql"),
    include_str!("../migrations/0007_task_numbers.sql"),
    include_str!("../migrations/0008_draining.sql"),
    include_str!("../migrations/0009_agent_files.sql"),
    include_str!("../migrations/0010_discord_handed.sql"),
    include_str!("../migrations/0011_workspace_bundles.sql"),
    include_str!("../migrations/0012_append_each.sql"),
    include_str!("../migrations/0013_discord_shards.sql"),
    include_str!("../migrations/0014_heads_without_owner.sql"),
    include_str!("../migrations/0015_shared_workspaces.sql"),
    include_str!("../migrations/0016_indexes.sql"),
    include_str!("../migrations/0017_node_homes.sql"),
    include_str!("../migrations/0018_due_slots.sql"),
    include_str!("../migrations/0019_forgotten_nodes.sql"),
    include_str!("../migrations/0020_schedules.sql"),
    include_str!("../migrations/0021_deleted_sessions.sql"),
];

/// Key of the advisory lock that is held while the schema changes: "chorus" in ASCII.
const LOCK_KEY: i64 = 0x0000_6368_6f72_7573;

/// Brings the schema to the version of this program. Several processes may call it at once. Each step of an update is committed on its
/// own, so that running nodes wait for the locks of one step only.
///
/// # Errors
/// Fails without a change if the schema has steps that this program does not know, if the database is not in UTF-8, or if it
/// cannot be reached.
pub async fn migrate(client: &mut Client) -> Result<()> {
    // Statements have no names: a pooler may be on the way.
    let encoding = client.query_typed_one("SELECT current_setting('server_encoding')", &[]).await;
    let row = encoding.map_err(|e| read_failed(&e))?;
    let encoding: &str = row.get(0);
    if encoding != "UTF8" {
        return Err(Error::new(ErrorKind::Unsupported, format!("the database has the encoding {encoding}"))
            .hint("create one with UTF-8: CREATE DATABASE chorus ENCODING 'UTF8' TEMPLATE template0"));
    }
    while take_steps(client).await? {}
    Ok(())
}

/// Applies the next step, in an empty database all. Returns whether further ones may be left.
async fn take_steps(client: &mut Client) -> Result<bool> {
    let begun = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await;
    let transaction = begun.map_err(|e| read_failed(&e))?;
    let apply = async {
        // A step of another process takes as long as its tables are large.
        transaction.batch_execute("SET LOCAL lock_timeout = 0").await?;
        transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&LOCK_KEY, Type::INT8)]).await?;
        transaction.batch_execute(TRANSACTION_SETTINGS).await?;
        transaction.batch_execute("CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY)").await?;
        let row = transaction.query_typed_one("SELECT coalesce(max(number), 0) FROM migrations", &[]).await?;
        let applied = usize::try_from(row.get::<_, i64>(0)).unwrap_or(usize::MAX);
        let count = if applied == 0 { MIGRATIONS.len() } else { 1 };
        for (number, step) in (1_i64..).zip(MIGRATIONS).skip(applied).take(count) {
            transaction.batch_execute(step).await?;
            transaction.query_typed("INSERT INTO migrations VALUES ($1)", &[(&number, Type::INT8)]).await?;
        }
        Ok(applied)
    };
    let applied = apply.await.map_err(|e: tokio_postgres::Error| read_failed(&e))?;
    if applied > MIGRATIONS.len() {
        let newest = MIGRATIONS.len();
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("the database has version {applied} of the schema, and this chorusd knows {newest}"),
        )
        .hint("install the version of Chorus that the other nodes have"));
    }
    transaction.commit().await.map_err(|e| read_failed(&e))?;
    Ok(applied > 0 && applied < MIGRATIONS.len())
}
