//! Decodes requests, calls the operation for the method, and encodes its result.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use chorus_proto::error::CODE_METHOD_NOT_FOUND;
use chorus_proto::methods::{
    Method, agent, agent_transfer, approvals, audit, backup, capture, cluster, config, context, continuation,
    conversations, daemon, doctor, events, export, import, memory, models, notes, permissions, schedule, search, send,
    session, session_branching, settings, tasks, trash, usage,
};
use chorus_proto::rpc::Request;
use chorus_proto::{ErrorKind, RpcError};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod method_runner;
pub(super) mod request_check;
mod routes_macro;

use chorus_base::closest_match;
use chorus_base::error;
use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_engine::ops;
use chorus_engine::ops::Ops;
use chorus_engine::ops::events::subscribe::Subscription;

use self::method_runner::Responder;
use self::request_check::{check_request, find_id, is_id, not_a_request_error};
use self::routes_macro::routes;
use super::elsewhere::{Asked, ForwardOfClient};
use super::notifications::{progress_callback, progress_listener, turn_listener};
use super::reply::{self, Frame, to_rpc_error};
use super::writer::ClientWriter;
use super::{everywhere, follow};

/// Limit of the nodes that are asked for one request, because its agent moves at the same time.
const MAX_MOVES: usize = 4;

/// Limit of the wait for an agent of a node that cannot be reached. Longer than the time after which a heartbeat is stale.
const MAX_TAKEOVER: Duration = Duration::from_secs(12);

/// Time between two attempts to reach that node, or to take the agent over.
const TAKEOVER_RETRY: Duration = Duration::from_millis(300);

/// The client that sent a request.
#[derive(Debug, Clone)]
pub(super) struct ClientHandle {
    pub connection: u64,
    /// Writes the events of a turn to the client.
    pub writer: Arc<ClientWriter>,
    /// Takes what the connection sends besides responses.
    pub to_client: mpsc::Sender<Box<ToClient>>,
    /// Carries out requests for agents that other nodes have.
    pub elsewhere: Option<Arc<dyn ForwardOfClient>>,
    /// When the client last may have changed something: when it connected, or got the last reply to a request that may have. `None`
    /// if a search has waited for that.
    pub last_change: Arc<Mutex<Option<Instant>>>,
    /// Cancelled once no more requests are read, because the client has closed the connection or the daemon stops.
    pub reading_ended: CancellationToken,
}

/// A notification or subscription that a request hands to its connection.
#[derive(Debug)]
pub(super) enum ToClient {
    /// Sent once.
    Notification(Frame),
    /// Replaces the connection's current subscription.
    Events(Subscription),
}

