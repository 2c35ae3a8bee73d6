//! Errors of the database as errors for whoever made the request.

use chorus_base::error::{Error, MAYBE_STORED_HINT};
use chorus_catalog::CHANGED_AUDIT_HINT;
use chorus_catalog::name_taken_error;
use chorus_proto::ErrorKind;
use tokio_postgres::error::SqlState;

/// The writer is not the newest connection of its node.
pub(crate) const OTHER_WRITER: &str = "CH001";

/// The index by which no two agents that are not destroyed have the same name.
const NAMES_OF_AGENTS: &str = "agents_active";

/// The agent has another epoch.
pub(crate) const OTHER_EPOCH: &str = "CH002";

/// A record does not follow the newest one of its context.
const NO_SUCCESSOR: &str = "CH003";

/// There are as many as there may be; the message is their number.
const LIMIT_REACHED: &str = "CH004";

/// A row of the audit log was changed, so that none can follow it.
const CHANGED_AUDIT: &str = "CH005";

/// Another node owns the agent of a session.
const OTHER_OWNER: &str = "CH010";

/// The agent already has a session with this name, or another session has the id.
const SESSION_EXISTS: &str = "CH011";

/// The lease of a part of the connection to Discord has another epoch.
const OTHER_LEASE: &str = "CH020";

/// Why a transaction was not committed, or perhaps not.
#[derive(Debug)]
pub(crate) enum TransactionError {
    /// The connection ended: it is unknown whether the transaction was committed.
    Disconnected(tokio_postgres::Error),
    /// The database refused it: nothing was committed.
    Refused(tokio_postgres::Error),
}

impl TransactionError {
    /// Tells whether the server ended the connection, or refused a statement.
    pub(crate) fn new(failure: tokio_postgres::Error) -> Self {
        match failure.code() {
            Some(code) if !ends_the_connection(code) => Self::Refused(failure),
            _ => Self::Disconnected(failure),
        }
    }
}

/// True for errors after which the connection is useless: the server stops, or became a standby.
fn ends_the_connection(code: &SqlState) -> bool {
    [
        &SqlState::ADMIN_SHUTDOWN,
        &SqlState::CRASH_SHUTDOWN,
        &SqlState::CANNOT_CONNECT_NOW,
        &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        &SqlState::READ_ONLY_SQL_TRANSACTION,
        &SqlState::TOO_MANY_CONNECTIONS,
    ]
    .contains(&code)
        || code.code().starts_with("08")
}

/// True for errors that are gone if the same transaction is tried once more.
pub(crate) fn is_transient(failure: &tokio_postgres::Error) -> bool {
    failure
        .code()
        .is_some_and(|code| [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED].contains(&code))
}

/// True if another node has taken the agent over.
pub(crate) fn is_overtaken(failure: &tokio_postgres::Error) -> bool {
    failure.code().is_some_and(|code| code.code() == OTHER_EPOCH)
}

/// True if another process writes as this node.
pub(crate) fn is_other_writer(failure: &tokio_postgres::Error) -> bool {
    failure.code().is_some_and(|code| code.code() == OTHER_WRITER)
}

/// True if a record does not follow the newest one of its context.
pub(crate) fn cannot_follow(failure: &tokio_postgres::Error) -> bool {
    failure.code().is_some_and(|code| code.code() == NO_SUCCESSOR)
}

/// The error of a write that was refused.
pub(crate) fn refused(failure: &tokio_postgres::Error) -> Error {
    if is_overtaken(failure) {
        return overtaken();
    }
    let text = failure.as_db_error().map_or_else(|| failure.to_string(), |known| known.message().to_owned());
    if failure.as_db_error().is_some_and(|known| known.constraint() == Some(NAMES_OF_AGENTS)) {
        return name_taken_error();
    }
    match failure.code() {
        Some(code) if code.code() == OTHER_OWNER => overtaken(),
        Some(code) if code.code() == SESSION_EXISTS => Error::new(ErrorKind::AlreadyExists, text),
        Some(code) if code.code() == OTHER_LEASE => lease_lost(),
        Some(code) if is_unstorable_text(code) => unstorable_text(),
        Some(code) if *code == SqlState::DISK_FULL => Error::new(ErrorKind::DiskFull, format!("PostgreSQL: {text}"))
            .hint("make room on the disk of the database, then try again"),
        Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => {
            Error::new(ErrorKind::Busy, "another node holds the agent's row in PostgreSQL")
                .hint("try again in a moment")
        }
        Some(code) if code.code() == LIMIT_REACHED => Error::new(ErrorKind::LimitReached, text),
        Some(code) if code.code() == CHANGED_AUDIT => {
            Error::new(ErrorKind::StorageFailed, text).hint(CHANGED_AUDIT_HINT)
        }
        _ => Error::new(ErrorKind::StorageFailed, format!("PostgreSQL refused it: {text}"))
            .hint("see the log of the database"),
    }
}

/// The error of a write to an agent that another node has taken over.
pub(crate) fn overtaken() -> Error {
    Error::new(ErrorKind::Busy, "another node has taken the agent over").hint("send the request again")
}

/// The error of a write that needs a lease of the connection to Discord which this process does not hold.
pub(crate) fn lease_lost() -> Error {
    Error::new(ErrorKind::Busy, "another node has this part of the connection to Discord").hint("try again in a moment")
}

/// The error while the database cannot be reached. Nothing was sent.
pub(crate) fn unavailable(failure: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::StorageUnavailable, format!("PostgreSQL cannot be reached: {failure}"))
        .hint("check that it runs; what is in memory can still be read")
}

/// The error of a write whose outcome is unknown, because the daemon ends before it learned it.
pub(crate) fn unknown_outcome() -> Error {
    Error::new(ErrorKind::StorageFailed, "the daemon ended before PostgreSQL answered").hint(MAYBE_STORED_HINT)
}

/// The error of a read.
pub(crate) fn read_failed(failure: &tokio_postgres::Error) -> Error {
    match failure.as_db_error() {
        Some(known) if is_unstorable_text(known.code()) => unstorable_text(),
        Some(known) if ends_the_connection(known.code()) => unavailable(known.message()),
        Some(known) => Error::new(ErrorKind::StorageFailed, format!("PostgreSQL refused it: {}", known.message()))
            .hint("see the log of the database"),
        None => unavailable(failure),
    }
}

/// True for a text with the character NUL, which no text of PostgreSQL can have.
fn is_unstorable_text(code: &SqlState) -> bool {
    *code == SqlState::CHARACTER_NOT_IN_REPERTOIRE
}

fn unstorable_text() -> Error {
    Error::invalid("a text has the character NUL")
}
