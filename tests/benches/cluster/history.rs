//! A page of `history` of an agent with 1,000,000 sessions, compared with a query for the same rows.

use std::time::Duration;

use chorus_proto::methods::context::{History, HistoryParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{measure_paired, print_report, time};
use chorus_tests::postgres::Result;
use tokio_postgres::Client;

use super::Nodes;

const SESSIONS: i64 = 1_000_000;
const ROUNDS: usize = 400;
const PAGE: u64 = 20;

/// Multiplies the only row: the bodies do not exist, which the list does not look at. Indexes are made when the rows are there.
async fn multiply_rows(database: &Client) -> Result {
    const COLUMNS: &str = "SELECT column_name::text FROM information_schema.columns
        WHERE table_name = 'sessions' AND is_generated = 'NEVER' AND is_identity = 'NO'";
    const INDEXES: &str = "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i
        WHERE i.indrelid = 'sessions'::regclass
            AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)";
    let columns = database.query(COLUMNS, &[]).await?;
    let columns: Vec<String> = columns.iter().map(|row| row.get(0)).collect();
    let value = |column: &String| match column.as_str() {
        "id" => "gen_random_uuid()".to_owned(),
        "place" => "s.place - n".to_owned(),
        "session_id" => "'2026-01-01_copy-' || n".to_owned(),
        "body_key" => "s.body_key || n".to_owned(),
        other => format!("s.{other}"),
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    let multiply = format!(
        "INSERT INTO sessions ({}) SELECT {} FROM sessions s, generate_series(1::bigint, {}) n",
        columns.join(", "),
        values.join(", "),
        SESSIONS - 1
    );
    let indexes = database.query(INDEXES, &[]).await?;
    let indexes: Vec<(String, String)> = indexes.iter().map(|row| (row.get(0), row.get(1))).collect();
    // Foreign keys are not checked row by row.
    let mut statements =
        vec!["SET session_replication_role = replica".to_owned(), "SET maintenance_work_mem = '512MB'".to_owned()];
    statements.extend(indexes.iter().map(|(name, _)| format!("DROP INDEX {name}")));
    statements.push(multiply);
    statements.extend(indexes.into_iter().map(|(_, definition)| definition));
    for table in ["session_counts", "session_totals"] {
        statements.push(format!("UPDATE {table} SET sessions = {SESSIONS} WHERE sessions > 0"));
    }
    statements.push("VACUUM ANALYZE sessions".to_owned());
    for statement in statements {
        database.batch_execute(&statement).await?;
    }
    Ok(())
}

pub fn measure() -> Result {
    let nodes = Nodes::create()?;
    let daemon = Daemon::start(&nodes.homes[0]);
    let mut client = daemon.client();
    client.init("x");
    client.append("x", "one");
    client.save("x", "kept");
    nodes.runtime.block_on(multiply_rows(&nodes.database))?;
    let params = HistoryParams { agent: Some("x".into()), limit: Some(PAGE), ..Default::default() };
    let page = client.call::<History>(&params)?;
    print_report(format_args!("{} sessions, of which {} are listed", page.total, page.sessions.len()));
    let sql = "SELECT s.* FROM sessions s WHERE agent_id = (SELECT id FROM agents WHERE name = 'x')
         ORDER BY place DESC, serial DESC LIMIT 20";
    let query = nodes.runtime.block_on(nodes.database.prepare(sql))?;
    let bare = || -> Duration {
        time(|| {
            let rows = nodes.runtime.block_on(nodes.database.query(&query, &[])).expect("rows");
            assert_eq!(rows.len() as u64, PAGE);
        })
    };
    let page = || time(|| assert_eq!(client.call::<History>(&params).expect("a page").sessions.len() as u64, PAGE));
    print_report(measure_paired("page of 1,000,000 sessions, to a query for its rows", 1.3, ROUNDS, bare, page));
    Ok(())
}
