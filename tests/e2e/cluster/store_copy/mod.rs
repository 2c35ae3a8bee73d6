//! `chorusctl store copy`: what a daemon shows is the same before and after, whichever database has it.

mod compressed;
mod interrupted;
mod refused;
mod round_trip;

use std::path::PathBuf;

use chorus_proto::Client;
use chorus_store_postgres::DatabaseUrl;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{Output, chorusctl};
use chorus_tests::postgres::Database;
use chorus_tests::wait::DEADLINE;
use chorus_tests::{Daemon, Home, home, skip, wait_until};
use serde_json::{Value, json};

/// A home, and an empty database for it.
struct CopiedHome {
    home: Home,
}

impl CopiedHome {
    /// Makes them, with a configuration; `None` if PostgreSQL is not installed, or the home's daemon would use it from the start.
    fn create(config: &str) -> Option<Self> {
        if std::env::var_os("CHORUS_TEST_STORE").is_some() {
            skip("the store of these homes has to be in SQLite first");
            return None;
        }
        let Ok(url) = Database::create_blocking() else {
            skip("PostgreSQL is not installed here");
            return None;
        };
        let home = home!();
        home.write_config(&format!("# what is mine\n{config}\n[cluster]\nnode = \"a\" # the first\n"));
        chorus_base::private_fs::write_private(&home.path.join("url"), url.as_bytes()).expect("the URL");
        Some(Self { home })
    }

    fn url_file(&self) -> PathBuf {
        self.home.path.join("url")
    }

    fn to_postgres(&self) -> Output {
        let file = self.url_file();
        let file = file.to_str().expect("UTF-8");
        chorusctl(&self.home, ["--json", "store", "copy", "--to", "postgres", "--url-file", file])
    }

    fn to_sqlite(&self) -> Output {
        chorusctl(&self.home, ["--json", "store", "copy", "--to", "sqlite"])
    }

    /// Returns the number that a query of its database has.
    fn query(&self, sql: &str) -> i64 {
        self.with_database(async |client| client.query_one(sql, &[]).await.expect("a row").get(0))
    }

    fn execute(&self, sql: &str) {
        self.with_database(async |client| client.batch_execute(sql).await.expect("a change"));
    }

    fn with_database<T>(&self, work: impl AsyncFnOnce(tokio_postgres::Client) -> T) -> T {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let url = DatabaseUrl::from_file(&self.url_file()).expect("the URL");
            work(url.connect().await.expect("a connection")).await
        })
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.home.path.join("config.toml")).expect("config.toml")
    }

    /// Runs `work` with a daemon, and stops it, which saves what is live.
    fn with_daemon<T>(&self, work: impl FnOnce(&mut Client) -> T) -> T {
        let daemon = Daemon::start(&self.home);
        let done = work(&mut daemon.client());
        assert!(daemon.terminate().success());
        done
    }

    /// Shows everything with a daemon that has nothing to save.
    fn everything(&self, agents: &[&str]) -> Vec<(String, Value)> {
        self.with_daemon(|client| everything(client, agents))
    }
}

/// Counts the rows of a table in the result of a copy.
fn rows(copied: &Value, table: &str) -> u64 {
    let tables = copied["tables"].as_array().expect("the tables");
    let found = tables.iter().find(|found| found["name"] == table).expect("the table");
    found["rows"].as_u64().expect("a number")
}

fn call(client: &mut Client, method: &str, params: &Value) -> Value {
    let answer = client.call_raw(method, params, &mut |_| ()).expect(method);
    serde_json::from_str(answer.get()).expect("JSON")
}

/// Everything that is stored, as a daemon shows it.
fn everything(client: &mut Client, agents: &[&str]) -> Vec<(String, Value)> {
    let mut asked = vec![
        ("agent.list", json!({"all": true})),
        ("context.history", json!({"all_agents": true, "limit": 1000})),
        ("audit", json!({"limit": 1000})),
        ("audit.verify", json!({})),
        ("approvals.list", json!({"all": true})),
        ("tasks.list", json!({"all_agents": true})),
        ("usage", json!({"by": "model"})),
        ("trash.list", json!({})),
    ];
    for agent in agents {
        let of = json!({"agent": agent});
        asked.extend(["context.show", "memory.list", "notes.list"].map(|method| (method, of.clone())));
        asked.push(("conversations.list", json!({"agent": agent, "all": true})));
    }
    let mut shown: Vec<(String, Value)> = asked
        .into_iter()
        .map(|(method, params)| (format!("{method} {params}"), call(client, method, &params)))
        .collect();
    for agent in agents {
        for session in client.history(agent) {
            let params = json!({"agent": agent, "session": session.header.session_id});
            // A summary that a start has begun to make is there, or has failed, soon.
            let session = wait_until("its summary", DEADLINE, || {
                let session = call(client, "session.get", &params);
                session["summary_pending"].is_null().then_some(session)
            });
            shown.push((format!("session.get {params}"), session));
        }
    }
    shown.iter_mut().for_each(|(_, answer)| drop_what_passes(answer));
    shown
}

/// Removes what a request or the time changes: when a session was last used, how long ago something was, what was used
/// today, and calls of models, because a summary may have failed since.
fn drop_what_passes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in [
                "last_used_at",
                "today",
                "calls",
                "unpriced_calls",
                "idle_deadline_in_ms",
                "idle_in_ms",
                "until",
                "now",
            ] {
                fields.remove(name);
            }
            fields.values_mut().for_each(drop_what_passes);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_what_passes),
        _ => {}
    }
}

fn assert_same(before: &[(String, Value)], after: &[(String, Value)]) {
    for ((asked, before), (_, after)) in before.iter().zip(after) {
        assert_eq!(before, after, "{asked}");
    }
    assert_eq!(before.len(), after.len());
}
