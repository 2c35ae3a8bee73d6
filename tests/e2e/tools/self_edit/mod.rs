//! What an agent does to itself and to other agents: its prompt, notes, permissions and model, what it remembers, finds again and
//! sends; and that nothing but a person's word gives it more.

mod authority;
mod memory;
mod messages;
mod settings;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_proto::{CallError, Client, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, Home};
use serde_json::{Value, json};

use crate::home;

/// A daemon with a scripted model, and the agent `a`, which answers by it.
pub struct Rig {
    pub server: ModelServer,
    pub home: Home,
    pub daemon: Daemon,
}

/// What came of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Came {
    pub text: String,
    pub is_error: bool,
}

impl Rig {
    /// `a` has these permissions.
    pub fn new(permissions: &str) -> Self {
        Self::with(permissions, "", Daemon::start)
    }

    /// With more tables of config.toml, and started in another way.
    pub fn with(permissions: &str, tables: &str, start: impl FnOnce(&Home) -> Daemon) -> Self {
        let (server, home) = (ModelServer::start(), home());
        // Nobody answers here.
        home.write_config(&format!("approval_timeout = \"1s\"\n{}{tables}", server.config_toml()));
        let rig = Self { daemon: start(&home), server, home };
        rig.agent("a", "anthropic/claude-test", permissions);
        rig
    }

    pub fn agent(&self, name: &str, model: &str, permissions: &str) {
        let params = InitParams {
            name: name.into(),
            model: Some(model.into()),
            permissions: Some(permissions.into()),
            ..Default::default()
        };
        self.client().call::<Init>(&params).expect("agent.init");
    }

    pub fn client(&self) -> Client {
        self.daemon.client()
    }

    pub fn send(&self, text: &str) -> Result<SendResult, CallError> {
        let params = SendParams { agent: Some("a".into()), text: text.into(), ..Default::default() };
        self.client().call::<Send>(&params)
    }

    /// A turn of `a` in which its model makes one call.
    pub fn call(&self, tool: &str, params: Value) -> Came {
        self.server.anthropic().queue(Response::tool_call("c1", tool, &params));
        self.server.anthropic().queue_text(["Done."]);
        self.send("do it").expect("a turn");
        self.results("a").pop().expect("a result")
    }

    /// A call that must succeed.
    #[track_caller]
    pub fn done(&self, tool: &str, params: Value) -> String {
        let came = self.call(tool, params);
        assert!(!came.is_error, "{tool}: {}", came.text);
        came.text
    }

    /// A call that must fail.
    #[track_caller]
    pub fn fails(&self, tool: &str, params: Value) -> String {
        let came = self.call(tool, params);
        assert!(came.is_error, "{tool}: {}", came.text);
        came.text
    }

    /// The results of calls in the context of an agent.
    pub fn results(&self, agent: &str) -> Vec<Came> {
        let results = self.client().messages(agent).into_iter().filter(|message| message.role == Role::ToolResult);
        results.map(|message| Came { text: message.content, is_error: message.is_error }).collect()
    }

    /// A key of agent.json.
    pub fn config(&self, agent: &str, key: &str) -> Value {
        let text = std::fs::read_to_string(self.home.agent_dir(agent).join("agent.json")).expect("agent.json");
        serde_json::from_str::<Value>(&text).expect("JSON")[key].take()
    }

    /// The blocks of the prompt in the last request of `a`.
    pub fn prompt(&self) -> Vec<String> {
        let requests = self.server.requests();
        // Those for summaries have no tools.
        let of_turn = |body: &Value| body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let mut all = requests.iter().rev().filter(|request| request.path == "/v1/messages");
        let last = all.find(|request| of_turn(&request.body)).expect("a request");
        let system = last.body["system"].as_array().cloned().unwrap_or_default();
        system.iter().map(|block| block["text"].as_str().expect("a text").to_owned()).collect()
    }

    /// Rows of a table of the catalog: all columns as text.
    pub fn rows(&self, query: &str) -> Vec<Vec<String>> {
        let database = self.database();
        let mut statement = database.prepare(query).expect("a query");
        let columns = statement.column_count();
        let text = |row: &rusqlite::Row<'_>| (0..columns).map(|at| Ok(format!("{:?}", row.get_ref(at)?))).collect();
        statement.query_map([], text).expect("rows").collect::<rusqlite::Result<_>>().expect("rows")
    }

    /// The changes in the audit log: action, user, old and new value.
    pub fn changes(&self) -> Vec<[String; 4]> {
        let database = self.database();
        let query = "SELECT action, user, coalesce(old, 'NULL'), coalesce(new, 'NULL') FROM audit_log
                     WHERE decision = 'changed' ORDER BY id";
        let mut statement = database.prepare(query).expect("a query");
        let row = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]);
        statement.query_map([], row).expect("rows").collect::<rusqlite::Result<_>>().expect("rows")
    }

    pub fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.home.path.join("db/chorus.db")).expect("the catalog")
    }
}

/// Parameters of `self_edit_permissions`.
fn profile(profile: impl Into<Value>) -> Value {
    json!({"profile": profile.into()})
}
