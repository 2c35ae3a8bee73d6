//! The JSON Schema of the protocol, generated from the wire types.

use chorus_proto::event::{Event, Lagged};
use chorus_proto::methods::{
    agent, approvals, archive, audit, backup, chain, context, daemon, doctor, events, export, import, memory, models,
    permissions, send, session, settings, tasks, trash, tree, usage,
};
use chorus_proto::rpc::Progress;
use chorus_proto::{Message, Method, PROTOCOL, RpcError, SessionHeader};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Collects the schema of one method after the other.
struct Collector {
    /// What a request may hold: fields with a default may be left out.
    requests: SchemaGenerator,
    /// What an answer holds: fields with a default are always there.
    answers: SchemaGenerator,
    methods: Map<String, Value>,
}

impl Collector {
    fn add<M: Method<Params: JsonSchema, Result: JsonSchema>>(&mut self) {
        let params = M::Params::json_schema(&mut self.requests);
        let result = M::Result::json_schema(&mut self.answers);
        self.methods.insert(M::NAME.to_owned(), json!({ "params": params, "result": result }));
    }
}

/// `{protocol, methods: {"context.append": {params, result}, …}, error, progress, send_progress, message, session_header, $defs}`.
///
/// # Panics
/// Where one name would stand for two shapes.
#[must_use]
pub fn document() -> Value {
    let mut all = Collector {
        requests: SchemaSettings::draft2020_12().for_deserialize().into_generator(),
        answers: SchemaSettings::draft2020_12().for_serialize().into_generator(),
        methods: Map::new(),
    };
    all.add::<daemon::Hello>();
    all.add::<daemon::Status>();
    all.add::<daemon::Stop>();
    all.add::<doctor::Doctor>();
    all.add::<agent::Init>();
    all.add::<agent::Destroy>();
    all.add::<agent::List>();
    all.add::<agent::Show>();
    all.add::<agent::Use>();
    all.add::<agent::Config>();
    all.add::<context::Append>();
    all.add::<context::Show>();
    all.add::<context::Save>();
    all.add::<context::Clear>();
    all.add::<context::History>();
    all.add::<context::Restore>();
    all.add::<chain::Resume>();
    all.add::<chain::Compact>();
    all.add::<context::Rewind>();
    all.add::<context::Pin>();
    all.add::<context::Unpin>();
    all.add::<events::List>();
    all.add::<events::Subscribe>();
    all.add::<session::Get>();
    all.add::<session::Delete>();
    all.add::<session::Purge>();
    all.add::<session::Expire>();
    all.add::<session::Tag>();
    all.add::<session::Untag>();
    all.add::<tree::Tree>();
    all.add::<tree::Branch>();
    all.add::<tree::Diff>();
    all.add::<tree::Merge>();
    all.add::<trash::List>();
    all.add::<trash::Restore>();
    all.add::<trash::Empty>();
    all.add::<export::Select>();
    all.add::<export::Read>();
    all.add::<import::Begin>();
    all.add::<import::Add>();
    all.add::<import::Commit>();
    all.add::<permissions::List>();
    all.add::<permissions::Show>();
    all.add::<permissions::Check>();
    all.add::<settings::Show>();
    all.add::<settings::Set>();
    all.add::<models::List>();
    all.add::<models::Validate>();
    all.add::<send::Send>();
    all.add::<send::Cancel>();
    all.add::<tasks::List>();
    all.add::<tasks::Show>();
    all.add::<tasks::Logs>();
    all.add::<tasks::Stop>();
    all.add::<usage::Show>();
    all.add::<approvals::List>();
    all.add::<approvals::Approve>();
    all.add::<approvals::Deny>();
    all.add::<audit::Audit>();
    all.add::<audit::Verify>();
    all.add::<memory::Add>();
    all.add::<memory::List>();
    all.add::<memory::Search>();
    all.add::<memory::Remove>();
    all.add::<archive::ExportBegin>();
    all.add::<archive::ExportRead>();
    all.add::<archive::ImportBegin>();
    all.add::<archive::ImportAdd>();
    all.add::<archive::ImportCommit>();
    all.add::<backup::Create>();
    all.add::<backup::ArchiveBegin>();
    all.add::<backup::ArchiveRead>();
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
    sorted(json!({
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

/// The same with its keys in alphabetical order, however this build keeps them.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|one, two| one.0.cmp(&two.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(sorted).collect()),
        other => other,
    }
}
