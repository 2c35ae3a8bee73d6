//! State of one `chorusctl` run: options, output streams, and a connection that is made on first use.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_proto::paths::{self, InstancePaths};
use chorus_proto::rpc::Progress;
use chorus_proto::{CallError, Client, Method};
use chorus_remote::{Host, Prompts};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::reconnect::{self, RETRY_LIMIT, Reconnection};
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;
use crate::ui::{ChatCommands, CommandText, Stderr, Stdout};
use crate::{
    agent_select, connect, conversation_select, done_report, first_agent, host_select, new_conversation, no_answer,
    older_daemon,
};

/// How often a request is sent again because what it lacked was created, or what the daemon does not know left out.
const MAX_REPEATS: usize = 3;

/// One run of `chorusctl`.
#[derive(Debug)]
pub struct App {
    pub global: GlobalOptions,
    pub stdout: Stdout,
    pub stderr: Stderr,
    /// The first agent is created for whatever request needs one.
    pub begins_conversation: bool,
    /// The saved conversation that the next request needs: without it no first agent is created.
    pub needed_session: Option<String>,
    /// The last change that the daemon acknowledged, as the beginning of a sentence.
    pub done: Option<&'static str>,
    /// Limit on the wait for each answer, unless `--timeout` is given; for commands that only look.
    pub answer_limit: Option<Duration>,
    paths: OnceCell<InstancePaths>,
    /// The machine whose daemon is used; `None` for this one.
    pub(crate) found_host: OnceCell<Option<Arc<Host>>>,
    client: Option<Client>,
    /// Agent set by [`App::set_agent`]. It stays the same even if another client changes the chosen agent.
    fixed_agent: Option<String>,
    /// Conversation set by [`App::set_conversation`]. It stays the same even if another client selects another one.
    fixed_conversation: Option<String>,
    /// The daemon is of a release in which agents had one conversation.
    is_daemon_older: bool,
}

/// Error of [`App::call_streaming`].
#[derive(Debug)]
pub enum StreamingError {
    Call(CallError),
    /// The progress callback failed, for example because standard output is closed.
    Output(Error),
}

impl From<CallError> for StreamingError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<StreamingError> for Error {
    fn from(error: StreamingError) -> Self {
        match error {
            StreamingError::Call(error) => error.into(),
            StreamingError::Output(error) => error,
        }
    }
}

impl From<Error> for StreamingError {
    fn from(failure: Error) -> Self {
        Self::Output(failure)
    }
}

impl App {
    /// Creates the state from the global options. Does not connect.
    #[must_use]
    pub fn new(global: GlobalOptions) -> Self {
        let stdout = Stdout::new(global.output_format(), global.color, global.quiet);
        let stderr = Stderr::new(global.color).with_json(global.output_format() != OutputFormat::Text);
        let mut app = Self {
            global,
            stdout,
            stderr,
            begins_conversation: false,
            needed_session: None,
            done: None,
            answer_limit: None,
            paths: OnceCell::new(),
            found_host: OnceCell::new(),
            client: None,
            fixed_agent: None,
            fixed_conversation: None,
            is_daemon_older: false,
        };
        app.name_commands(app.global.conversation.clone(), None);
        app
    }

    /// Has the commands in hints name `conversation` and the agent of the command line, and in a chat be slash commands.
    pub fn name_commands(&mut self, conversation: Option<String>, chat: Option<ChatCommands>) {
        let agent = self.global.agent.clone();
        let host = self.host().ok().flatten();
        if agent.is_none() && conversation.is_none() && chat.is_none() && host.is_none() {
            return;
        }
        // Few in a run, and copied with every handle of standard error.
        let commands = Box::leak(Box::new(CommandText { agent, conversation, chat, host }));
        self.stderr = self.stderr.with_commands(commands);
        self.stdout.set_commands(commands);
    }

    /// Returns the paths of this instance, resolved on first use.
    ///
    /// # Errors
    /// No home directory is known (exit status 2).
    pub fn paths(&self) -> Result<&InstancePaths, Error> {
        if let Some(places) = self.paths.get() {
            return Ok(places);
        }
        let user = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let env = |name: &str| std::env::var_os(name);
        let found = paths::resolve(self.global.socket.as_deref(), env, user.as_deref(), None, paths::is_runtime_dir);
        let found = found.map_err(|error| Error::usage(error.to_string()))?;
        Ok(self.paths.get_or_init(|| found))
    }

    /// Returns the agent to name in requests, or `None` to let the daemon decide.
    #[must_use]
    pub fn agent(&self) -> Option<String> {
        self.fixed_agent.clone().or_else(|| agent_select::selected_agent(self))
    }

