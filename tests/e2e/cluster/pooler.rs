//! The journal through pgbouncer. `CHORUS_CLUSTER_POOLER` runs all other tests of the cluster through it, too.

use std::time::Duration;

use chorus_journal::Journal as _;
use chorus_tests::pgbouncer::PoolMode;
use chorus_tests::postgres::Database;
use chorus_tests::wait::pause;

use super::faults::lose_answers;
use super::{ProxiedNode, Result, append, claim, open_at, texts};

async fn proxied(mode: PoolMode) -> Result<Option<ProxiedNode>> {
    let Some(database) = Database::create().await? else { return Ok(None) };
    let Some(port) = database.port_through(mode)? else { return Ok(None) };
    ProxiedNode::start_at(database, port).await.map(Some)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_cut_at_any_byte_loses_and_doubles_nothing_in_transaction_mode() -> Result {
    let Some(node) = proxied(PoolMode::Transaction).await? else { return Ok(()) };
    lose_answers(node).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_cut_at_any_byte_loses_and_doubles_nothing_in_session_mode() -> Result {
    let Some(node) = proxied(PoolMode::Session).await? else { return Ok(()) };
    lose_answers(node).await
}

/// The transaction of the old connection waits for a lock when the connection ends, and is carried out or not: either way
/// the message is there once.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_still_runs_behind_the_pooler_is_waited_for() -> Result {
    let Some(node) = proxied(PoolMode::Transaction).await? else { return Ok(()) };
    let ProxiedNode { database, proxy, journal, fatal, agent, context } = node;
    append(&journal, agent, context, 0).await?;
    for number in 1..6 {
        let blocker = database.connect().await?;
        blocker.batch_execute("BEGIN; SELECT FROM writers FOR UPDATE").await?;
        let waiting = append(&journal, agent, context, number);
        let unblock = async {
            pause(Duration::from_millis(u64::from(number) * 60)).await;
            proxy.cut();
            pause(Duration::from_millis(u64::from(number) * 60)).await;
            blocker.batch_execute("COMMIT").await
        };
        let (appended, unblocked) = tokio::join!(waiting, unblock);
        unblocked?;
        assert_eq!(appended?, u64::from(number) + 1);
    }
    let wanted: Vec<_> = (0..6).map(|number| format!("message {number}")).collect();
    assert_eq!(texts(&journal, context).await?, wanted);
    assert_eq!(fatal.lock().len(), 0);
    Ok(())
}

/// The startup options of direct connections hold in each transaction.
#[tokio::test(flavor = "multi_thread")]
async fn the_settings_reach_the_server_directly_and_in_transactions() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let admin = database.connect().await?;
    // Others may have changed the defaults of the database.
    let changed =
        "ALTER DATABASE %1 SET default_transaction_isolation = 'serializable'; ALTER DATABASE %1 SET lock_timeout = 7";
    admin.batch_execute(&changed.replace("%1", database.name())).await?;
    let (through, direct) = (database.port_through(PoolMode::Transaction)?, Some(database.direct_port()));
    for port in [through, direct].into_iter().flatten() {
        let (journal, _) = open_at(&database, port, "a").await?;
        let spy = "CREATE TABLE IF NOT EXISTS seen (name text, value text);
             CREATE OR REPLACE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO seen SELECT name, setting FROM pg_settings WHERE name IN
                     ('transaction_isolation', 'lock_timeout', 'idle_in_transaction_session_timeout');
                 RETURN NEW; END $$;
             CREATE OR REPLACE TRIGGER spy AFTER INSERT OR UPDATE ON heads FOR EACH ROW EXECUTE FUNCTION spy();
             CREATE OR REPLACE TRIGGER spy AFTER INSERT ON contexts FOR EACH ROW EXECUTE FUNCTION spy()";
        admin.batch_execute(spy).await?;
        let agent = uuid::Uuid::new_v4();
        claim(&journal, agent).await?;
        append(&journal, agent, journal.reserve_context_no(), 0).await?;
        let rows = admin.query("SELECT DISTINCT name, value FROM seen ORDER BY 1", &[]).await?;
        let seen: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let wanted = [
            ("idle_in_transaction_session_timeout", "5000"),
            ("lock_timeout", "10000"),
            ("transaction_isolation", "read committed"),
        ];
        assert_eq!(seen, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())), "{port}");
    }
    Ok(())
}
