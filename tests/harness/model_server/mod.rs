//! A scripted model server on a real port: it speaks Anthropic's Messages API (`/v1/messages`) and chat completions
//! (`/v1/chat/completions`), answers what the test has laid out, and keeps every request.
//!
//! ```text
//! let server = ModelServer::start();
//! server.anthropic().say(["Hel", "lo"]);
//! server.openai().answer(Answer::text(["I look."]).call("c1", "list_models", &json!({})).gate("go").then("Done."));
//! Daemon::start_with(&home, &server.config_toml()); // default_model = "anthropic/claude-test", and [providers.local]
//! server.open("go");
//! ```

mod answer;
mod anthropic;
mod http;
mod legal;
mod openai;
mod serve;
mod state;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

pub use answer::{Answer, Step};
pub use state::Recorded;
use state::{Former, Shared, Wire};

use crate::wait::{DEADLINE, wait_until};

/// The key that [`ModelServer::config_toml`] gives to the provider `anthropic`.
pub const KEY: &str = "sk-test-0123456789abcdef";

/// The server. Dropping it closes every connection.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    folder: TempDir,
}

impl ModelServer {
    /// Starts one, without any answers yet: a request that nothing was laid out for gets the status 418.
    ///
    /// # Panics
    /// Where there is no port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its number");
        let folder = tempfile::tempdir().expect("a folder for the key");
        std::fs::write(folder.path().join("key"), format!("{KEY}\n")).expect("the key");
        let shared = Arc::new(Shared::default());
        let serving = shared.clone();
        std::thread::spawn(move || serve::accept(&listener, &serving));
        Self { address, shared, folder }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The answers to `/v1/messages`.
    #[must_use]
    pub fn anthropic(&self) -> Script<'_> {
        Script { server: self, wire: Wire::Anthropic }
    }

    /// The answers to `/v1/chat/completions`.
    #[must_use]
    pub fn openai(&self) -> Script<'_> {
        Script { server: self, wire: Wire::Openai }
    }

    /// config.toml with this server as `anthropic` (the default, with a key) and as `local` (chat completions). Further
    /// keys of the top go before it, tables after it.
    #[must_use]
    pub fn config_toml(&self) -> String {
        self.config_with("")
    }

    /// The same with more keys in both providers, for example `idle_timeout = "200ms"`.
    #[must_use]
    pub fn config_with(&self, keys: &str) -> String {
        let (url, key) = (self.url(), self.folder.path().join("key"));
        format!(
            "default_model = \"anthropic/claude-test\"\n\
             [providers.anthropic]\nkind = \"anthropic\"\nbase_url = \"{url}\"\napi_key_file = \"{}\"\n{keys}\n\
             [providers.local]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\n{keys}\n",
            key.display()
        )
    }

    /// The file with the key that the configuration names.
    #[must_use]
    pub fn key_file(&self) -> std::path::PathBuf {
        self.folder.path().join("key")
    }

    /// What answers requests from now on whose answer is to have a form; without it they get the status 418. It is given the request's
    /// body.
    pub fn form(&self, answer: impl Fn(&Value) -> Answer + Send + Sync + 'static) {
        self.shared.change(|state| state.former = Some(Former(Arc::new(answer))));
    }

    /// What answers requests that offer no tools from now on, which is how summaries are asked for: they take none of the others.
    pub fn summarise(&self, answer: Answer) {
        self.shared.change(|state| state.summary = Some(answer));
    }

    /// Conversations that the real servers refuse are refused from now on, with the status 400.
    pub fn be_strict(&self) {
        self.shared.change(|state| state.strict = true);
    }

    /// Every request so far, lists of models left out.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        let state = self.shared.state();
        state.requests.iter().filter(|request| request.method == "POST").cloned().collect()
    }

    /// The requests for lists of models.
    #[must_use]
    pub fn lists(&self) -> Vec<Recorded> {
        let state = self.shared.state();
        state.requests.iter().filter(|request| request.method == "GET").cloned().collect()
    }

    /// Waits until `count` calls have come; they are returned.
    ///
    /// # Panics
    /// Where they do not come.
    #[must_use]
    pub fn wait_for(&self, count: usize) -> Vec<Recorded> {
        wait_until("requests of a model", DEADLINE, || Some(self.requests()).filter(|all| all.len() >= count))
    }

    /// Lets streams go on that wait at the gate, and those that come to it later.
    pub fn open(&self, gate: &str) {
        self.shared.change(|state| _ = state.open.insert(gate.to_owned()));
    }

    /// Waits until a stream has come to the gate: what stands before it was sent.
    ///
    /// # Panics
    /// Where none comes.
    pub fn reached(&self, gate: &str) {
        wait_until("a stream to come to a gate", DEADLINE, || self.shared.state().reached.contains(gate).then_some(()));
    }

    /// Waits until `count` clients have closed their connection in the middle of an answer.
    ///
    /// # Panics
    /// Where they do not.
    pub fn wait_for_hang_ups(&self, count: usize) {
        wait_until("a client to hang up", DEADLINE, || (self.shared.state().hung_up >= count).then_some(()));
    }

    /// What `GET /v1/models` answers from now on to clients of the one kind: a status and a body.
    pub fn list_anthropic(&self, status: u16, body: &Value) {
        self.shared.change(|state| state.anthropic_list = (status, body.to_string()));
    }

    /// What `path` answers from now on besides; `/path model` is for what is posted there for one model.
    pub fn answer_at(&self, path: &str, body: &Value) {
        self.shared.change(|state| _ = state.paths.insert(path.to_owned(), body.to_string()));
    }

    /// The same for clients of the other kind.
    pub fn list_openai(&self, status: u16, body: &Value) {
        self.shared.change(|state| state.openai_list = (status, body.to_string()));
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.change(|state| state.closing = true);
        // The thread that accepts wakes up to see it.
        _ = std::net::TcpStream::connect(self.address);
    }
}

/// The answers of one wire format, in the order they are given.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    server: &'a ModelServer,
    wire: Wire,
}

impl Script<'_> {
    /// The next answer is this text, in these pieces.
    pub fn say<T: Into<String>>(&self, pieces: impl IntoIterator<Item = T>) {
        self.answer(Answer::text(pieces));
    }

    /// The next answer.
    pub fn answer(&self, answer: Answer) {
        self.server.shared.change(|state| state.script(self.wire).push_back(answer));
    }

    /// What every request gets that finds no other answer.
    pub fn always(&self, answer: Answer) {
        self.server.shared.change(|state| *state.always(self.wire) = Some(answer));
    }
}