    /// Returns the agent that the user named with --agent or $CHORUS_AGENT.
    #[must_use]
    pub fn named_agent(&self) -> Option<String> {
        agent_select::named_agent(self)
    }

    /// Returns the conversation to name in requests that concern a live context or select a session.
    #[must_use]
    pub fn conversation(&self) -> Option<String> {
        self.fixed_conversation.clone().or_else(|| conversation_select::selected_conversation(self))
    }

    /// Returns the conversation that the user named with --conversation or $CHORUS_CONVERSATION.
    #[must_use]
    pub fn named_conversation(&self) -> Option<String> {
        conversation_select::named_conversation(self)
    }

    /// Shows long output in a pager, unless --no-pager is given.
    pub fn page_if_long(&mut self) {
        if !self.global.no_pager {
            self.stdout.page_if_long();
        }
    }

    /// Uses `agent` for all following requests.
    pub fn set_agent(&mut self, agent: String) {
        self.fixed_agent = Some(agent);
    }

    /// Uses `conversation` for all following requests.
    pub fn set_conversation(&mut self, conversation: String) {
        self.fixed_conversation = Some(conversation);
    }

    /// Returns the connection. Connects if there is none, and starts a daemon if none is running.
    pub fn client(&mut self) -> Result<&mut Client, Error> {
        let client = self.take_client()?;
        Ok(self.client.insert(client))
    }

    fn take_client(&mut self) -> Result<Client, Error> {
        match self.client.take() {
            Some(client) => Ok(client),
            None => {
                self.is_daemon_older = false;
                match self.host()? {
                    Some(host) => Ok(host_select::connect(&host, self, Prompts::Allow)?),
                    None => connect::connect(self.paths()?, &self.global),
                }
            }
        }
    }

    /// Takes a connection to the daemon that runs, an existing one if there is one; does not start a daemon.
    pub(crate) fn take_running_client(&mut self) -> Option<Client> {
        match self.client.take() {
            Some(client) => Some(client),
            None if self.is_remote() => None,
            None => connect::connect_if_running(self.paths().ok()?, &self.global).ok()?,
        }
    }

    /// Uses an existing connection.
    pub fn set_client(&mut self, client: Client) {
        self.client = Some(client);
    }

    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    pub fn disconnect(&mut self) {
        self.client = None;
    }

    /// Calls `M` and returns its result as unparsed JSON. If the method needs an agent or a conversation and there is
    /// none, creates it first.
    pub fn call_raw<M: Method>(&mut self, params: &(impl Serialize + ?Sized)) -> Result<Box<RawValue>, Error> {
        for _ in 0..MAX_REPEATS {
            match self.call_raw_once::<M>(params)? {
                Ok(answer) => {
                    self.note_done::<M>();
                    return Ok(answer);
                }
                Err(error) if reconnect::is_lost(&error) && reconnect::is_repeatable(M::NAME) => {
                    return self.call_raw_again::<M>(params, error);
                }
                Err(error) => self.prepare_repeat::<M>(error)?,
            }
        }
        let answer = self.call_raw_once::<M>(params)??;
        self.note_done::<M>();
        Ok(answer)
    }

    /// Remembers that `M` was carried out, for an error about what comes after it.
    fn note_done<M: Method>(&mut self) {
        self.done = done_report::sentence(M::NAME).or(self.done);
    }

