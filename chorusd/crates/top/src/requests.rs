//! Requests to the daemon and their answers.

use chorus_proto::client_async::AsyncClient;
use chorus_proto::methods::session_branching as branching;
use chorus_proto::methods::{Method, approvals, capture, cluster, context, daemon, search, send, session, tasks};
use chorus_proto::{CallError, ErrorKind, Session};
use chorus_remote::RemoteError;
use uuid::Uuid;

use crate::daemon_link::DaemonLink;
use crate::fleet::Target;

/// Messages of a conversation that are shown.
pub(crate) const MAX_MESSAGES: u64 = 200;
/// Sessions in a history.
const MAX_HISTORY: u64 = 200;
/// Sessions in a tree.
const MAX_TREE: u64 = 1000;
/// Hits of a search.
const MAX_HITS: u64 = 50;
/// Captured conversations that are listed below their program.
const MAX_CAPTURED: u64 = 5;
/// Tasks that are requested, running ones first.
const MAX_TASKS: u64 = 50;

/// The answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Once,
    /// Also allow exactly this action permanently.
    Always,
    /// Also allow what its patterns cover permanently.
    Pattern,
    /// Also allow what else the turn asks about.
    Turn,
    Deny,
}

/// A request to the daemon.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// The daemon with all agents.
    Status,
    /// The daemon without its agents.
    Daemon,
    Agent(String),
    Approvals,
    Tasks,
    Capture,
    Cluster,
    /// The newest conversations of an agent with imported ones.
    Captured(String),
    Messages(Target),
    Send(Target, String),
    Cancel(Target),
    Decide {
        id: String,
        hash: String,
        decision: Decision,
    },
    History(String),
    Restore {
        target: Target,
        session: Uuid,
    },
    Tree(Target),
    /// With the number of the query, because a newer one may have been typed before the answer comes.
    Search {
        query: String,
        number: u64,
    },
    Session {
        agent: String,
        session: String,
    },
}

impl Request {
    /// Returns true if the daemon is the same afterwards.
    fn changes_nothing(&self) -> bool {
        !matches!(self, Self::Send(..) | Self::Cancel(_) | Self::Decide { .. } | Self::Restore { .. })
    }
}

/// The answer to a [`Request`].
#[derive(Debug)]
pub(crate) enum Answer {
    Status(Box<daemon::StatusResult>),
    Approvals(Vec<approvals::Approval>),
    Tasks(Vec<tasks::Task>),
    Capture(Box<capture::StatusResult>),
    Cluster(cluster::StatusResult),
    Sessions(Vec<Session>, u64),
    Messages(Box<context::ShowResult>),
    Restored(Box<context::RestoreResult>),
    Tree(Box<branching::TreeResult>),
    Hits(Box<search::SearchResult>),
    Session(Box<session::GetResult>),
    /// The outcome in words.
    Done(String),
    Sent,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) kind: Option<ErrorKind>,
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Rpc(error) => {
                let kind = Some(error.kind());
                Self { message: error.message, hint: error.data.and_then(|data| data.hint), kind }
            }
            CallError::Io(error) if RemoteError::find_in(&error).is_some() => {
                Self { message: error.to_string(), hint: None, kind: None }
            }
            CallError::Io(_) => Self { message: "lost the connection to the daemon".into(), hint: None, kind: None },
            CallError::Malformed(error) => Self {
                message: format!("invalid reply from the daemon: {error}"),
                hint: Some("chorusd may be of another release: chorusctl daemon restart".into()),
                kind: None,
            },
        }
    }
}

/// Carries out a request over a connection of its own, so that one that takes long does not hold up another.
pub(crate) async fn carry_out(daemon: &DaemonLink, request: Request) -> Result<Answer, Failure> {
    if let Request::Send(target, text) = request {
        return send(daemon, target, text).await;
    }
    // What was sent over a line that has died meanwhile may be repeated only if it changes nothing.
    if request.changes_nothing()
        && let Some(mut client) = daemon.take_idle()
        && let Ok(answer) = answer(&mut client, request.clone()).await
    {
        daemon.give_back(client);
        return Ok(answer);
    }
    let mut client = daemon.connect().await.map_err(CallError::from)?;
    let answer = answer(&mut client, request).await?;
    daemon.give_back(client);
    Ok(answer)
}

