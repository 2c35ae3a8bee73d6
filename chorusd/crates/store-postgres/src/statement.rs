//! Statements with their parameters, which are sent together.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

/// A statement and its parameters.
pub(crate) struct Call {
    sql: &'static str,
    params: Vec<Box<dyn ToSql + Send + Sync>>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl Call {
    /// Creates a call of `sql`, which has the parameters `$1`, `$2` and so on.
    pub(crate) fn new(sql: &'static str, params: Vec<Box<dyn ToSql + Send + Sync>>) -> Self {
        Self { sql, params }
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect()
    }
}

/// Boxes the parameters of a [`Call`].
macro_rules! call {
    ($sql:expr $(, $param:expr)* $(,)?) => {
        $crate::statement::Call::new($sql, vec![$(Box::new($param)),*])
    };
}
pub(crate) use call;

/// Statements that were prepared on one connection.
#[derive(Debug, Default)]
pub(crate) struct Prepared(HashMap<&'static str, Statement>);

impl Prepared {
    /// Sends all calls in one go, in order, and returns the rows of each.
    ///
    /// # Errors
    /// Returns the first error. Calls after one that failed may have been carried out, unless a transaction is open.
    pub(crate) async fn send_all<'a>(
        &mut self,
        client: &Client,
        calls: impl Iterator<Item = &'a Call> + Clone,
    ) -> Result<Vec<Vec<Row>>, Error> {
        for call in calls.clone() {
            if !self.0.contains_key(call.sql) {
                let statement = client.prepare(call.sql).await?;
                self.0.insert(call.sql, statement);
            }
        }
        let mut waiting: Vec<_> = calls
            .filter_map(|call| {
                let statement = self.0.get(call.sql)?;
                Some(async move { client.query(statement, &call.params()).await })
            })
            .map(|call| (Box::pin(call), None))
            .collect();
        // A request is sent when its future is polled first. Answers come in the same order.
        poll_fn(|cx| {
            for (call, answer) in &mut waiting {
                if let Poll::Ready(ready) = Pin::new(call).as_mut().poll(cx) {
                    *answer = Some(ready);
                }
            }
            Poll::Ready(())
        })
        .await;
        let mut rows = Vec::with_capacity(waiting.len());
        let mut failed = None;
        for (call, answer) in waiting {
            match match answer {
                Some(answer) => answer,
                None => call.await,
            } {
                Ok(answer) => rows.push(answer),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        failed.map_or(Ok(rows), Err)
    }
}