    fn call_raw_once<M: Method>(
        &mut self,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Result<Box<RawValue>, CallError>, Error> {
        // A new connection may be to another daemon.
        self.client()?;
        if self.is_daemon_older {
            let params = older_daemon::without_conversation(params)?;
            return self.within_answer_limit(|client| client.call_raw(M::NAME, &params, &mut |_| ()));
        }
        self.within_answer_limit(|client| client.call_raw(M::NAME, params, &mut |_| ()))
    }

    /// Makes a call, for which [`App::answer_limit`] holds.
    ///
    /// # Errors
    /// There is no connection, or no answer came in time.
    pub fn within_answer_limit<T>(
        &mut self,
        call: impl FnOnce(&mut Client) -> Result<T, CallError>,
    ) -> Result<Result<T, CallError>, Error> {
        let Some(limit) = self.answer_limit.filter(|_| self.global.timeout.is_none()) else {
            return Ok(call(self.client()?));
        };
        let client = self.client()?;
        let _ = client.set_timeout(Some(limit));
        let answer = call(client);
        let _ = client.set_timeout(None);
        match answer {
            Err(error) if no_answer::is_cause_of(&error) => {
                self.disconnect();
                Err(no_answer::error(self, limit))
            }
            answer => Ok(answer),
        }
    }

    /// Sends a request again whose answer was lost with the line to another machine, until it comes.
    fn call_raw_again<M: Method>(
        &mut self,
        params: &(impl Serialize + ?Sized),
        mut lost: CallError,
    ) -> Result<Box<RawValue>, Error> {
        let mut reconnection = Reconnection::new(Some(RETRY_LIMIT));
        loop {
            reconnection.connect(self, lost)?;
            match self.call_raw_once::<M>(params)? {
                Err(error) if reconnect::is_lost(&error) => lost = error,
                answer => return Ok(answer?),
            }
        }
    }

    /// Prepares for sending a request again that failed with `error`, if that is of use: creates the agent or the
    /// conversation that it needs, or notes that the daemon does not know conversations.
    ///
    /// # Errors
    /// `error` itself if sending the request again is of no use, or the reason why not.
    fn prepare_repeat<M: Method>(&mut self, error: CallError) -> Result<(), StreamingError> {
        if older_daemon::refuses_conversations(&error) && !self.is_daemon_older {
            self.is_daemon_older = true;
            return Ok(());
        }
        if first_agent::is_needed(self, M::NAME, &error) && first_agent::create(self)? {
            return Ok(());
        }
        match new_conversation::needed(self, M::NAME, &error) {
            Some(name) => Ok(new_conversation::create(self, &name, error)?),
            None => Err(error.into()),
        }
    }

    /// Calls `M` and returns its result as unparsed JSON. `on_progress` receives each progress message and may write to
    /// standard output. `--timeout` limits the whole call. The connection is closed unless the daemon answered, with a
    /// result or an error.
    pub fn call_streaming<M: Method>(
        &mut self,
        params: &M::Params,
        on_progress: &mut dyn FnMut(&mut Stdout, &RawValue) -> Result<(), Error>,
    ) -> Result<Box<RawValue>, StreamingError> {
        for _ in 0..MAX_REPEATS {
            match self.call_streaming_once::<M>(params, on_progress) {
                Err(StreamingError::Call(error)) => self.prepare_repeat::<M>(error)?,
                answer => return answer,
            }
        }
        self.call_streaming_once::<M>(params, on_progress)
    }

    fn call_streaming_once<M: Method>(
        &mut self,
        params: &M::Params,
        on_progress: &mut dyn FnMut(&mut Stdout, &RawValue) -> Result<(), Error>,
    ) -> Result<Box<RawValue>, StreamingError> {
        let mut client = self.take_client()?;
        let timeout = self.global.timeout;
        client.set_deadline(timeout.map(|timeout| Instant::now() + timeout));
        let out = &mut self.stdout;
        let mut on_progress = |said: &RawValue| on_progress(out, said).map_err(StreamingError::Output);
        let answer = if self.is_daemon_older {
            let params = older_daemon::without_conversation(params)?;
            client.call_streaming(M::NAME, &params, &mut on_progress)
        } else {
            client.call_streaming(M::NAME, params, &mut on_progress)
        };
        client.set_deadline(None);
        // If `on_progress` failed, the rest of this answer would arrive before the next one: drop the connection.
        if answer.is_ok() {
            self.note_done::<M>();
        }
        if matches!(answer, Ok(_) | Err(StreamingError::Call(CallError::Rpc(_)))) {
            let _ = client.set_timeout(timeout);
            self.client = Some(client);
        }
        answer
    }

    /// Calls `M`, and shows the progress that the daemon reports until it answers.
    pub fn call_with_progress<M: Method>(
        &mut self,
        params: &M::Params,
        mut bar: ProgressBar,
    ) -> Result<Box<RawValue>, Error> {
        let answer = self.call_streaming::<M>(params, &mut |_, said| {
            if let Ok(at) = serde_json::from_str::<Progress>(said.get()) {
                bar.update(at.done, at.total, &at.unit);
            }
            Ok(())
        });
        bar.finish();
        match answer {
            Ok(raw) => Ok(raw),
            Err(StreamingError::Call(error)) => Err(error.into()),
            Err(StreamingError::Output(error)) => Err(error),
        }
    }

    /// Calls `M` and parses its result.
    pub fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, Error> {
        parse_result(&self.call_raw::<M>(params)?)
    }

    /// Calls `M` and prints the result: with a JSON format the unparsed JSON, otherwise through `text`.
    pub fn call_and_print<M: Method>(
        &mut self,
        params: &(impl Serialize + ?Sized),
        text: impl FnOnce(&mut Self, M::Result) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let raw = self.call_raw::<M>(params)?;
        match self.stdout.format() {
            OutputFormat::Text => text(self, parse_result(&raw)?),
            OutputFormat::Json | OutputFormat::Jsonl => self.stdout.json_line(&raw),
        }
    }
}

/// Parses the JSON of a result.
pub fn parse_result<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Result<T, Error> {
    serde_json::from_str(raw.get()).map_err(|error| CallError::Malformed(error).into())
}
