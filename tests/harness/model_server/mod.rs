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

mod anthropic;
mod connection;
mod http;
mod openai;
mod response;
mod state;
mod strict_rules;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

pub use response::{Response, Step};
pub use state::RecordedRequest;
use state::{FormResponder, SharedState, WireFormat};

use crate::wait::{DEADLINE, wait_until};

/// The key that [`ModelServer::config_toml`] gives to the provider `anthropic`.
pub const API_KEY: &str = "sk-test-0123456789abcdef";

/// The server. Dropping it closes every connection.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<SharedState>,
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
        std::fs::write(folder.path().join("key"), format!("{API_KEY}\n")).expect("the key");
        let shared = Arc::new(SharedState::default());
        let serving = shared.clone();
        std::thread::spawn(move || connection::accept_connections(&listener, &serving));
        Self { address, shared, folder }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The answers to `/v1/messages`.
    #[must_use]
    pub fn anthropic(&self) -> ResponseQueue<'_> {
        ResponseQueue { server: self, wire: WireFormat::Anthropic }
    }

    /// The answers to `/v1/chat/completions`.
    #[must_use]
    pub fn openai(&self) -> ResponseQueue<'_> {
        ResponseQueue { server: self, wire: WireFormat::Openai }
    }

    /// config.toml with this server as `anthropic` (the default, with a key) and as `local` (chat completions). Further
    /// keys of the top go before it, tables after it.
    #[must_use]
    pub fn config_toml(&self) -> String {
        self.config_toml_with("")
    }

    /// The same with more keys in both providers, for example `idle_timeout = "200ms"`.
    #[must_use]
    pub fn config_toml_with(&self, keys: &str) -> String {
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
    pub fn on_structured_request(&self, answer: impl Fn(&Value) -> Response + Send + Sync + 'static) {
        self.shared.update(|state| state.form_responder = Some(FormResponder(Arc::new(answer))));
    }

    /// What answers requests that offer no tools from now on, which is how summaries are asked for: they take none of the others.
    pub fn set_summary_response(&self, answer: Response) {
        self.shared.update(|state| state.summary = Some(answer));
    }

    /// Conversations that the real servers refuse are refused from now on, with the status 400.
    pub fn enable_strict_mode(&self) {
        self.shared.update(|state| state.strict = true);
    }

    /// Every request so far, lists of models left out.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        let state = self.shared.state();
        state.requests.iter().filter(|request| request.method == "POST").cloned().collect()
    }

    /// The requests for lists of models.
    #[must_use]
    pub fn list_requests(&self) -> Vec<RecordedRequest> {
        let state = self.shared.state();
        state.requests.iter().filter(|request| request.method == "GET").cloned().collect()
    }

    /// Waits until `count` calls have come; they are returned.
    ///
    /// # Panics
    /// Where they do not come.
    #[must_use]
    pub fn wait_for_requests(&self, count: usize) -> Vec<RecordedRequest> {
        wait_until("requests of a model", DEADLINE, || Some(self.requests()).filter(|all| all.len() >= count))
    }

    /// Lets streams go on that wait at the gate, and those that come to it later.
    pub fn open_gate(&self, gate: &str) {
        self.shared.update(|state| _ = state.open_gates.insert(gate.to_owned()));
    }

    /// Waits until a stream has come to the gate: what stands before it was sent.
    ///
    /// # Panics
    /// Where none comes.
    pub fn wait_for_gate(&self, gate: &str) {
        wait_until("a stream to come to a gate", DEADLINE, || {
            self.shared.state().reached_gates.contains(gate).then_some(())
        });
    }

    /// Waits until `count` clients have closed their connection in the middle of an answer.
    ///
    /// # Panics
    /// Where they do not.
    pub fn wait_for_hang_ups(&self, count: usize) {
        wait_until("a client to hang up", DEADLINE, || (self.shared.state().hang_ups >= count).then_some(()));
    }

    /// What `GET /v1/models` answers from now on to clients of the one kind: a status and a body.
    pub fn set_anthropic_models(&self, status: u16, body: &Value) {
        self.shared.update(|state| state.anthropic_list = (status, body.to_string()));
    }

    /// What `path` answers from now on besides; `/path model` is for what is posted there for one model.
    pub fn set_path_response(&self, path: &str, body: &Value) {
        self.shared.update(|state| _ = state.paths.insert(path.to_owned(), body.to_string()));
    }

    /// The same for clients of the other kind.
    pub fn set_openai_models(&self, status: u16, body: &Value) {
        self.shared.update(|state| state.openai_list = (status, body.to_string()));
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.update(|state| state.closing = true);
        // The thread that accepts wakes up to see it.
        _ = std::net::TcpStream::connect(self.address);
    }
}

/// The answers of one wire format, in the order they are given.
#[derive(Debug, Clone, Copy)]
pub struct ResponseQueue<'a> {
    server: &'a ModelServer,
    wire: WireFormat,
}

impl ResponseQueue<'_> {
    /// The next answer is this text, in these pieces.
    pub fn queue_text<T: Into<String>>(&self, pieces: impl IntoIterator<Item = T>) {
        self.queue(Response::text(pieces));
    }

    /// The next answer.
    pub fn queue(&self, answer: Response) {
        self.server.shared.update(|state| state.queue(self.wire).push_back(answer));
    }

    /// What every request gets that finds no other answer.
    pub fn set_fallback(&self, answer: Response) {
        self.server.shared.update(|state| *state.fallback(self.wire) = Some(answer));
    }
}