// Every method but those that `answer` names.
routes! {
    // These change nothing, or they are done by somebody else once they are requested (an actor, a task): they may be dropped when
    // the client disconnects.
    inline daemon::Hello => daemon::hello(home);
    inline agent::Show => agent::show::show(agent_resolver, agent_describer, store.catalog.agents, effective_config);
    inline context::Show => context::show::show(agent_resolver, registry, context_meter, config);
    inline context::History => context::history::history(agent_resolver, sessions, clock);
    inline session::Get => session::get::get(sessions, summaries, clock, config);
    inline session_branching::Tree => session::tree::tree(agent_resolver, sessions, registry, config);
    inline session_branching::Diff => session::diff::diff(agent_resolver, sessions, session_overlaps, config);
    inline export::Select => session::export::select(agent_resolver, sessions, clock);
    inline export::Read => session::export::read(
        sessions,
        store.catalog.tool_exports,
        export_positions,
        config
    );
    inline permissions::List => permissions::list::list(agent_resolver, effective_config);
    inline permissions::Show => permissions::show::show(agent_resolver, effective_config);
    inline permissions::Rules => permissions::rules::rules(agent_resolver);
    inline permissions::Check => permissions::check::check(agent_resolver, sandbox, mcp);
    inline settings::Show => settings::show::show(effective_config);
    inline models::List => models::list::list(models, effective_config);
    inline usage::Show => usage::usage(agents, store.catalog, usage, models, clock);
    inline approvals::List => approvals::list::list(agent_resolver, approvals, store.catalog.approvals, config);
    inline audit::Audit => audit::audit(agents, store.catalog.audit, clock);
    inline audit::Verify => audit::verify::verify(store);
    inline trash::List => trash::list::list(home);
    inline tasks::List => tasks::list::list(agent_resolver, store.catalog.tasks, config);
    inline tasks::Show => tasks::show::show(agent_resolver, store.catalog.tasks);
    inline tasks::Logs => tasks::logs::logs(agent_resolver, store.catalog.tasks, tasks, config);
    inline tasks::Stop => tasks::stop::stop(agent_resolver, store.catalog.tasks, tasks);
    inline schedule::List => schedule::list::list(schedules, config);
    inline schedule::Show => schedule::show::show(schedules);
    inline memory::List => memory::list::list(agent_resolver, store.catalog.memories, store.catalog.sessions);
    inline memory::Search => memory::search::search(agent_resolver, store.catalog.memories, store.catalog.sessions);
    inline notes::List => notes::list::list(agent_resolver, registry, store.catalog, config);
    inline conversations::List => conversations::list::list(agent_resolver, agent_describer);
    inline daemon::Stop => daemon::stop(daemon);
    inline context::Append => context::append::append(agent_resolver, registry, redactor, clock, config);
    inline context::Rewind => context::rewind::rewind(agent_resolver, registry);
    inline context::Pin => context::pin::pin(agent_resolver, registry);
    inline context::Unpin => context::unpin::unpin(agent_resolver, registry);
    inline notes::Done => notes::done::done(agent_resolver, registry);
    inline notes::Resolve => notes::resolve::resolve(agent_resolver, registry);
    inline events::List => events::list::list(store.journal);
    inline context::Save => context::save::save(agent_resolver, registry);
    inline context::Clear => context::clear::clear(agent_resolver, registry);
    inline capture::Status => capture::status::status(capture);
    inline cluster::Status => cluster::status::status(store, peer_checks);
    inline send::Cancel => send::cancel::cancel(agent_resolver, registry);
    // These run to their end even if the client disconnects in the middle.
    spawned agent::Init => agent::init::init(agent_editor, catalog_sync);
    spawned agent::Destroy => agent::destroy::destroy(agent_editor, tasks);
    spawned permissions::RemoveRule => permissions::remove_rule::remove_rule(agent_editor);
    spawned approvals::Approve => approvals::approve::approve(agent_editor, approvals);
    spawned approvals::Deny => approvals::deny::deny(agent_resolver, approvals);
    spawned doctor::Size => doctor::size::size;
    spawned models::Validate => models::validate::validate(models, effective_config);
    spawned agent::Use => agent::use_::use_(agent_resolver, agent_describer, store.catalog.settings, agents);
    spawned agent::Config => agent::config::config(agent_editor);
    spawned conversations::New => conversations::new::new(agent_resolver, agent_describer);
    spawned conversations::Rename => conversations::rename::rename(agent_resolver, agent_describer);
    spawned conversations::Close => conversations::close::close(agent_resolver, agent_describer);
    spawned conversations::Merge => conversations::merge::merge(agent_resolver, agent_describer);
    spawned conversations::Use => conversations::use_::use_(agent_resolver, agent_describer);
    spawned config::Reload => config::reload::reload(config_reloader);
    spawned config::Set => config::set::set(config_reloader);
    spawned settings::Set => settings::set::set(effective_config, agent_resolver, models, registry, clock);
    spawned continuation::Resume => context::resume::resume(agent_resolver, continuation_starter);
    spawned continuation::Compact => context::compact::compact(agent_resolver, continuation_starter, summaries);
    spawned session::Delete => session::delete::delete(agent_resolver, session_trash);
    spawned session::Purge => session::purge::purge(agent_resolver, session_trash);
    spawned session::Scrub => session::scrub::scrub(agent_resolver, session_trash, redactor);
    spawned session::Expire => session::expire::expire(agent_resolver, session_trash, effective_config);
    spawned session::Tag => session::tag::tag(agent_resolver, sessions, sessions_lock, store, clock);
    spawned session::Untag => session::untag::untag(agent_resolver, sessions, sessions_lock, store, clock);
    spawned session_branching::Branch => session::branch::branch(agent_resolver, sessions, sessions_lock, registry, clock);
    spawned session_branching::Merge => session::merge::merge(agent_resolver, continuation_starter);
    spawned trash::Restore => trash::restore::restore(trash, sessions, agent_describer, catalog_sync, schedules);
    spawned search::Model => search::model::model(semantic);
    spawned schedule::Add => schedule::add::add(schedules);
    spawned schedule::Run => schedule::run::run(schedules);
    spawned schedule::Pause => schedule::pause::pause(schedules);
    spawned schedule::Resume => schedule::resume::resume(schedules);
    spawned schedule::Remove => schedule::remove::remove(schedules);
    spawned memory::Add => memory::add::add(agent_resolver, store.catalog, redactor, clock);
    spawned memory::Remove => memory::remove::remove(agent_resolver, store.catalog, clock);
    spawned notes::Add => notes::add::add(agent_resolver, registry, store.catalog, redactor, clock);
    spawned notes::Edit => notes::edit::edit(agent_resolver, registry, store.catalog, clock);
    spawned notes::Rm => notes::rm::rm(agent_resolver, registry, store.catalog, clock);
    spawned cluster::Forget => cluster::forget::forget(store);
    spawned cluster::Drain => cluster::drain::drain(agent_mover, effective_config);
    spawned capture::Off => capture::off::off(capture);
    spawned capture::Exclude => capture::exclude::exclude(capture);
    spawned capture::Forget => capture::forget::forget(capture, agent_resolver, session_trash);
    spawned capture::Pause => capture::pause::pause(capture);
    spawned capture::Resume => capture::resume::resume(capture);
    spawned context::Restore => context::restore::restore(agent_resolver, sessions, sessions_lock, registry, clock);
    // An import, an export and a backup belong to their connection.
    inline_of_connection import::Begin => session::import::begin(agent_resolver, transfers, home);
    inline_of_connection import::Add => session::import::add(transfers);
    inline_of_connection agent_transfer::ExportRead => agent::export::read(transfers, config);
    inline_of_connection agent_transfer::ImportBegin => agent::import::begin(transfers, home);
    inline_of_connection agent_transfer::ImportAdd => agent::import::add(transfers);
    inline_of_connection backup::ArchiveBegin => backup::archive::begin(backups);
    inline_of_connection backup::ArchiveRead => backup::archive::read(backups);
    spawned_of_connection import::Commit => session::import::commit(session_importer, transfers, capture);
    spawned_of_connection agent_transfer::ExportBegin => agent::export::begin(agent_exporter, transfers);
    spawned_of_connection agent_transfer::ImportCommit => agent::import::commit(agent_editor, catalog_sync, sandbox, transfers);
    spawned_with_progress backup::Create => backup::create::create(backups);
    spawned_with_progress capture::On => capture::on::on(capture);
    spawned_with_progress doctor::Doctor => doctor::doctor;
    spawned_with_progress doctor::Secrets => doctor::secrets::secrets;
    spawned_with_progress trash::Empty => trash::empty::empty(trash);
}

