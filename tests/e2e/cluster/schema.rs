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