/// Sends a message. If the line to another machine is lost, sends it again: by its key, the daemon knows it.
async fn send(daemon: &DaemonLink, target: Target, text: String) -> Result<Answer, Failure> {
    let (agent, conversation) = target.params();
    let key = Some(Uuid::new_v4().to_string());
    let params = send::SendParams { agent, conversation, text, key, ..Default::default() };
    let mut attempt = 0;
    loop {
        let sent = match daemon.connect().await {
            Ok(mut client) => call::<send::Send>(&mut client, params.clone()).await,
            Err(error) => Err(error.into()),
        };
        match sent {
            Ok(_) => return Ok(Answer::Sent),
            Err(CallError::Io(_)) if daemon.wait_to_send_again(attempt).await => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

async fn answer(caller: &mut AsyncClient, request: Request) -> Result<Answer, Failure> {
    Ok(match request {
        Request::Status => status(caller, daemon::StatusParams::default()).await?,
        Request::Daemon => status(caller, daemon::StatusParams { agent: None, limit: Some(0) }).await?,
        Request::Agent(name) => status(caller, daemon::StatusParams { agent: Some(name), limit: None }).await?,
        Request::Approvals => {
            Answer::Approvals(call::<approvals::List>(caller, approvals::ListParams::default()).await?.approvals)
        }
        Request::Tasks => {
            let params = tasks::ListParams { all_agents: true, limit: Some(MAX_TASKS), ..Default::default() };
            Answer::Tasks(call::<tasks::List>(caller, params).await?.tasks)
        }
        Request::Capture => {
            Answer::Capture(Box::new(call::<capture::Status>(caller, capture::StatusParams::default()).await?))
        }
        Request::Cluster => Answer::Cluster(call::<cluster::Status>(caller, cluster::StatusParams::default()).await?),
        Request::Captured(agent) => history(caller, agent, MAX_CAPTURED).await?,
        Request::History(agent) => history(caller, agent, MAX_HISTORY).await?,
        Request::Messages(target) => {
            let (agent, conversation) = target.params();
            let params = context::ShowParams { agent, conversation, last: Some(MAX_MESSAGES), ..Default::default() };
            Answer::Messages(Box::new(call::<context::Show>(caller, params).await?))
        }
        Request::Send(..) => Answer::Sent,
        Request::Cancel(target) => {
            let (agent, conversation) = target.params();
            let params = send::CancelParams { agent, conversation, turn_id: None };
            let turn = call::<send::Cancel>(caller, params).await?.turn_id;
            Answer::Done(if turn.is_some() { "cancelled the turn" } else { "no turn is running" }.into())
        }
        Request::Decide { id, hash, decision } => Answer::Done(decide(caller, id, hash, decision).await?),
        Request::Restore { target, session } => {
            let (agent, conversation) = target.params();
            let params =
                context::RestoreParams { agent, conversation, session: session.to_string(), ..Default::default() };
            Answer::Restored(Box::new(call::<context::Restore>(caller, params).await?))
        }
        Request::Tree(target) => {
            let (agent, conversation) = target.params();
            let params = branching::TreeParams { agent, conversation, limit: Some(MAX_TREE), ..Default::default() };
            Answer::Tree(Box::new(call::<branching::Tree>(caller, params).await?))
        }
        Request::Search { query, .. } => {
            let params = search::SearchParams { query, all_agents: true, limit: Some(MAX_HITS), ..Default::default() };
            Answer::Hits(Box::new(call::<search::Search>(caller, params).await?))
        }
        Request::Session { agent, session } => read_session(caller, agent, session).await?,
    })
}

async fn call<M: Method>(client: &mut AsyncClient, params: M::Params) -> Result<M::Result, CallError> {
    client.call::<M>(&params).await
}

async fn status(client: &mut AsyncClient, params: daemon::StatusParams) -> Result<Answer, CallError> {
    Ok(Answer::Status(Box::new(call::<daemon::Status>(client, params).await?)))
}

async fn history(client: &mut AsyncClient, agent: String, limit: u64) -> Result<Answer, CallError> {
    let params =
        context::HistoryParams { agent: Some(agent), limit: Some(limit), keep_numbers: true, ..Default::default() };
    let page = call::<context::History>(client, params).await?;
    Ok(Answer::Sessions(page.sessions, page.total))
}

/// Reads the last messages of a session.
async fn read_session(client: &mut AsyncClient, agent: String, session: String) -> Result<Answer, CallError> {
    let params = |offset, limit| session::GetParams {
        agent: Some(agent.clone()),
        session: session.clone(),
        offset,
        limit: Some(limit),
        ..Default::default()
    };
    let first = call::<session::Get>(client, params(None, 1)).await?;
    let offset = first.session.header.message_count.saturating_sub(MAX_MESSAGES);
    let mut shown = call::<session::Get>(client, params(Some(offset), MAX_MESSAGES)).await?;
    // Fewer messages are returned if they are long.
    while let Some(next) = shown.next {
        let page = call::<session::Get>(client, params(Some(next), MAX_MESSAGES)).await?;
        shown.messages.extend(page.messages);
        shown.next = page.next.filter(|after| *after > next);
    }
    Ok(Answer::Session(Box::new(shown)))
}

async fn decide(client: &mut AsyncClient, id: String, hash: String, decision: Decision) -> Result<String, CallError> {
    if decision == Decision::Deny {
        let denied = call::<approvals::Deny>(client, approvals::DenyParams { id, reason: None }).await?;
        return Ok(format!("denied {}", denied.approval.id));
    }
    let params = approvals::ApproveParams {
        id,
        always: decision == Decision::Always,
        pattern: decision == Decision::Pattern,
        turn: decision == Decision::Turn,
        hash: Some(hash),
    };
    let approved = call::<approvals::Approve>(client, params).await?;
    let id = &approved.approval.id;
    Ok(match (approved.warnings.first(), approved.always, approved.turn) {
        (Some(warning), ..) => format!("approved {id}; {warning}"),
        (None, true, _) => format!("approved {id}, and always from now on"),
        (None, _, true) => format!("approved {id}, and what else this turn asks about"),
        _ => format!("approved {id}"),
    })
}