/// The unit in which the progress of a method is counted.
fn progress_unit(method: &str) -> &'static str {
    match method {
        doctor::Doctor::NAME | doctor::Secrets::NAME => "sessions",
        search::Search::NAME => "conversations",
        trash::Empty::NAME => "items",
        _ => "bytes",
    }
}

/// Runs the request in `body`. Returns `None` for a notification, which has no reply.
pub(super) async fn dispatch(ops: Arc<Ops>, caller: ClientHandle, body: Bytes) -> Option<Frame> {
    let request: Request<'_> = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(e) => return Some(reply::error_frame(find_id(&body), &not_a_request_error(&body, &e))),
    };
    if let Err(error) = check_request(&request) {
        return Some(reply::error_frame(request.id.filter(|id| is_id(id)), &error));
    }
    let last_change = (!changes_nothing(&request.method)).then(|| caller.last_change.clone());
    let there = OnceLock::new();
    // Only in a cluster a request can need a second attempt.
    let again = caller.elsewhere.clone().map(|way| (way, ops.clone(), caller.clone()));
    if let Some((way, ..)) = &again {
        if !way.may_call(&request.method) {
            return request.id.map(|id| reply::error_frame(Some(id), &not_for_nodes_error(&request.method)));
        }
        if let Some(there) = way.find_transfer(&request.method, request.params) {
            return Box::pin(continue_elsewhere(&**way, there, &body)).await;
        }
    }
    if let Some((way, ops, caller)) = again.as_ref().filter(|(way, ..)| way.reaches_others())
        && request.method == conversations::Attach::NAME
        && let (Some(id), Ok(params)) = (request.id, serde_json::from_str(request.params.map_or("{}", RawValue::get)))
    {
        return Box::pin(follow::follow(ops.clone(), caller.clone(), &**way, id, params)).await;
    }
    let mut frame = answer(ops, caller, request, &there).await;
    if let (Some(there), Some((way, ops, caller))) = (there.into_inner(), again) {
        frame = Box::pin(ask_elsewhere(ops, caller, &*way, (&body, *there), frame)).await;
    }
    if let Some(last_change) = last_change {
        *last_change.lock() = Some(Instant::now());
    }
    frame
}

