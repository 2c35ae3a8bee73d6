//! Models: what is sent to providers, what comes back, and what happens when it does not.

mod add;
mod certificates;
mod context_length;
mod cost;
mod discovery;
mod failures;
mod keys;
mod limits;
mod real_server;
mod recorded_streams;
mod replies;
mod requests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chorus_clock::Clock;
use chorus_config as config;
use chorus_llm::retry::RetryPolicy;
use chorus_llm::{CallError, ModelRef, ModelRequest, Models, Reply, StreamEvent};
use chorus_proto::{Message, NewMessage, Role};
use chorus_redact::Redactor;
use chorus_tests::model_server::ModelServer;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// A redactor without a home.
fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new(|| [0; 32]))
}

/// The model of each wire format.
const CLAUDE: &str = "anthropic/claude-test";
const SMALL: &str = "local/small";
const BOTH: [&str; 2] = [CLAUDE, SMALL];

/// The models of a scripted server, without a daemon around them.
struct ModelServerFixture {
    server: ModelServer,
    models: Arc<Models>,
    runtime: Runtime,
    _home: TempDir,
}

/// A call that ended.
struct Called {
    result: Result<Reply, CallError>,
    outputs: Vec<StreamEvent>,
}

impl ModelServerFixture {
    fn new() -> Self {
        Self::with("")
    }

    /// With more keys in both providers, for example limits.
    fn with(keys: &str) -> Self {
        let server = ModelServer::start();
        let config = server.config_toml_with(keys);
        Self::on(server, &config)
    }

    /// With a configuration of its own.
    fn on(server: ModelServer, config: &str) -> Self {
        Self::by(server, config, Clock::system())
    }

    /// The same with dates by another clock.
    fn by(server: ModelServer, config: &str, clock: Clock) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let file = home.path().join("config.toml");
        std::fs::write(&file, config).expect("config.toml");
        let config = config::load(&file, |_| None).expect("a configuration");
        // No waits between tries but those that the server asks for, or that a server on its way up is given.
        let policy = RetryPolicy { base: Duration::ZERO, ..RetryPolicy::default() };
        let models =
            Models::new(&config, home.path(), clock, redactor()).for_tests(Vec::new(), policy, Arc::new(|| 0.0));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self { server, models: Arc::new(models), runtime: runtime.expect("a runtime"), _home: home }
    }

    fn call(&self, model: &str, request: &ModelRequest) -> Called {
        let target = ModelRef::parse(model).expect("a model");
        let outputs = Mutex::new(Vec::new());
        let hear = |output| outputs.lock().expect("the outputs").push(output);
        let result = self.runtime.block_on(self.models.call(&target, request, &hear, CancellationToken::new()));
        Called { result, outputs: outputs.into_inner().expect("the outputs") }
    }

    /// Calls both models with whatever was laid out for each.
    fn ask(&self, model: &str) -> Called {
        self.call(model, &request("Hello?"))
    }
}

impl Called {
    fn reply(self) -> Reply {
        self.result.expect("a reply")
    }

    fn error(self) -> CallError {
        self.result.expect_err("no reply")
    }

    fn text(&self) -> String {
        let text = |output: &StreamEvent| if let StreamEvent::Text(text) = output { Some(text.clone()) } else { None };
        self.outputs.iter().filter_map(text).collect()
    }
}

fn message(new: NewMessage) -> Message {
    new.complete(|| "m".into(), jiff::Timestamp::UNIX_EPOCH)
}

fn user(text: &str) -> Message {
    message(NewMessage::text(Role::User, text))
}

fn request(text: &str) -> ModelRequest {
    ModelRequest { messages: vec![user(text)], max_tokens: 1000, ..ModelRequest::default() }
}

/// Whether `took` is `due`, give or take a tenth; a busy machine is given 50 ms more.
fn about(took: Duration, due: Duration) -> bool {
    took >= due.mul_f64(0.9) && took <= due.mul_f64(1.1) + Duration::from_millis(50)
}
