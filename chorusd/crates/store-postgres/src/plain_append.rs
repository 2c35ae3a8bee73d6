//! Appends of one message to a context that exists, which are committed together by one statement.
//!
//! This is what most appends are. Sent as any other write, each would be a statement of its own, between four others.

use std::collections::HashSet;

use chorus_journal::{AppendRequest, to_nanos};
use chorus_session::stored_message::Totals;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::batch::{BatchId, Job, JobRows};
use crate::errors::TransactionError;
use crate::ownership::Grant;
use crate::rows::to_bigint;
use crate::statement::{Call, Prepared, call};

/// Limit of bytes of a record: a larger one gains nothing, and would be in memory once more.
const MAX_BYTES: usize = 64 * 1024;

/// The parts of such an append.
pub(crate) struct PlainAppend {
    context: i64,
    number: i64,
    envelope: Vec<u8>,
    queries: i64,
    chars: i64,
    at: i64,
    deadline: Option<i64>,
    agent_name: String,
    conversation_name: Option<String>,
}

impl PlainAppend {
    /// Returns the parts of an append with these envelopes; `None` if it is another kind.
    pub(crate) fn of(append: &AppendRequest, envelopes: &[Vec<u8>]) -> Option<Self> {
        let [envelope] = envelopes else { return None };
        if append.first == 0 || append.key.is_some() || append.mark.is_some() || envelope.len() > MAX_BYTES {
            return None;
        }
        let totals = Totals::count(&append.messages);
        Some(Self {
            context: append.context.0,
            number: i64::from(append.first),
            envelope: envelope.clone(),
            queries: to_bigint(totals.queries),
            chars: to_bigint(totals.chars),
            at: to_nanos(append.at),
            deadline: append.deadline.map(to_nanos),
            agent_name: append.agent_name.clone(),
            conversation_name: append.conversation_name.clone(),
        })
    }
}

/// Returns the appends that the jobs are; `None` if one of them is something else, or two are to the same context.
pub(crate) fn plain_appends(jobs: &[Job]) -> Option<Vec<(Grant, &PlainAppend)>> {
    let mut contexts = HashSet::with_capacity(jobs.len());
    jobs.iter()
        .map(|job| {
            let append = job.plain.as_ref().filter(|append| contexts.insert(append.context))?;
            Some((job.grant?, append))
        })
        .collect()
}

/// Commits the appends in one transaction, and returns the rows of each.
pub(crate) async fn commit(
    client: &Client,
    prepared: &mut Prepared,
    id: BatchId<'_>,
    appends: &[(Grant, &PlainAppend)],
) -> Result<Vec<JobRows>, TransactionError> {
    let append = match appends {
        [(grant, append)] => append_one(id, *grant, append),
        several => append_each(id, several),
    };
    let rows = prepared.run_alone(client, append).await.map_err(TransactionError::new)?;
    Ok(rows.into_iter().map(|row: Row| vec![vec![row]]).collect())
}

fn append_one(id: BatchId<'_>, grant: Grant, append: &PlainAppend) -> Call {
    call!(
        "SELECT * FROM append_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        id.node.to_owned(),
        id.boot,
        id.connection,
        id.batch,
        grant.agent,
        grant.epoch,
        append.context,
        append.number,
        append.envelope.clone(),
        append.queries,
        append.chars,
        append.at,
        append.deadline,
        append.agent_name.clone(),
        append.conversation_name.clone(),
    )
}

fn append_each(id: BatchId<'_>, appends: &[(Grant, &PlainAppend)]) -> Call {
    fn column<T>(appends: &[(Grant, &PlainAppend)], of: impl Fn(&PlainAppend) -> T) -> Vec<T> {
        appends.iter().map(|(_, append)| of(append)).collect()
    }
    let agents: Vec<Uuid> = appends.iter().map(|(grant, _)| grant.agent).collect();
    let epochs: Vec<i64> = appends.iter().map(|(grant, _)| grant.epoch).collect();
    call!(
        "SELECT * FROM append_each($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        id.node.to_owned(),
        id.boot,
        id.connection,
        id.batch,
        agents,
        epochs,
        column(appends, |append| append.context),
        column(appends, |append| append.number),
        column(appends, |append| append.envelope.clone()),
        column(appends, |append| append.queries),
        column(appends, |append| append.chars),
        column(appends, |append| append.at),
        column(appends, |append| append.deadline),
        column(appends, |append| append.agent_name.clone()),
        column(appends, |append| append.conversation_name.clone()),
    )
}
