//! What every verb needs: the options, the output, and a connection once it asks for one.

use std::cell::OnceCell;
use std::time::Instant;

use chorus_proto::paths::{self, InstancePaths};
use chorus_proto::{CallError, Client, Method};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Stderr, Stdout};
use crate::{agent_select, connect};

/// One run of `chorusctl`.
#[derive(Debug)]
pub struct App {
    pub global: GlobalOptions,
    pub stdout: Stdout,
    pub stderr: Stderr,
    paths: OnceCell<InstancePaths>,
    client: Option<Client>,
    /// The agent that all that follows is about, whatever is chosen elsewhere meanwhile.
    fixed_agent: Option<String>,
}

/// Why a call that was listened to ended without a result.
#[derive(Debug)]
pub enum StreamingError {
    Call(CallError),
    /// What it said could not be shown.
    Output(Error),
}

impl From<CallError> for StreamingError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<Error> for StreamingError {
    fn from(failure: Error) -> Self {
        Self::Output(failure)
    }
}

impl App {
    /// A run with these options; nothing is connected yet.
    #[must_use]
    pub fn new(global: GlobalOptions) -> Self {
        let stdout = Stdout::new(global.output_format(), global.color, global.quiet);
        let stderr = Stderr::new(global.color);
        Self { global, stdout, stderr, paths: OnceCell::new(), client: None, fixed_agent: None }
    }

    /// Where this instance lives.
    ///
    /// # Errors
    /// [`Failure`] where no home directory is known.
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

    /// The agent that is meant, where anything here says so; else the daemon decides.
    #[must_use]
    pub fn agent(&self) -> Option<String> {
        self.fixed_agent.clone().or_else(|| agent_select::selected_agent(self))
    }

    /// Stays with the agent of that name.
    pub fn set_agent(&mut self, agent: String) {
        self.fixed_agent = Some(agent);
    }

    /// The connection; a daemon is started where none runs.
    ///
    /// # Errors
    /// [`Failure`] where none can be reached.
    pub fn client(&mut self) -> Result<&mut Client, Error> {
        let client = self.take_client()?;
        Ok(self.client.insert(client))
    }

    fn take_client(&mut self) -> Result<Client, Error> {
        match self.client.take() {
            Some(client) => Ok(client),
            None => connect::connect(self.paths()?, &self.global),
        }
    }

    /// Takes over a connection that was made.
    pub fn set_client(&mut self, client: Client) {
        self.client = Some(client);
    }

    /// Whether there is a connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    /// Closes the connection.
    pub fn disconnect(&mut self) {
        self.client = None;
    }

    /// Calls `M` and returns its result as it came.
    ///
    /// # Errors
    /// [`Failure`]: no connection, or what the daemon says.
    pub fn call_raw<M: Method>(&mut self, params: &(impl Serialize + ?Sized)) -> Result<Box<RawValue>, Error> {
        Ok(self.client()?.call_raw(M::NAME, params, &mut |_| ())?)
    }

    /// Calls `M` and returns its result as it came; `on_progress` hears what comes before it, and may write. `--timeout` is
    /// how long all of it may take. A connection that broke is closed.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub fn call_streaming<M: Method>(
        &mut self,
        params: &M::Params,
        on_progress: &mut dyn FnMut(&mut Stdout, &RawValue) -> Result<(), Error>,
    ) -> Result<Box<RawValue>, StreamingError> {
        let mut client = self.take_client()?;
        let timeout = self.global.timeout;
        client.set_deadline(timeout.map(|timeout| Instant::now() + timeout));
        let out = &mut self.stdout;
        let answer = client.call_streaming(M::NAME, params, &mut |said: &RawValue| {
            on_progress(out, said).map_err(StreamingError::Output)
        });
        client.set_deadline(None);
        // Of one that gave up listening, the rest would come before the next answer.
        if matches!(answer, Ok(_) | Err(StreamingError::Call(CallError::Rpc(_)))) {
            let _ = client.set_timeout(timeout);
            self.client = Some(client);
        }
        answer
    }

    /// Calls `M`.
    ///
    /// # Errors
    /// [`Failure`]: no connection, or what the daemon says.
    pub fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, Error> {
        parse_result(&self.call_raw::<M>(params)?)
    }

    /// Calls `M` and shows the result: as JSON just as it came, else as `text` writes it.
    ///
    /// # Errors
    /// [`Failure`]: no connection, what the daemon says, or an output that does not take it.
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

/// Reads a result as its type.
///
/// # Errors
/// [`Failure`] where it does not fit.
pub fn parse_result<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Result<T, Error> {
    serde_json::from_str(raw.get()).map_err(|error| CallError::Malformed(error).into())
}
