//! The tables of Discord in the database of a home, whichever it is, for what no face of the daemon tells or could change.

use chorus_store_postgres::DatabaseUrl;
use chorus_tests::{DEADLINE, Home};
use rusqlite::types::ValueRef;
use tokio_postgres::SimpleQueryMessage;

/// Runs a statement in the words of SQLite. Returns its rows as text, and "" for NULL; `None` if the database cannot be read
/// now.
pub fn rows(home: &Home, statement: &str) -> Option<Vec<Vec<String>>> {
    match home.database_url() {
        Some(url) => postgres_rows(url, &statement.replace("claims", "discord_claims").replace("asked", "request")),
        None => sqlite_rows(home, statement).ok(),
    }
}

/// Returns the number that a statement finds.
pub fn number(home: &Home, statement: &str) -> Option<i64> {
    rows(home, statement)?.first()?.first()?.parse().ok()
}

/// Runs a statement that changes rows. Returns how many.
pub fn change(home: &Home, statement: &str) -> usize {
    rows(home, &format!("{statement} RETURNING 1")).expect("a change").len()
}

fn sqlite_rows(home: &Home, statement: &str) -> rusqlite::Result<Vec<Vec<String>>> {
    let db = rusqlite::Connection::open(home.path.join("db/chorus.db"))?;
    db.busy_timeout(DEADLINE)?;
    let mut prepared = db.prepare(statement)?;
    let columns = prepared.column_count();
    let text = |value: ValueRef<'_>| match value {
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    };
    let found = prepared.query_map([], |row| (0..columns).map(|at| Ok(text(row.get_ref(at)?))).collect())?;
    found.collect()
}

fn postgres_rows(url: &str, statement: &str) -> Option<Vec<Vec<String>>> {
    let query = async {
        let client = DatabaseUrl::parse(url).ok()?.connect().await.ok()?;
        let found = client.simple_query(statement).await.ok()?;
        let of_row = |message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect())
            }
            _ => None,
        };
        Some(found.into_iter().filter_map(of_row).collect())
    };
    // A test may be asynchronous itself.
    std::thread::scope(|scope| {
        let task = || tokio::runtime::Runtime::new().expect("a runtime").block_on(query);
        scope.spawn(task).join().expect("a query")
    })
}
