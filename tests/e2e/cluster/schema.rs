//! Migrations.

use chorus_store_postgres::{DatabaseUrl, migrate};

use super::{Result, open};
use chorus_tests::postgres::Database;

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_may_bring_an_empty_database_up_to_date_at_once() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let mut started = Vec::new();
    for number in 0..8 {
        let url = DatabaseUrl::parse(&database.url_at(database.port()))?;
        started.push(chorus_runtime::spawn(async move {
            let mut client = url.connect().await?;
            migrate(&mut client).await.map(|()| number)
        }));
    }
    for task in started {
        task.await??;
    }
    let client = database.connect().await?;
    let row = client.query_one("SELECT count(*), max(number) FROM migrations", &[]).await?;
    let (count, newest): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!(count, newest);
    Ok(())
}

/// The steps after 17, undone, and a row that they have to carry over.
const BEFORE_DUE_SLOTS: &str = "
    ALTER TABLE contexts DROP COLUMN due_slot;
    CREATE INDEX contexts_by_deadline ON contexts (idle_deadline_at) WHERE NOT ended AND idle_deadline_at IS NOT NULL;
    ALTER TABLE nodes DROP COLUMN forgotten;
    DROP FUNCTION forget_node;
    DROP TABLE schedules;
    DROP TABLE deleted_sessions;
    DELETE FROM migrations WHERE number > 17;
    INSERT INTO contexts (id, agent_id, started_at, last_activity_at, idle_deadline_at)
        VALUES (1, gen_random_uuid(), 0, 0, 1500000000000000000);";

#[tokio::test(flavor = "multi_thread")]
async fn each_step_of_an_update_is_committed_and_one_that_fails_is_tried_again() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    open(&database, "a").await?.close().await?;
    let client = database.connect().await?;
    let known: i64 = client.query_one("SELECT max(number) FROM migrations", &[]).await?.get(0);
    client.batch_execute(BEFORE_DUE_SLOTS).await?;
    // In the way of step 19.
    client.batch_execute("ALTER TABLE nodes ADD COLUMN forgotten integer").await?;
    open(&database, "a").await.err().ok_or("a step was skipped")?;
    let applied: i64 = client.query_one("SELECT max(number) FROM migrations", &[]).await?.get(0);
    assert_eq!(applied, 18);
    let slot: i64 = client.query_one("SELECT due_slot FROM contexts WHERE id = 1", &[]).await?.get(0);
    assert_eq!(slot, 5_000_000);
    client.batch_execute("ALTER TABLE nodes DROP COLUMN forgotten").await?;
    // Two nodes start at once.
    let (a, b) = tokio::join!(open(&database, "a"), open(&database, "b"));
    let (a, b) = (a?, b?);
    let applied: i64 = client.query_one("SELECT max(number) FROM migrations", &[]).await?.get(0);
    assert_eq!(applied, known);
    a.close().await?;
    b.close().await?;
    let forgotten: Option<i64> = client.query_one("SELECT forget_node('b', 8)", &[]).await?.get(0);
    assert_eq!(forgotten, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_refused_and_left_alone() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    open(&database, "a").await?.close().await?;
    let client = database.connect().await?;
    let known: i64 = client.query_one("SELECT max(number) FROM migrations", &[]).await?.get(0);
    let newer = known + 1;
    client.execute("INSERT INTO migrations VALUES ($1)", &[&newer]).await?;
    let refused = open(&database, "a").await.err().ok_or("a newer schema was accepted")?;
    let expected = format!("the database has version {newer} of the schema, and this chorusd knows {known}");
    assert_eq!(refused.to_string(), expected);
    let boot: i64 = client.query_one("SELECT boot FROM nodes", &[]).await?.get(0);
    assert_eq!(boot, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_in_another_encoding_is_refused() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let admin = database.connect().await?;
    admin.batch_execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0").await?;
    let url = format!("postgresql://postgres@127.0.0.1:{}/latin", database.port());
    let mut client = DatabaseUrl::parse(&url)?.connect().await?;
    let refused = migrate(&mut client).await.err().ok_or("it was accepted")?;
    assert_eq!(refused.to_string(), "the database has the encoding LATIN1");
    Ok(())
}
