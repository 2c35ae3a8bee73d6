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

/// Multiplies the only row: the bodies do not exist, which the list does not look at.
async fn multiply_rows(database: &Client) -> Result {
    const COLUMNS: &str = "SELECT string_agg(column_name::text, ', ') FROM information_schema.columns
        WHERE table_name = 'sessions' AND is_generated = 'NEVER' AND is_identity = 'NO'";
    let columns: String = database.query_one(COLUMNS, &[]).await?.get(0);
    let multiply = format!(
        "INSERT INTO sessions ({columns})
         SELECT {columns} FROM (SELECT (jsonb_populate_record(s, jsonb_build_object(
             'id', gen_random_uuid(), 'place', s.place - n,
             'session_id', '2026-01-01_copy-' || n, 'body_key', s.body_key || n))).*
         FROM sessions s, generate_series(1::bigint, $1) n) AS copies"
    );
    database.execute(&multiply, &[&(SESSIONS - 1)]).await?;
    Ok(database.batch_execute("VACUUM ANALYZE").await?)
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
