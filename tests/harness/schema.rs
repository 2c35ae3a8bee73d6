//! Generates the JSON Schema of the protocol from the wire types.

use chorus_proto::event::{Event, Lagged};
use chorus_proto::methods::{
    agent, agent_transfer, approvals, audit, backup, capture, cluster, config, context, continuation, conversations,
    daemon, doctor, events, export, import, memory, models, notes, permissions, schedule, search, send, session,
    session_branching, settings, tasks, trash, usage,
};
use chorus_proto::rpc::Progress;
use chorus_proto::{Message, Method, PROTOCOL, RpcError, SessionHeader};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Collects the schemas of the methods.
struct Collector {
    /// Schemas of requests: fields with a default are optional.
    requests: SchemaGenerator,
    /// Schemas of answers: fields with a default are always present.
    answers: SchemaGenerator,
    methods: Map<String, Value>,
}

impl Collector {
    fn add_method<M: Method<Params: JsonSchema, Result: JsonSchema>>(&mut self) {
        let params = M::Params::json_schema(&mut self.requests);
        let result = M::Result::json_schema(&mut self.answers);
        self.methods.insert(M::NAME.to_owned(), json!({ "params": params, "result": result }));
    }
}

/// Returns `{protocol, methods: {"context.append": {params, result}, …}, error, progress, send_progress, message,
/// session_header, $defs}`. Panics if a type has different schemas in requests and answers.
#[must_use]
pub fn protocol_schema() -> Value {
    let mut all = Collector {
        requests: SchemaSettings::draft2020_12().for_deserialize().into_generator(),
        answers: SchemaSettings::draft2020_12().for_serialize().into_generator(),
        methods: Map::new(),
    };
    all.add_method::<daemon::Hello>();
    all.add_method::<daemon::Status>();
    all.add_method::<daemon::Stop>();
    all.add_method::<doctor::Doctor>();
    all.add_method::<agent::Init>();
    all.add_method::<agent::Destroy>();
    all.add_method::<agent::List>();
    all.add_method::<agent::Show>();
    all.add_method::<agent::Use>();
    all.add_method::<agent::Config>();
    all.add_method::<context::Append>();
    all.add_method::<context::Show>();
    all.add_method::<context::Save>();
    all.add_method::<context::Clear>();
    all.add_method::<context::History>();
    all.add_method::<context::Restore>();
    all.add_method::<continuation::Resume>();
    all.add_method::<continuation::Compact>();
    all.add_method::<context::Rewind>();
    all.add_method::<context::Pin>();
    all.add_method::<context::Unpin>();
    all.add_method::<conversations::List>();
    all.add_method::<conversations::New>();
    all.add_method::<conversations::Rename>();
    all.add_method::<conversations::Close>();
    all.add_method::<conversations::Merge>();
    all.add_method::<conversations::Use>();
    all.add_method::<conversations::Attach>();
    all.add_method::<events::List>();
    all.add_method::<events::Subscribe>();
    all.add_method::<session::Get>();
    all.add_method::<session::Delete>();
    all.add_method::<session::Purge>();
    all.add_method::<session::Scrub>();
    all.add_method::<doctor::Secrets>();
    all.add_method::<doctor::Size>();
    all.add_method::<session::Expire>();
    all.add_method::<session::Tag>();
    all.add_method::<session::Untag>();
    all.add_method::<session_branching::Tree>();
    all.add_method::<session_branching::Branch>();
    all.add_method::<session_branching::Diff>();
    all.add_method::<session_branching::Merge>();
    all.add_method::<trash::List>();
    all.add_method::<trash::Restore>();
    all.add_method::<trash::Empty>();
    all.add_method::<export::Select>();
    all.add_method::<export::Read>();
    all.add_method::<import::Begin>();
    all.add_method::<import::Add>();
    all.add_method::<import::Commit>();
    all.add_method::<permissions::List>();
    all.add_method::<permissions::Show>();
    all.add_method::<permissions::Check>();
    all.add_method::<permissions::Rules>();
    all.add_method::<permissions::RemoveRule>();
    all.add_method::<config::Reload>();
    all.add_method::<config::Set>();
    all.add_method::<settings::Show>();
    all.add_method::<settings::Set>();
    all.add_method::<models::List>();
    all.add_method::<models::Validate>();
    all.add_method::<search::Search>();
    all.add_method::<send::Send>();
    all.add_method::<send::Cancel>();
    all.add_method::<tasks::List>();
    all.add_method::<tasks::Show>();
    all.add_method::<tasks::Logs>();
    all.add_method::<tasks::Stop>();
    all.add_method::<schedule::Add>();
    all.add_method::<schedule::List>();
    all.add_method::<schedule::Show>();
    all.add_method::<schedule::Run>();
    all.add_method::<schedule::Pause>();
    all.add_method::<schedule::Resume>();
    all.add_method::<schedule::Remove>();
    all.add_method::<usage::Show>();
    all.add_method::<approvals::List>();
    all.add_method::<approvals::Approve>();
    all.add_method::<approvals::Deny>();
    all.add_method::<audit::Audit>();
    all.add_method::<audit::Verify>();
    all.add_method::<search::Model>();
    all.add_method::<memory::Add>();
    all.add_method::<memory::List>();
    all.add_method::<memory::Search>();
    all.add_method::<memory::Remove>();
    all.add_method::<notes::List>();
    all.add_method::<notes::Add>();
    all.add_method::<notes::Edit>();
    all.add_method::<notes::Done>();
    all.add_method::<notes::Rm>();
    all.add_method::<notes::Resolve>();
    all.add_method::<agent_transfer::ExportBegin>();
    all.add_method::<agent_transfer::ExportRead>();
    all.add_method::<agent_transfer::ImportBegin>();
    all.add_method::<agent_transfer::ImportAdd>();
    all.add_method::<agent_transfer::ImportCommit>();
    all.add_method::<backup::Create>();
    all.add_method::<backup::ArchiveBegin>();
    all.add_method::<backup::ArchiveRead>();
    all.add_method::<capture::On>();
    all.add_method::<capture::Off>();
    all.add_method::<capture::Status>();
    all.add_method::<capture::Exclude>();
    all.add_method::<capture::Forget>();
    all.add_method::<capture::Pause>();
    all.add_method::<capture::Resume>();
    all.add_method::<cluster::Status>();
    all.add_method::<cluster::Drain>();
    all.add_method::<cluster::Forget>();
    let error = RpcError::json_schema(&mut all.answers);
    let progress = Progress::json_schema(&mut all.answers);
    let said = send::Progress::json_schema(&mut all.answers);
    let event = Event::json_schema(&mut all.answers);
    let lagged = Lagged::json_schema(&mut all.answers);
    let message = Message::json_schema(&mut all.answers);
    let header = SessionHeader::json_schema(&mut all.answers);

    let mut defs = all.answers.take_definitions(true);
    for (name, schema) in all.requests.take_definitions(true) {
        let shape = defs.entry(&name).or_insert_with(|| schema.clone());
        assert_eq!(*shape, schema, "{name} has one shape in requests and another in answers");
    }
    sort_keys(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Chorus protocol",
        "protocol": PROTOCOL,
        "methods": all.methods,
        "error": error,
        "progress": progress,
        "send_progress": said,
        "event": event,
        "lagged": lagged,
        "message": message,
        "session_header": header,
        "$defs": defs,
    }))
}

/// Sorts the keys of all objects alphabetically, because their order depends on the features of the build.
fn sort_keys(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, sort_keys(value))).collect();
            entries.sort_by(|one, two| one.0.cmp(&two.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(sort_keys).collect()),
        other => other,
    }
}
