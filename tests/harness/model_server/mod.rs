//! A scripted model server on a real port. It implements Anthropic's Messages API (`/v1/messages`) and chat completions
//! (`/v1/chat/completions`), sends the responses that the test has queued, and records every request.
//!
//! ```text
//! let server = ModelServer::start();
//! server.anthropic().queue_text(["Hel", "lo"]);
//! server.openai().queue(Response::text(["I look."]).then_call("c1", "list_models",
//! &json!({})).gate("go").then_text("Done."));
//! Daemon::start_with(&home, &server.config_toml()); // default_model = "anthropic/claude-test", and [providers.local]
//! server.open_gate("go");
//! ```

mod anthropic;
mod bare_client;
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

pub use bare_client::BareClient;
pub use response::{Response, Step};
pub use state::RecordedRequest;
use state::{Responder, SharedState, TextEmbedder, WireFormat};

use crate::wait::{DEADLINE, wait_until};

/// API key that [`ModelServer::config_toml`] gives to the provider `anthropic`.
pub const API_KEY: &str = "sk-test-0123456789abcdef";

/// Path at which Anthropic counts the tokens of a request.
pub const COUNT_PATH: &str = "/v1/messages/count_tokens";

/// A running server. Dropping it closes every connection.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<SharedState>,
    folder: TempDir,
}

impl ModelServer {
    /// Starts a server without queued responses. Requests without a response get status 418.
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

    /// Starts a server whose queued responses are also those to requests for summaries of sessions. Otherwise only fallbacks
    /// are, and what [`set_summary_response`](Self::set_summary_response) sets.
    #[must_use]
    pub fn start_for_summaries() -> Self {
        let server = Self::start();
        server.shared.update(|state| state.summaries_queued = true);
        server
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the response queue of `/v1/messages`.
    #[must_use]
    pub fn anthropic(&self) -> ResponseQueue<'_> {
        ResponseQueue { server: self, wire: WireFormat::Anthropic }
    }

