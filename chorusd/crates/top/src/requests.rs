//! Requests to the daemon and their answers.

use std::time::Duration;

use chorus_proto::client_async::AsyncClient;
use chorus_proto::methods::session_branching as branching;
use chorus_proto::methods::{Method, approvals, capture, cluster, context, daemon, search, send, session, tasks};
use chorus_proto::{CallError, ErrorKind, Session};
use chorus_remote::RemoteError;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::connection::Incoming;
use crate::daemon_link::DaemonLink;
use crate::fleet::Target;

/// Messages of a conversation that are shown at first, and that are added above them.
const PAGE_MESSAGES: u64 = 200;
/// The limit on messages of a conversation that are shown.
pub(crate) const MAX_MESSAGES: u64 = 5000;
/// Messages before one that was found.
const MESSAGES_BEFORE: u64 = 20;
/// Sessions in a history.
const MAX_HISTORY: u64 = 200;
/// Sessions in a tree.
const MAX_TREE: u64 = 1000;
/// Hits of a search.
const MAX_HITS: u64 = 50;
/// Captured conversations that are listed below their program.
const MAX_CAPTURED: u64 = 5;
/// Tasks that are requested, running ones first.
pub(crate) const MAX_TASKS: u64 = 50;

/// The time after which a request is given up, and an action of which the daemon may do more.
const SHORT_LIMIT: Duration = Duration::from_secs(20);
const LONG_LIMIT: Duration = Duration::from_secs(120);

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

/// The messages of a conversation that are read: up to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Last(u64),
    /// As far as the message with this number, from 1.
    Message(u64),
}

impl Reach {
    /// The messages that are shown at first.
    pub(crate) const START: Self = Self::Last(PAGE_MESSAGES);

    /// Returns one that has a page more than `shown` messages.
    pub(crate) fn further(shown: usize) -> Self {
        Self::Last((shown as u64 + PAGE_MESSAGES).min(MAX_MESSAGES))
    }

    /// Returns the number of messages to read of `total`.
    fn count(self, total: u64) -> u64 {
        let count = match self {
            Self::Last(count) => count,
            Self::Message(number) => (total + MESSAGES_BEFORE).saturating_sub(number).max(PAGE_MESSAGES),
        };
        count.min(MAX_MESSAGES).min(total)
    }
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
    Messages(Target, Reach),
    /// A message. Sent again with the same key, it is recorded once.
    Send {
        target: Target,
        text: String,
        key: String,
    },
    Cancel(Target, Option<Uuid>),
    Decide {
        id: String,
        hash: String,
        decision: Decision,
        /// Why it is denied, for the model.
        reason: Option<String>,
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
        reach: Reach,
    },
}

/// A stage of a message on its way into a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendStage {
    /// The daemon has it in memory. Its turn comes after so many others.
    Queued(u64),
    /// It is recorded, and its turn runs.
    Started,
}

impl SendStage {
    fn of(event: &send::TurnEvent) -> Option<Self> {
        match event {
            send::TurnEvent::Started { .. } => Some(Self::Started),
            send::TurnEvent::Queued { before, .. } => Some(Self::Queued(*before)),
            _ => None,
        }
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

impl Request {
    /// Returns how long its answer may take; `None` for one that takes as long as a turn.
    pub(crate) fn time_limit(&self) -> Option<Duration> {
        match self {
            Self::Send { .. } => None,
            Self::Decide { .. } | Self::Restore { .. } => Some(LONG_LIMIT),
            _ => Some(SHORT_LIMIT),
        }
    }

    /// Returns true if somebody asked for it, and it changes something.
    pub(crate) fn is_action(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Cancel(..) | Self::Decide { .. } | Self::Restore { .. })
    }
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// `None` if the daemon did not answer: it may have carried the request out.
    pub(crate) kind: Option<ErrorKind>,
}

impl Failure {
    /// The failure of a request that was not answered in time.
    pub(crate) fn no_answer() -> Self {
        Self { message: "chorusd does not answer".into(), hint: None, kind: None }
    }

    /// Returns the message with its hint.
    pub(crate) fn text(&self) -> String {
        let hint = self.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}{hint}", self.message)
    }
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
                kind: Some(ErrorKind::Unknown),
            },
        }
    }
}

/// Carries out a request over a connection of its own, so that one that takes long does not hold up another. `progress` gets the first
/// stages of a message that is sent.
pub(crate) async fn carry_out(
    daemon: &DaemonLink,
    request: Request,
    progress: &mpsc::Sender<Incoming>,
) -> Result<Answer, Failure> {
    // What was sent over a line that has died since then may be repeated only if it changes nothing.
    if !request.is_action()
        && let Some(mut client) = daemon.take_idle()
        && let Ok(answer) = answer(&mut client, request.clone(), progress).await
    {
        daemon.give_back(client);
        return Ok(answer);
    }
    let mut client = daemon.connect().await.map_err(CallError::from)?;
    let answer = answer(&mut client, request, progress).await?;
    daemon.give_back(client);
    Ok(answer)
}