/// Returns true for requests that clients send between searches and that change nothing.
fn changes_nothing(method: &str) -> bool {
    let methods =
        [search::Search::NAME, daemon::Hello::NAME, daemon::Status::NAME, session::Get::NAME, context::History::NAME];
    methods.contains(&method)
}

/// Methods that report what they can without the store, or that work long on something else.
const WAIT_FOR_OTHER_THINGS: [&str; 5] =
    [doctor::Doctor::NAME, models::Validate::NAME, search::Model::NAME, capture::On::NAME, backup::Create::NAME];

/// Methods that only read, and that a node does not repeat when their answer is lost.
const READ_ONCE: [&str; 10] = [
    audit::Verify::NAME,
    capture::Status::NAME,
    cluster::Status::NAME,
    events::List::NAME,
    export::Read::NAME,
    models::List::NAME,
    permissions::List::NAME,
    settings::Show::NAME,
    tasks::Logs::NAME,
    trash::List::NAME,
];

/// Returns true for methods that only read, and may be repeated.
fn is_read(method: &str) -> bool {
    let reads = [
        agent::List::NAME,
        agent::Show::NAME,
        approvals::List::NAME,
        audit::Audit::NAME,
        context::History::NAME,
        context::Show::NAME,
        conversations::List::NAME,
        daemon::Status::NAME,
        memory::List::NAME,
        memory::Search::NAME,
        notes::List::NAME,
        permissions::Check::NAME,
        permissions::Rules::NAME,
        permissions::Show::NAME,
        schedule::List::NAME,
        schedule::Show::NAME,
        search::Search::NAME,
        session::Get::NAME,
        session_branching::Diff::NAME,
        session_branching::Tree::NAME,
        tasks::List::NAME,
        tasks::Show::NAME,
        usage::Show::NAME,
    ];
    reads.contains(&method)
}

/// Returns true for requests that may be carried out twice: those that only read, and messages with a key, which are appended once.
fn may_be_repeated(body: &[u8]) -> bool {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(body) else { return false };
    match &*request.method {
        context::Append::NAME => request.params.is_some_and(has_key),
        method => is_read(method),
    }
}

/// Returns true if the parameters of a request have an idempotency key.
fn has_key(params: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Keyed {
        key: Option<IgnoredAny>,
    }
    serde_json::from_str::<Keyed>(params.get()).is_ok_and(|params| params.key.is_some())
}

