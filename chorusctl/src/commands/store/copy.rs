//! `chorusctl store copy`: copies the home's databases to PostgreSQL or back.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::Deserialize;

use crate::app::{App, parse_result};
use crate::commands::offline_chorusd::{OfflineWork, run_chorusd};
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;

/// Copy the home's databases to PostgreSQL, or back to SQLite
///
/// No daemon may run. Everything is copied: agents, settings, live and saved conversations, memories, approvals, the audit log, usage,
/// tasks, the state of capture and of Discord. Files in the home stay in their places. The messages of every saved session are compared
/// with their hash, and all rows of both databases with each other. Then the table `[store]` of config.toml is changed, and nothing else
/// in it. The source is not changed.
///
/// PostgreSQL: the database must be empty, or have an unfinished copy of this home. Without an option, config.toml says where its URL is
/// (`url_file`, `url_env` or `credential` in `[store]`; `kind` stays "sqlite" until the copy is complete). If config.toml has the table
/// `[store.sessions]`, the messages of saved sessions are written to that bucket, too.
///
/// SQLite: databases that are in the home are moved to db/before-copy-TIME. Sessions that only the bucket has get files. A database with
/// the audit log of other nodes is refused.
///
/// If it is interrupted, the same command continues it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The new store
    #[arg(long, value_name = "KIND")]
    to: Kind,
    /// File with the URL of PostgreSQL
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    url_file: Option<PathBuf>,
    /// Environment variable with the URL of PostgreSQL
    #[arg(long, value_name = "NAME", conflicts_with = "url_file")]
    url_env: Option<String>,
}

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A database that several daemons can share
    Postgres,
    /// Files in the home
    Sqlite,
}

/// The result that `chorusd copy-store` prints.
#[derive(Debug, Deserialize)]
struct Copied {
    config: PathBuf,
    set_aside: Option<PathBuf>,
    tables: Vec<CopiedTable>,
    sessions: u64,
    sessions_stored: u64,
    sessions_restored: u64,
}

#[derive(Debug, Deserialize)]
struct CopiedTable {
    name: String,
    rows: u64,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("store copy")?;
    if args.to == Kind::Sqlite && (args.url_file.is_some() || args.url_env.is_some()) {
        return Err(Error::usage("--to sqlite copies the database of config.toml")
            .with_hint("leave --url-file and --url-env out"));
    }
    let to = if args.to == Kind::Postgres { "postgres" } else { "sqlite" };
    let mut arguments: Vec<OsString> = vec!["copy-store".into(), "--to".into(), to.into()];
    if let Some(file) = args.url_file {
        arguments.extend(["--url-file".into(), file.into_os_string()]);
    }
    if let Some(variable) = args.url_env {
        arguments.extend(["--url-env".into(), variable.into()]);
    }
    let work = OfflineWork {
        label: "store copy",
        phases: &["copying", "reading sessions", "comparing"],
        if_interrupted: "the same command continues the copy; until then Chorus uses the store that it used before",
    };
    let raw = run_chorusd(app, work, &arguments, None)?;
    if app.stdout.format() != OutputFormat::Text {
        return app.stdout.json_line(&raw);
    }
    print(&parse_result(&raw)?, args.to, app)
}

fn print(copied: &Copied, to: Kind, app: &mut App) -> Result<(), Error> {
    let rows_of = |name: &str| copied.tables.iter().find(|table| table.name == name).map_or(0, |table| table.rows);
    let rows: u64 = copied.tables.iter().map(|table| table.rows).sum();
    let place = if to == Kind::Postgres { "PostgreSQL" } else { "SQLite" };
    app.stdout.status_line(&format!(
        "copied {}, {}, {} and {} to {place}: {}, the same in both",
        pluralize(rows_of("agents"), "agent"),
        pluralize(copied.sessions, "session"),
        pluralize(rows_of("contexts"), "live conversation"),
        pluralize(rows_of("memories"), "memory"),
        pluralize(rows, "row"),
    ))?;
    if copied.sessions_stored > 0 {
        let stored = pluralize(copied.sessions_stored, "session");
        app.stdout.status_line(&format!("wrote the messages of {stored} to the bucket"))?;
    }
    if copied.sessions_restored > 0 {
        let restored = pluralize(copied.sessions_restored, "session");
        app.stdout.status_line(&format!("wrote the files of {restored} from the bucket"))?;
    }
    let path = |path: &PathBuf| sanitize::one_line(&path.to_string_lossy());
    if let Some(aside) = &copied.set_aside {
        app.stdout.status_line(&format!("moved the earlier databases to {}", path(aside)))?;
    }
    app.stdout.status_line(&format!("changed {}; the next command starts a daemon with it", path(&copied.config)))
}
