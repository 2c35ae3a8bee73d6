//! How connections reach the server: directly, or through a pooler such as pgbouncer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::statement::{Call, call};

/// Settings of each connection: the database ends a transaction that stays open without a statement, which would keep an
/// agent's row locked, and notices a node that is gone. It compiles no queries, which takes longer than ours run.
const SETTINGS: &str = "-c idle_in_transaction_session_timeout=5s -c lock_timeout=10s -c tcp_user_timeout=10s \
    -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 \
    -c default_transaction_isolation=read\\ committed -c jit=off -c chorus.direct=yes";

/// The settings without which a transaction could lock an agent's row for long, until the end of a transaction.
pub(crate) const TRANSACTION_SETTINGS: &str =
    "SELECT set_config('idle_in_transaction_session_timeout', '5s', true), set_config('lock_timeout', '10s', true)";

/// Way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// One server process serves the connection. It has the settings from its start on.
    Direct,
    /// A pooler gives each transaction to any of its server connections. Nothing outlives a transaction: its settings are
    /// set inside of it, and no statement has a name.
    Pooled,
}

impl Route {
    /// The calls that begin a transaction.
    pub(crate) fn begin(self) -> Vec<Call> {
        match self {
            Self::Direct => vec![call!("BEGIN")],
            Self::Pooled => vec![call!("BEGIN ISOLATION LEVEL READ COMMITTED"), call!(TRANSACTION_SETTINGS)],
        }
    }
}

/// The way that the connections of a URL were found to take. A pooler is found out by the startup options, which it
/// refuses or swallows: the server then does not know the setting `chorus.direct`.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownRoute {
    pooled: Arc<AtomicBool>,
}

/// Asks a server for the options of the connection's start. One column, null if they did not arrive.
pub(crate) const DIRECT_QUERY: &str = "SELECT current_setting('chorus.direct', true) = 'yes'";

impl KnownRoute {
    pub(crate) fn get(&self) -> Route {
        if self.pooled.load(Ordering::Relaxed) { Route::Pooled } else { Route::Direct }
    }

    /// Records that a pooler is on the way.
    pub(crate) fn set_pooled(&self) {
        if !self.pooled.swap(true, Ordering::Relaxed) {
            tracing::info!("PostgreSQL is reached through a pooler: settings are sent with each transaction");
        }
    }
}

/// The startup options of a direct connection, before those that the URL has.
pub(crate) fn startup_options(given: Option<&str>) -> String {
    match given {
        Some(given) => format!("{SETTINGS} {given}"),
        None => SETTINGS.to_owned(),
    }
}

/// True if a pooler refused the startup options.
pub(crate) fn refused_options(failure: &tokio_postgres::Error) -> bool {
    failure.as_db_error().is_some_and(|known| known.message().contains("unsupported startup parameter"))
}
