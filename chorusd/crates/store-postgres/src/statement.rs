//! Statements with their parameters, which are sent together.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use deadpool_postgres::ClientWrapper;
use futures_util::future::BoxFuture;
use tokio_postgres::{Client, Error, Row, Statement};

use crate::param::{Param, typed, values};
use crate::route::Route;

/// A statement and its parameters.
pub(crate) struct Call {
    sql: &'static str,
    params: Vec<Box<dyn Param>>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl Call {
    /// Creates a call of `sql`, which has the parameters `$1`, `$2` and so on.
    pub(crate) fn new(sql: &'static str, params: Vec<Box<dyn Param>>) -> Self {
        Self { sql, params }
    }

    fn params(&self) -> impl Iterator<Item = &dyn Param> {
        self.params.iter().map(|param| &**param)
    }
}

/// Boxes the parameters of a [`Call`].
macro_rules! call {
    ($sql:expr $(, $param:expr)* $(,)?) => {
        $crate::statement::Call::new($sql, vec![$(Box::new($param)),*])
    };
}
pub(crate) use call;

/// Statements that were prepared on one connection. Over a pooler there are none: another server connection may carry out
/// the next transaction, and may know the same name as another statement.
#[derive(Debug)]
pub(crate) struct Prepared {
    route: Route,
    statements: HashMap<&'static str, Statement>,
}

type Sent<'a> = BoxFuture<'a, Result<Vec<Row>, Error>>;

impl Prepared {
    pub(crate) fn new(route: Route) -> Self {
        Self { route, statements: HashMap::new() }
    }

    /// How the connection reaches the server.
    pub(crate) fn route(&self) -> Route {
        self.route
    }

    /// Runs one statement that changes something, in a transaction of only this statement, and returns its rows.
    pub(crate) async fn run_alone(&mut self, client: &Client, call: Call) -> Result<Vec<Row>, Error> {
        if self.route == Route::Pooled {
            return run_alone(client, self.route, call).await;
        }
        Ok(self.send_all(client, std::iter::once(&call)).await?.pop().unwrap_or_default())
    }

    /// Sends all calls in one go, in order, and returns the rows of each.
    ///
    /// # Errors
    /// Returns the first error. Calls after one that failed may have been carried out, unless a transaction is open.
    pub(crate) async fn send_all<'a>(
        &mut self,
        client: &Client,
        calls: impl Iterator<Item = &'a Call> + Clone,
    ) -> Result<Vec<Vec<Row>>, Error> {
        if self.route == Route::Pooled {
            return send_unnamed(client, calls).await;
        }
        for call in calls.clone() {
            if !self.statements.contains_key(call.sql) {
                let statement = client.prepare(call.sql).await?;
                self.statements.insert(call.sql, statement);
            }
        }
        let calls = calls.filter_map(|call| {
            let statement = self.statements.get(call.sql)?;
            let sent: Sent<'_> = Box::pin(async move { client.query(statement, &values(call.params())).await });
            Some(sent)
        });
        send(calls.collect()).await
    }
}

/// Sends all calls in one go, as statements without a name.
async fn send_unnamed<'a>(client: &Client, calls: impl Iterator<Item = &'a Call>) -> Result<Vec<Vec<Row>>, Error> {
    let calls = calls.map(|call| {
        let sent: Sent<'_> = Box::pin(async move { client.query_typed(call.sql, &typed(call.params())).await });
        sent
    });
    send(calls.collect()).await
}

async fn send(calls: Vec<Sent<'_>>) -> Result<Vec<Vec<Row>>, Error> {
    let mut waiting: Vec<_> = calls.into_iter().map(|call| (call, None)).collect();
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

/// Runs one statement that changes something or waits for a lock, in a transaction of only this statement.
pub(crate) async fn run_alone(client: &Client, route: Route, call: Call) -> Result<Vec<Row>, Error> {
    if route == Route::Direct {
        return client.query_typed(call.sql, &typed(call.params())).await;
    }
    let calls = route.begin().into_iter().chain([call, call!("COMMIT")]).collect::<Vec<_>>();
    let mut rows = send_unnamed(client, calls.iter()).await?;
    Ok(rows.swap_remove(calls.len() - 2))
}

/// Runs one statement that only reads, without preparation.
pub(crate) async fn read_once(client: &Client, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>, Error> {
    client.query_typed(sql, &typed(params.iter().copied())).await
}

/// Runs one statement that only reads, prepared once for each connection if the way to the server allows it.
pub(crate) async fn read(
    client: &ClientWrapper,
    route: Route,
    sql: &str,
    params: &[&dyn Param],
) -> Result<Vec<Row>, Error> {
    if route == Route::Pooled {
        return read_once(client, sql, params).await;
    }
    let statement = client.prepare_cached(sql).await?;
    client.query(&statement, &values(params.iter().copied())).await
}