/// Lets another node carry a request out. If the agent has moved on by then, begins again, a few times; and if the node cannot
/// be reached, until this one may take the agent over, because the other's heartbeat is stale. `refusal` is the reply if no
/// other node can be asked.
async fn ask_elsewhere(
    ops: Arc<Ops>,
    caller: ClientHandle,
    way: &dyn ForwardOfClient,
    (body, mut there): (&Bytes, error::Elsewhere),
    mut refusal: Option<Frame>,
) -> Option<Frame> {
    let until = Instant::now() + MAX_TAKEOVER;
    let mut moves = 0;
    let claims = &ops.agent_resolver.claims;
    while moves < MAX_MOVES {
        let asked_node = there.clone();
        let asked = way.ask(there, body, refusal).await;
        if !matches!(asked, Asked::Done(None)) {
            // It did not carry the request out, so another node may have the agent.
            claims.owner_hints.forget(&asked_node.node);
        }
        if let Some(ownership) = &ops.store.ownership
            && matches!(asked, Asked::Done(None) | Asked::Unreachable(_))
        {
            ownership.note_reach(&asked_node.node, matches!(asked, Asked::Done(None)));
        }
        match asked {
            Asked::Done(reply) => return reply,
            Asked::Moved => {
                moves += 1;
                if moves > 1 {
                    // It may be on its way.
                    tokio::time::sleep(TAKEOVER_RETRY).await;
                }
            }
            Asked::Lost(reply) if !may_be_repeated(body) => return reply,
            Asked::Lost(reply) | Asked::Unreachable(reply) if Instant::now() > until => return reply,
            Asked::Lost(_) | Asked::Unreachable(_) => tokio::time::sleep(TAKEOVER_RETRY).await,
        }
        let request = serde_json::from_slice(body).ok()?;
        let next = OnceLock::new();
        let reply = answer(ops.clone(), caller.clone(), request, &next).await;
        match next.into_inner() {
            Some(next) => (there, refusal) = (*next, reply),
            None => return reply,
        }
    }
    refusal
}

/// Lets the node that has an import or export continue it.
async fn continue_elsewhere(way: &dyn ForwardOfClient, there: error::Elsewhere, body: &Bytes) -> Option<Frame> {
    let failure = Error::new(ErrorKind::NotFound, format!("the node {} has ended this import or export", there.node))
        .hint("start it again");
    let refusal = find_id(body).map(|id| reply::error_frame(Some(id), &to_rpc_error(&failure)));
    match way.ask(there, body, refusal.clone()).await {
        Asked::Done(reply) | Asked::Lost(reply) => reply,
        Asked::Moved | Asked::Unreachable(_) => refusal,
    }
}

fn not_for_nodes_error(method: &str) -> RpcError {
    let what = format!("a node does not call `{method}` on another one");
    to_rpc_error(&Error::new(ErrorKind::Denied, what).hint("use the socket of that node"))
}

