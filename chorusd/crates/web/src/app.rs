//! The parts that all pages use, and requests to the daemon.

use std::io;
use std::sync::Arc;

use chorus_daemon_client::Failure;
use chorus_proto::client_async::AsyncClient;
use chorus_proto::methods::Method;
use chorus_proto::methods::daemon::{Status, StatusParams, StatusResult};
use chorus_proto::paths::InstancePaths;
use chorus_proto::{CallError, ErrorKind};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::hub::Hub;
use crate::login::Login;

/// The parts that all pages use.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) places: Arc<InstancePaths>,
    pub(crate) port: u16,
    pub(crate) is_read_only: bool,
    pub(crate) login: Login,
    pub(crate) hub: Arc<Hub>,
    pub(crate) zone: TimeZone,
}

impl App {
    /// Opens a connection, for the requests of one page.
    pub(crate) async fn connect(&self) -> Result<Daemon, Failure> {
        match AsyncClient::connect_to(&self.places).await {
            Ok(client) => Ok(Daemon { client }),
            Err(error) => Err(connect_failure(&error)),
        }
    }
}

fn connect_failure(error: &io::Error) -> Failure {
    let (message, hint) = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ("the daemon is not running".to_owned(), "start it: chorusctl daemon start")
        }
        _ => (format!("cannot connect to the daemon: {error}"), "check it: chorusctl daemon status"),
    };
    Failure { message, hint: Some(hint.into()), kind: None }
}

/// A connection to the daemon.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) client: AsyncClient,
}

impl Daemon {
    pub(crate) async fn call<M: Method>(&mut self, params: M::Params) -> Result<M::Result, Failure> {
        self.client.call::<M>(&params).await.map_err(Failure::from)
    }

    /// Returns the daemon's state with at most `limit` agents.
    pub(crate) async fn status(&mut self, limit: u64) -> Result<Overview, Failure> {
        let status = self.call::<Status>(StatusParams { agent: None, limit: Some(limit) }).await?;
        Ok(Overview { status, now: Timestamp::now() })
    }

    /// Returns one agent.
    pub(crate) async fn agent(&mut self, name: &str) -> Result<chorus_proto::Agent, Failure> {
        let params = StatusParams { agent: Some(name.to_owned()), limit: None };
        let mut status = self.call::<Status>(params).await?;
        let missing =
            || Failure { message: format!("no agent `{name}`"), hint: None, kind: Some(ErrorKind::AgentNotFound) };
        status.agents.pop().ok_or_else(missing)
    }

    /// Sends a request and waits for its first progress or its answer. Returns an error that comes instead.
    pub(crate) async fn start<M: Method>(&mut self, params: &M::Params) -> Result<(), Failure> {
        self.client.send_request(M::NAME, params).await.map_err(Failure::from)?;
        self.client.next_notification().await.map_err(Failure::from)?;
        Ok(())
    }

    /// Reads what else comes until the answer.
    pub(crate) async fn finish(mut self) -> Result<(), CallError> {
        while self.client.next_notification().await?.is_some() {}
        Ok(())
    }
}

/// The state of the daemon that a page shows.
#[derive(Debug)]
pub(crate) struct Overview {
    pub(crate) status: StatusResult,
    pub(crate) now: Timestamp,
}

impl Overview {
    /// Returns the number of pending approvals of all agents.
    pub(crate) fn approvals(&self) -> u64 {
        self.status.totals.map_or(0, |totals| totals.approvals)
    }

    /// Returns the number of all agents.
    pub(crate) fn agents(&self) -> u64 {
        self.status.totals.map_or(self.status.agents.len() as u64, |totals| totals.active + totals.idle)
    }
}
