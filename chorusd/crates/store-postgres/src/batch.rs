//! Jobs that wait for the writer, and their commit in one transaction.

use std::collections::HashSet;

use chorus_base::error::{Error, Result};
use tokio_postgres::{Client, Row};

use crate::errors::TransactionError;
use crate::ownership::Grant;
use crate::plain_append::PlainAppend;
use crate::statement::{Call, Prepared, call};

/// Rows of each call of a job.
pub(crate) type JobRows = Vec<Vec<Row>>;

/// A write that waits for its commit.
pub(crate) struct Job {
    /// Ownership that it needs; `None` if it concerns no agent.
    pub(crate) grant: Option<Grant>,
    pub(crate) calls: Vec<Call>,
    /// The append that the calls are, if it can be committed together with others of its kind.
    pub(crate) plain: Option<PlainAppend>,
    /// Read in place of the calls if they were committed while their rows were lost; `None` if nobody needs the rows.
    pub(crate) confirm: Option<Call>,
    /// Is given the rows after the commit, or why there is none. True if the rows are those of `confirm`.
    pub(crate) finish: Box<dyn FnOnce(Result<JobRows>, bool) + Send + Sync>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("grant", &self.grant).field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl Job {
    /// Ends the job with an error; nothing was committed.
    pub(crate) fn fail(self, failure: Error) {
        (self.finish)(Err(failure), false);
    }
}

/// Identity of a transaction of a writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchId<'a> {
    pub(crate) node: &'a str,
    pub(crate) boot: i64,
    pub(crate) connection: i64,
    pub(crate) batch: i64,
}

/// Runs the calls of all jobs in one transaction, in order, and returns the rows of each job. All is sent in one go.
pub(crate) async fn commit(
    client: &Client,
    prepared: &mut Prepared,
    id: BatchId<'_>,
    jobs: &[Job],
) -> Result<Vec<JobRows>, TransactionError> {
    let mut head = prepared.route().begin();
    head.push(call!("SELECT begin_batch($1, $2, $3, $4)", id.node.to_owned(), id.boot, id.connection, id.batch));
    let mut fenced = HashSet::new();
    for grant in jobs.iter().filter_map(|job| job.grant) {
        if fenced.insert((grant.agent, grant.epoch)) {
            head.push(call!("SELECT require_epoch($1, $2)", grant.agent, grant.epoch));
        }
    }
    let end = [call!("COMMIT")];
    let calls = head.iter().chain(jobs.iter().flat_map(|job| &job.calls)).chain(&end);
    let mut rows = match prepared.send_all(client, calls).await {
        Ok(rows) => rows.into_iter().skip(head.len()),
        Err(failure) => return Err(TransactionError::new(failure)),
    };
    Ok(jobs.iter().map(|job| rows.by_ref().take(job.calls.len()).collect()).collect())
}