/// Runs the operation of a request. Sets `there` if another node has to be asked, and nothing was done.
pub(super) async fn answer(
    ops: Arc<Ops>,
    caller: ClientHandle,
    request: Request<'_>,
    there: &OnceLock<Box<error::Elsewhere>>,
) -> Option<Frame> {
    let id = request.id.map(ToOwned::to_owned);
    let claims = ops.agent_resolver.claims.clone();
    let answer = Responder {
        id: id.as_deref(),
        limit: ops.config.max_frame,
        elsewhere: there,
        claims: (!WAIT_FOR_OTHER_THINGS.contains(&&*request.method)).then_some(&claims),
        is_read: is_read(&request.method) || READ_ONCE.contains(&&*request.method),
    };
    let params = request.params;
    match request.method.as_ref() {
        events::Subscribe::NAME => {
            answer
                .run_inline::<events::Subscribe, _, _>(params, |p| async move {
                    let (result, subscription) = ops::events::subscribe::subscribe_to_all(&ops.store, p).await?;
                    // A connection has one subscription: a new one replaces the old.
                    let _ = caller.to_client.send(Box::new(ToClient::Events(subscription))).await;
                    Ok(result)
                })
                .await
        }
        // A turn continues without the client that requested it.
        send::Send::NAME => {
            let listener = turn_listener(id.as_deref(), params, caller.writer);
            answer.run_inline::<send::Send, _, _>(params, |p| ops::send::send(&ops.message_sender, p, listener)).await
        }
        // It has no answer before the connection ends.
        conversations::Attach::NAME => {
            let (listener, ended) = (progress_listener(id.as_deref(), caller.writer), caller.reading_ended);
            let (agents, registry) = (&ops.agent_resolver, &ops.registry);
            let attach = |p| async move {
                tokio::select! {
                    attached = ops::conversations::attach::attach(agents, registry, p, listener) => attached,
                    () = ended.cancelled() => Err(Error::new(ErrorKind::Stopping, "the connection to the daemon ends")),
                }
            };
            answer.run_until_end::<conversations::Attach, _, _>(params, attach).await
        }
        search::Search::NAME => {
            let last_change = *caller.last_change.lock();
            let (agents, sessions, index, semantic) = (&ops.agent_resolver, &ops.sessions, &ops.search, &ops.semantic);
            let way = caller.elsewhere.as_deref();
            let reply = answer.run_inline::<search::Search, _, _>(params, |mut p| async {
                // Without a name and a default, all agents are searched, wherever they are.
                if way.is_some() && !p.all_agents && p.agent.is_none() && p.conversation.is_none() {
                    let default = claims.default_agent().await;
                    p.all_agents = default.is_err_and(|failure| failure.kind == ErrorKind::NoAgent);
                }
                if p.wait {
                    let progress =
                        progress_callback(progress_unit(search::Search::NAME), answer.id, caller.to_client.clone());
                    index.wait_until_complete(progress).await;
                }
                let (limit, elsewhere) = (p.limit, way.filter(|_| p.all_agents).map(|way| (way, p.clone())));
                let here = ops::search::search(agents, sessions, index, semantic, &ops.clock, last_change, p);
                let result = match elsewhere {
                    Some((way, p)) => everywhere::search(&ops, way, (here, &p), limit).await?,
                    None => here.await?,
                };
                // One wait is enough, even if it was in vain.
                caller.last_change.lock().take_if(|newest| Some(*newest) == last_change);
                Ok(result)
            });
            Box::pin(reply).await
        }
        daemon::Status::NAME => {
            let way = caller.elsewhere.as_deref();
            Box::pin(answer.run_inline::<daemon::Status, _, _>(params, |p| everywhere::status(&ops, way, p))).await
        }
        agent::List::NAME => {
            let way = caller.elsewhere.as_deref();
            Box::pin(answer.run_inline::<agent::List, _, _>(params, |p| everywhere::list(&ops, way, p))).await
        }
        name => route((name, params), answer, ops, caller).await,
    }
}

/// Parses and checks a request as `dispatch` does before it calls the operation. Lets tests send malformed requests
/// without a daemon.
pub fn parse_request(body: &[u8]) -> Result<Request<'_>, RpcError> {
    let request = serde_json::from_slice(body).map_err(|e| not_a_request_error(body, &e))?;
    check_request(&request).map(|()| request)
}

/// Returns the names of all methods.
fn method_names() -> impl Iterator<Item = &'static str> {
    ROUTED_NAMES.iter().copied().chain([
        events::Subscribe::NAME,
        send::Send::NAME,
        conversations::Attach::NAME,
        search::Search::NAME,
        daemon::Status::NAME,
        agent::List::NAME,
    ])
}

fn unknown_method_error(name: &str) -> RpcError {
    let shown: String = name.chars().take(80).collect();
    let failure = Error::new(ErrorKind::Unsupported, format!("unknown method {shown:?}"));
    let failure = match closest_match(name, method_names()) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint("see the methods in docs/PROTOCOL.md"),
    };
    RpcError { code: CODE_METHOD_NOT_FOUND, ..to_rpc_error(&failure) }
}
