//! What every verb needs: the options, the output, and a connection once it asks for one.

use std::cell::OnceCell;
use std::time::Instant;

use chorus_proto::paths::{self, Places};
use chorus_proto::{CallError, Client, Method};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::Global;
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::{Notes, Out};
use crate::{connect, select};

/// One run of `chorusctl`.
#[derive(Debug)]
pub struct App {
    pub global: Global,
    pub out: Out,
    pub notes: Notes,
    places: OnceCell<Places>,
    client: Option<Client>,
    /// The agent that all that follows is about, whatever is chosen elsewhere meanwhile.
    held: Option<String>,
}

/// Why a call that was listened to ended without a result.
#[derive(Debug)]
pub enum Unanswered {
    Call(CallError),
    /// What it said could not be shown.
    Unshown(Failure),
}

impl From<CallError> for Unanswered {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Unshown(failure)
    }
}

impl App {
    /// A run with these options; nothing is connected yet.
    #[must_use]
    pub fn new(global: Global) -> Self {
        let out = Out::new(global.shape(), global.color, global.quiet);
        let notes = Notes::new(global.color);
        Self { global, out, notes, places: OnceCell::new(), client: None, held: None }
    }

    /// Where this instance lives.
    ///
    /// # Errors
    /// [`Failure`] where no home directory is known.
    pub fn places(&self) -> Result<&Places, Failure> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let user = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let env = |name: &str| std::env::var_os(name);
        let found = paths::places(self.global.socket.as_deref(), env, user.as_deref(), None, paths::is_runtime_dir);
        let found = found.map_err(|error| Failure::usage(error.to_string()))?;
        Ok(self.places.get_or_init(|| found))
    }

    /// The agent that is meant, where anything here says so; else the daemon decides.
    #[must_use]
    pub fn agent(&self) -> Option<String> {
        self.held.clone().or_else(|| select::agent(self))
    }

    /// Stays with the agent of that name.
    pub fn hold(&mut self, agent: String) {
        self.held = Some(agent);
    }

    /// The connection; a daemon is started where none runs.
    ///
    /// # Errors
    /// [`Failure`] where none can be reached.
    pub fn client(&mut self) -> Result<&mut Client, Failure> {
        let client = self.take_client()?;
        Ok(self.client.insert(client))
    }

    fn take_client(&mut self) -> Result<Client, Failure> {
        match self.client.take() {
            Some(client) => Ok(client),
            None => connect::connect(self.places()?, &self.global),
        }
    }

    /// Takes over a connection that was made.
    pub fn connected(&mut self, client: Client) {
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
    pub fn call_raw<M: Method>(&mut self, params: &(impl Serialize + ?Sized)) -> Result<Box<RawValue>, Failure> {
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
        on_progress: &mut dyn FnMut(&mut Out, &RawValue) -> Result<(), Failure>,
    ) -> Result<Box<RawValue>, Unanswered> {
        let mut client = self.take_client()?;
        let timeout = self.global.timeout;
        client.set_deadline(timeout.map(|timeout| Instant::now() + timeout));
        let out = &mut self.out;
        let answer = client.call_streaming(M::NAME, params, &mut |said: &RawValue| {
            on_progress(out, said).map_err(Unanswered::Unshown)
        });
        client.set_deadline(None);
        // Of one that gave up listening, the rest would come before the next answer.
        if matches!(answer, Ok(_) | Err(Unanswered::Call(CallError::Rpc(_)))) {
            let _ = client.set_timeout(timeout);
            self.client = Some(client);
        }
        answer
    }

    /// Calls `M`.
    ///
    /// # Errors
    /// [`Failure`]: no connection, or what the daemon says.
    pub fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, Failure> {
        read(&self.call_raw::<M>(params)?)
    }

    /// Calls `M` and shows the result: as JSON just as it came, else as `text` writes it.
    ///
    /// # Errors
    /// [`Failure`]: no connection, what the daemon says, or an output that does not take it.
    pub fn answer<M: Method>(
        &mut self,
        params: &(impl Serialize + ?Sized),
        text: impl FnOnce(&mut Self, M::Result) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let raw = self.call_raw::<M>(params)?;
        match self.out.format() {
            Format::Text => text(self, read(&raw)?),
            Format::Json | Format::Jsonl => self.out.json_line(&raw),
        }
    }
}

/// Reads a result as its type.
///
/// # Errors
/// [`Failure`] where it does not fit.
pub fn read<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(raw.get()).map_err(|error| CallError::Malformed(error).into())
}
