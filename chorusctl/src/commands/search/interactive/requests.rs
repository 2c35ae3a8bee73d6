//! The thread that asks the daemon, so that typing never waits for it.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::search::{Search, SearchHit, SearchParams, SearchResult};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{ErrorKind, Message};

use super::super::hit::live_name;
use super::Step;
use crate::app::App;
use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::ui::full_screen::Waker;

/// Messages in the preview, of which the first is the one that was found.
const PREVIEW_MESSAGES: u64 = 4;

/// A question to the daemon. Those about a hit have the agent that the request must name.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Search {
        query: String,
    },
    /// The messages of the hit.
    Preview {
        hit: Box<SearchHit>,
        agent: Option<String>,
    },
    /// The number of unsaved messages in the conversation that the step would replace.
    Unsaved {
        step: Step,
        hit: Box<SearchHit>,
        agent: Option<String>,
    },
}

/// The answer to a request.
#[derive(Debug)]
pub(super) enum Answer {
    Found { query: String, result: Result<SearchResult, Error> },
    Previewed { hit: Box<SearchHit>, messages: Vec<Message> },
    Unsaved { step: Step, hit: Box<SearchHit>, result: Result<u64, Error> },
}

/// The thread with its connection. It ends when this is dropped, after the request that it has.
#[derive(Debug)]
pub(super) struct RequestThread {
    requests: SyncSender<Request>,
    answers: Receiver<Answer>,
}

impl RequestThread {
    /// Starts the thread. `search` has the parameters that all searches share; `waker` is woken by every answer.
    pub(super) fn start(global: GlobalOptions, search: SearchParams, waker: Waker) -> Result<Self, Error> {
        // There is one request at a time.
        let (requests, asked) = sync_channel(1);
        let (answered, answers) = sync_channel(1);
        let run = move || {
            // The daemon was running when the screen was entered.
            let mut app = App::new(GlobalOptions { no_autostart: true, ..global });
            while let Ok(request) = asked.recv() {
                let answer = answer(&mut app, &search, request);
                if answered.send(answer).is_err() {
                    return;
                }
                waker.wake();
            }
        };
        let failed = |error: std::io::Error| Error::failed(format!("failed to start a thread: {error}"));
        std::thread::Builder::new().name("search".into()).spawn(run).map_err(failed)?;
        Ok(Self { requests, answers })
    }

    /// Sends a request. The one before it must be answered.
    pub(super) fn send(&self, request: Request) -> Result<(), Error> {
        self.requests.try_send(request).map_err(|_| ended_error())
    }

    /// Returns the answer, if it is there.
    pub(super) fn answer(&self) -> Result<Option<Answer>, Error> {
        match self.answers.try_recv() {
            Ok(answer) => Ok(Some(answer)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(ended_error()),
        }
    }
}

fn ended_error() -> Error {
    Error::failed("the search ended unexpectedly")
}

fn answer(app: &mut App, search: &SearchParams, request: Request) -> Answer {
    let answer = match request {
        Request::Search { query } => {
            let result = app.call::<Search>(&SearchParams { query: query.clone(), ..search.clone() });
            Answer::Found { query, result }
        }
        Request::Preview { hit, agent } => {
            let messages = messages_of(app, &hit, agent).unwrap_or_default();
            return Answer::Previewed { hit, messages };
        }
        Request::Unsaved { step, hit, agent } => {
            let result = unsaved(app, agent);
            Answer::Unsaved { step, hit, result }
        }
    };
    if matches!(answer, Answer::Found { result: Err(_), .. } | Answer::Unsaved { result: Err(_), .. }) {
        // The connection itself may have failed: the next request makes another one.
        app.disconnect();
    }
    answer
}

/// Returns the first messages of the preview.
fn messages_of(app: &mut App, hit: &SearchHit, agent: Option<String>) -> Result<Vec<Message>, Error> {
    let own = agent.is_none();
    let agent = agent.or_else(|| app.agent());
    let (offset, limit) = (Some(hit.message.map_or(0, |number| number.saturating_sub(1))), Some(PREVIEW_MESSAGES));
    Ok(match &hit.session {
        Some(session) => {
            let session = session.id.to_string();
            app.call::<Get>(&GetParams { agent, conversation: app.conversation(), session, own, offset, limit })?
                .messages
        }
        None => {
            let conversation = Some(live_name(hit).to_owned());
            app.call::<Show>(&ShowParams { agent, conversation, offset, limit, ..Default::default() })?.messages
        }
    })
}

/// Returns the number of unsaved messages in the conversation that a command of the agent would replace.
fn unsaved(app: &mut App, agent: Option<String>) -> Result<u64, Error> {
    let params = ShowParams {
        agent: agent.or_else(|| app.agent()),
        conversation: app.conversation(),
        limit: Some(0),
        ..Default::default()
    };
    match app.call::<Show>(&params) {
        Ok(shown) => Ok(shown.context.map_or(0, |context| context.unsaved)),
        // The command creates the agent or the conversation, or says why not.
        Err(error) if error.is_kind(ErrorKind::NoAgent) || error.is_kind(ErrorKind::ConversationNotFound) => Ok(0),
        Err(error) => Err(error),
    }
}