    /// Returns the response queue of `/v1/chat/completions`.
    #[must_use]
    pub fn openai(&self) -> ResponseQueue<'_> {
        ResponseQueue { server: self, wire: WireFormat::Openai }
    }

    /// Returns a config.toml with this server as `anthropic` (the default, with a key) and as `local` (chat
    /// completions). Put further top-level keys before it, and tables after it.
    #[must_use]
    pub fn config_toml(&self) -> String {
        self.config_toml_with("")
    }

    /// Returns the same configuration with more keys in both providers, for example `idle_timeout = "200ms"`.
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

    /// Returns the path of the key file that the configuration names.
    #[must_use]
    pub fn key_file(&self) -> std::path::PathBuf {
        self.folder.path().join("key")
    }

    /// Sets the function that answers requests for structured output; it receives the request's body. Without it they
    /// get status 418.
    pub fn on_structured_request(&self, answer: impl Fn(&Value) -> Response + Send + Sync + 'static) {
        self.shared.update(|state| state.form_responder = Some(Responder(Arc::new(answer))));
    }

    /// Sets the function that answers turns instead of queued responses; it receives the request's body.
    pub fn on_turn_request(&self, answer: impl Fn(&Value) -> Response + Send + Sync + 'static) {
        self.shared.update(|state| state.turn_responder = Some(Responder(Arc::new(answer))));
    }

    /// Sets the response to requests that offer no tools, which is how summaries are requested. They take no queued
    /// responses.
    pub fn set_summary_response(&self, answer: Response) {
        self.shared.update(|state| state.summary = Some(answer));
    }

    /// Sets the function that makes the vectors of texts, as OpenAI's `/v1/embeddings` and Ollama's give them.
    pub fn on_embedding(&self, embed: impl Fn(&str) -> Vec<f32> + Send + Sync + 'static) {
        self.shared.update(|state| state.embedder = Some(TextEmbedder(Arc::new(embed))));
    }

    /// Answers no request for vectors any more.
    pub fn end_embedding(&self) {
        self.shared.update(|state| state.embedder = None);
    }

    /// Refuses conversations that the real servers refuse, with status 400, from now on.
    pub fn enable_strict_mode(&self) {
        self.shared.update(|state| state.strict = true);
    }

    /// Returns every request so far, except for lists of models and for counts of tokens.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        let state = self.shared.state();
        state.requests.iter().filter(|request| request.method == "POST" && !request.is_count()).cloned().collect()
    }

    /// Forgets the requests so far, and returns how many there were.
    pub fn forget_requests(&self) -> usize {
        self.shared.update(|state| std::mem::take(&mut state.requests)).len()
    }

    /// Returns the requests for counts of tokens. They get status 404 unless [`ModelServer::set_path_response`] has a
    /// response for [`COUNT_PATH`].
    #[must_use]
    pub fn count_requests(&self) -> Vec<RecordedRequest> {
        let state = self.shared.state();
        state.requests.iter().filter(|request| request.is_count()).cloned().collect()
    }

    /// Returns the requests for lists of models.
    #[must_use]
    pub fn list_requests(&self) -> Vec<RecordedRequest> {
        let state = self.shared.state();
        state.requests.iter().filter(|request| request.method == "GET").cloned().collect()
    }

    /// Waits until `count` requests have arrived, and returns them.
    #[must_use]
    pub fn wait_for_requests(&self, count: usize) -> Vec<RecordedRequest> {
        wait_until("requests of a model", DEADLINE, || Some(self.requests()).filter(|all| all.len() >= count))
    }

    /// Opens a gate for streams that wait at it, now or later.
    pub fn open_gate(&self, gate: &str) {
        self.shared.update(|state| _ = state.open_gates.insert(gate.to_owned()));
    }

    /// Waits until a stream has reached the gate, after sending everything before it.
    pub fn wait_for_gate(&self, gate: &str) {
        wait_until("a stream to come to a gate", DEADLINE, || {
            self.shared.state().reached_gates.contains(gate).then_some(())
        });
    }

    /// Waits until `count` clients have disconnected in the middle of a response.
    pub fn wait_for_hang_ups(&self, count: usize) {
        wait_until("a client to hang up", DEADLINE, || (self.shared.state().hang_ups >= count).then_some(()));
    }

    /// Sets status and body of `GET /v1/models` for Anthropic clients.
    pub fn set_anthropic_models(&self, status: u16, body: &Value) {
        self.shared.update(|state| state.anthropic_list = (status, body.to_string()));
    }

    /// Sets the response of `path`. `/path model` is for requests posted there for one model.
    pub fn set_path_response(&self, path: &str, body: &Value) {
        self.shared.update(|state| _ = state.paths.insert(path.to_owned(), body.to_string()));
    }

    /// Sets status and body of `GET /v1/models` for OpenAI clients.
    pub fn set_openai_models(&self, status: u16, body: &Value) {
        self.shared.update(|state| state.openai_list = (status, body.to_string()));
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.update(|state| state.closing = true);
        // Wake the accepting thread, so that it sees `closing`.
        _ = std::net::TcpStream::connect(self.address);
    }
}

/// The response queue of one wire format.
#[derive(Debug, Clone, Copy)]
pub struct ResponseQueue<'a> {
    server: &'a ModelServer,
    wire: WireFormat,
}

impl ResponseQueue<'_> {
    /// Queues a text response in these pieces.
    pub fn queue_text<T: Into<String>>(&self, pieces: impl IntoIterator<Item = T>) {
        self.queue(Response::text(pieces));
    }

    /// Queues a response.
    pub fn queue(&self, answer: Response) {
        self.server.shared.update(|state| state.queue(self.wire).push_back(answer));
    }

    /// Sets the response of requests that find the queue empty.
    pub fn set_fallback(&self, answer: Response) {
        self.server.shared.update(|state| *state.fallback(self.wire) = Some(answer));
    }
}