async fn answer(
    caller: &mut AsyncClient,
    request: Request,
    progress: &mpsc::Sender<Incoming>,
) -> Result<Answer, CallError> {
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
        Request::Messages(target, reach) => read_messages(caller, target, reach).await?,
        Request::Send { target, text, key } => send_message(caller, target, text, key, progress).await?,
        Request::Cancel(target, turn_id) => {
            let (agent, conversation) = target.params();
            let turn = call::<send::Cancel>(caller, send::CancelParams { agent, conversation, turn_id }).await?.turn_id;
            Answer::Done(if turn.is_some() { "cancelled the turn" } else { "no turn is running" }.into())
        }
        Request::Decide { id, hash, decision, reason } => {
            Answer::Done(decide(caller, id, hash, decision, reason).await?)
        }
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
        Request::Session { agent, session, reach } => read_session(caller, agent, session, reach).await?,
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

/// Sends a message, and reports when it is recorded or queued. The pieces of its turn arrive with those of the conversation.
async fn send_message(
    client: &mut AsyncClient,
    target: Target,
    text: String,
    key: String,
    progress: &mpsc::Sender<Incoming>,
) -> Result<Answer, CallError> {
    let (agent, conversation) = target.params();
    let params =
        send::SendParams { agent, conversation, text, key: Some(key.clone()), stream: true, ..Default::default() };
    client.send_request(send::Send::NAME, &params).await?;
    while let Some((method, params)) = client.next_notification().await? {
        if method == "progress"
            && let Ok(send::Progress { said, .. }) = serde_json::from_str(params.get())
            && let Some(stage) = SendStage::of(&said)
            && progress.send(Incoming::SendStage(target.clone(), key.clone(), stage)).await.is_err()
        {
            break;
        }
    }
    Ok(Answer::Sent)
}

/// Reads the last messages of a live conversation.
async fn read_messages(client: &mut AsyncClient, target: Target, reach: Reach) -> Result<Answer, CallError> {
    let (agent, conversation) = target.params();
    let params = |last, offset| context::ShowParams {
        agent: agent.clone(),
        conversation: conversation.clone(),
        last,
        offset,
        ..Default::default()
    };
    let last = if let Reach::Last(count) = reach { count } else { 1 };
    let mut shown = call::<context::Show>(client, params(Some(last), None)).await?;
    let total = shown.context.as_ref().map_or(0, |context| context.messages);
    if matches!(reach, Reach::Message(_)) && total > 0 {
        shown = call::<context::Show>(client, params(None, Some(total - reach.count(total)))).await?;
    }
    // Fewer messages are returned if they are long.
    while let Some(next) = shown.next {
        let page = call::<context::Show>(client, params(None, Some(next))).await?;
        shown.messages.extend(page.messages);
        shown.next = page.next.filter(|after| *after > next);
    }
    Ok(Answer::Messages(Box::new(shown)))
}

/// Reads the last messages of a session.
async fn read_session(
    client: &mut AsyncClient,
    agent: String,
    session: String,
    reach: Reach,
) -> Result<Answer, CallError> {
    let params = |offset, limit| session::GetParams {
        agent: Some(agent.clone()),
        session: session.clone(),
        offset,
        limit: Some(limit),
        ..Default::default()
    };
    let first = call::<session::Get>(client, params(None, 1)).await?;
    let total = first.session.header.message_count;
    let offset = total - reach.count(total);
    let mut shown = call::<session::Get>(client, params(Some(offset), MAX_MESSAGES)).await?;
    // Fewer messages are returned if they are long.
    while let Some(next) = shown.next {
        let page = call::<session::Get>(client, params(Some(next), MAX_MESSAGES)).await?;
        shown.messages.extend(page.messages);
        shown.next = page.next.filter(|after| *after > next);
    }
    Ok(Answer::Session(Box::new(shown)))
}

async fn decide(
    client: &mut AsyncClient,
    id: String,
    hash: String,
    decision: Decision,
    reason: Option<String>,
) -> Result<String, CallError> {
    if decision == Decision::Deny {
        let denied = call::<approvals::Deny>(client, approvals::DenyParams { id, reason }).await?;
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
        (None, _, true) => format!("approved {id} and everything else in this turn"),
        _ => format!("approved {id}"),
    })
}
