//! Decodes requests, calls the operation for the method, and encodes its result.

use std::sync::Arc;

use bytes::Bytes;
use chorus_proto::error::CODE_METHOD_NOT_FOUND;
use chorus_proto::methods::{
    Method, agent, agent_transfer, approvals, audit, backup, chain, context, daemon, doctor, events, export, import,
    memory, models, permissions, send, session, settings, tasks, trash, tree, usage,
};
use chorus_proto::rpc::Request;
use chorus_proto::{ErrorKind, RpcError};
use tokio::sync::mpsc;

mod backups;
mod request_check;
mod responder;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_engine::ops;
use chorus_engine::ops::Ops;
use chorus_engine::ops::events::subscribe::Subscription;

use self::request_check::{check_request, is_id, not_a_request_error};
use self::responder::Responder;
use super::progress::{progress_callback, turn_listener};
use super::reply::{self, Frame, to_rpc_error};
use super::writer::ClientWriter;

/// The client that sent a request.
#[derive(Debug, Clone)]
pub(super) struct ClientHandle {
    pub connection: u64,
    /// Writes the events of a turn to the client.
    pub writer: Arc<ClientWriter>,
    /// Takes what the connection sends besides responses.
    pub to_client: mpsc::Sender<Box<ToClient>>,
}

/// A notification or subscription that a request hands to its connection.
#[derive(Debug)]
pub(super) enum ToClient {
    /// Sent once.
    Notification(Frame),
    /// Replaces the connection's current subscription.
    Events(Subscription),
}

/// The names of all methods, for hints.
const METHOD_NAMES: [&str; 72] = [
    chain::Resume::NAME,
    chain::Compact::NAME,
    context::Rewind::NAME,
    context::Pin::NAME,
    context::Unpin::NAME,
    events::List::NAME,
    events::Subscribe::NAME,
    daemon::Hello::NAME,
    daemon::Status::NAME,
    daemon::Stop::NAME,
    doctor::Doctor::NAME,
    agent::Init::NAME,
    agent::Destroy::NAME,
    agent::List::NAME,
    agent::Show::NAME,
    agent::Use::NAME,
    agent::Config::NAME,
    context::Append::NAME,
    context::Show::NAME,
    context::Save::NAME,
    context::Clear::NAME,
    context::History::NAME,
    context::Restore::NAME,
    send::Send::NAME,
    send::Cancel::NAME,
    session::Get::NAME,
    session::Delete::NAME,
    session::Purge::NAME,
    session::Expire::NAME,
    session::Tag::NAME,
    session::Untag::NAME,
    tree::Tree::NAME,
    tree::Branch::NAME,
    tree::Diff::NAME,
    tree::Merge::NAME,
    trash::List::NAME,
    trash::Restore::NAME,
    trash::Empty::NAME,
    export::Select::NAME,
    export::Read::NAME,
    import::Begin::NAME,
    import::Add::NAME,
    import::Commit::NAME,
    permissions::List::NAME,
    permissions::Show::NAME,
    permissions::Check::NAME,
    settings::Show::NAME,
    settings::Set::NAME,
    models::List::NAME,
    models::Validate::NAME,
    usage::Show::NAME,
    approvals::List::NAME,
    approvals::Approve::NAME,
    approvals::Deny::NAME,
    audit::Audit::NAME,
    audit::Verify::NAME,
    tasks::List::NAME,
    tasks::Show::NAME,
    tasks::Logs::NAME,
    tasks::Stop::NAME,
    memory::Add::NAME,
    memory::List::NAME,
    memory::Search::NAME,
    memory::Remove::NAME,
    agent_transfer::ExportBegin::NAME,
    agent_transfer::ExportRead::NAME,
    agent_transfer::ImportBegin::NAME,
    agent_transfer::ImportAdd::NAME,
    agent_transfer::ImportCommit::NAME,
    backup::Create::NAME,
    backup::ArchiveBegin::NAME,
    backup::ArchiveRead::NAME,
];

/// Runs the request in `body`. Returns `None` for a notification, which has no reply.
pub(super) async fn dispatch(ops: Arc<Ops>, caller: ClientHandle, body: Bytes) -> Option<Frame> {
    let request: Request<'_> = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(e) => return Some(reply::error_frame(None, &not_a_request_error(&body, &e))),
    };
    if let Err(error) = check_request(&request) {
        return Some(reply::error_frame(request.id.filter(|id| is_id(id)), &error));
    }
    let id = request.id.map(ToOwned::to_owned);
    let answer = Responder { id: id.as_deref(), limit: ops.config.max_frame };
    let params = request.params;
    let o = &ops;
    match request.method.as_ref() {
        // These operations change nothing, so they may be dropped when the client disconnects.
        daemon::Hello::NAME => answer.run_inline::<daemon::Hello, _, _>(params, |p| ops::status::hello(o, p)).await,
        daemon::Status::NAME => answer.run_inline::<daemon::Status, _, _>(params, |p| ops::status::status(o, p)).await,
        agent::List::NAME => answer.run_inline::<agent::List, _, _>(params, |p| ops::agent::list::list(o, p)).await,
        agent::Show::NAME => answer.run_inline::<agent::Show, _, _>(params, |p| ops::agent::show::show(o, p)).await,
        context::Show::NAME => {
            answer.run_inline::<context::Show, _, _>(params, |p| ops::context::show::show(o, p)).await
        }
        context::History::NAME => {
            answer.run_inline::<context::History, _, _>(params, |p| ops::context::history::history(o, p)).await
        }
        session::Get::NAME => answer.run_inline::<session::Get, _, _>(params, |p| ops::session::get::get(o, p)).await,
        tree::Tree::NAME => answer.run_inline::<tree::Tree, _, _>(params, |p| ops::session::tree::tree(o, p)).await,
        tree::Diff::NAME => answer.run_inline::<tree::Diff, _, _>(params, |p| ops::session::diff::diff(o, p)).await,
        export::Select::NAME => {
            answer.run_inline::<export::Select, _, _>(params, |p| ops::session::export::select(o, p)).await
        }
        export::Read::NAME => {
            answer.run_inline::<export::Read, _, _>(params, |p| ops::session::export::read(o, p)).await
        }
        permissions::List::NAME => {
            answer.run_inline::<permissions::List, _, _>(params, |p| ops::permissions::list::list(o, p)).await
        }
        permissions::Show::NAME => {
            answer.run_inline::<permissions::Show, _, _>(params, |p| ops::permissions::show::show(o, p)).await
        }
        permissions::Check::NAME => {
            answer.run_inline::<permissions::Check, _, _>(params, |p| ops::permissions::check::check(o, p)).await
        }
        settings::Show::NAME => {
            answer.run_inline::<settings::Show, _, _>(params, |p| ops::settings::show::show(o, p)).await
        }
        models::List::NAME => answer.run_inline::<models::List, _, _>(params, |p| ops::models::list::list(o, p)).await,
        usage::Show::NAME => answer.run_inline::<usage::Show, _, _>(params, |p| ops::usage::usage(o, p)).await,
        approvals::List::NAME => {
            answer.run_inline::<approvals::List, _, _>(params, |p| ops::approvals::list::list(o, p)).await
        }
        audit::Audit::NAME => answer.run_inline::<audit::Audit, _, _>(params, |p| ops::audit::audit(o, p)).await,
        audit::Verify::NAME => {
            answer.run_inline::<audit::Verify, _, _>(params, |p| ops::audit::verify::verify(o, p)).await
        }
        trash::List::NAME => answer.run_inline::<trash::List, _, _>(params, |p| ops::trash::list::list(o, p)).await,
        tasks::List::NAME => answer.run_inline::<tasks::List, _, _>(params, |p| ops::tasks::list::list(o, p)).await,
        tasks::Show::NAME => answer.run_inline::<tasks::Show, _, _>(params, |p| ops::tasks::show::show(o, p)).await,
        tasks::Logs::NAME => answer.run_inline::<tasks::Logs, _, _>(params, |p| ops::tasks::logs::logs(o, p)).await,
        // The task ends even if nobody waits for the reply.
        tasks::Stop::NAME => answer.run_inline::<tasks::Stop, _, _>(params, |p| ops::tasks::stop::stop(o, p)).await,
        memory::List::NAME => answer.run_inline::<memory::List, _, _>(params, |p| ops::memory::list::list(o, p)).await,
        memory::Search::NAME => {
            answer.run_inline::<memory::Search, _, _>(params, |p| ops::memory::search::search(o, p)).await
        }
        daemon::Stop::NAME => answer.run_inline::<daemon::Stop, _, _>(params, |p| ops::status::stop(o, p)).await,
        // These operations run to the end even if the client disconnects in the middle.
        agent::Init::NAME => {
            answer
                .run_spawned::<agent::Init, _, _>(params, |p| async move {
                    ops.store.escalate_fatal(ops::agent::init::init(&ops, p).await)
                })
                .await
        }
        agent::Destroy::NAME => {
            answer
                .run_spawned::<agent::Destroy, _, _>(params, |p| async move {
                    ops.store.escalate_fatal(ops::agent::destroy::destroy(&ops, p).await)
                })
                .await
        }
        approvals::Approve::NAME => {
            answer
                .run_spawned::<approvals::Approve, _, _>(params, |p| async move {
                    ops.store.escalate_fatal(ops::approvals::approve::approve(&ops, p).await)
                })
                .await
        }
        approvals::Deny::NAME => {
            answer
                .run_spawned::<approvals::Deny, _, _>(
                    params,
                    |p| async move { ops::approvals::deny::deny(&ops, p).await },
                )
                .await
        }
        doctor::Doctor::NAME => {
            answer
                .run_spawned::<doctor::Doctor, _, _>(params, |p| async move { ops::doctor::doctor(&ops, p).await })
                .await
        }
        models::Validate::NAME => {
            answer
                .run_spawned::<models::Validate, _, _>(params, |p| async move {
                    ops::models::validate::validate(&ops, p).await
                })
                .await
        }
        agent::Use::NAME => {
            answer
                .run_spawned::<agent::Use, _, _>(params, |p| async move { ops::agent::use_::use_(&ops, p).await })
                .await
        }
        agent::Config::NAME => {
            answer
                .run_spawned::<agent::Config, _, _>(params, |p| async move {
                    ops.store.escalate_fatal(ops::agent::config::config(&ops, p).await)
                })
                .await
        }
        settings::Set::NAME => {
            answer
                .run_spawned::<settings::Set, _, _>(params, |p| async move {
                    ops.store.escalate_fatal(ops::settings::set::set(&ops, p).await)
                })
                .await
        }
        chain::Resume::NAME => {
            answer
                .run_spawned::<chain::Resume, _, _>(
                    params,
                    |p| async move { ops::context::resume::resume(&ops, p).await },
                )
                .await
        }
        chain::Compact::NAME => {
            answer
                .run_spawned::<chain::Compact, _, _>(params, |p| async move {
                    ops::context::compact::compact(&ops, p).await
                })
                .await
        }
        session::Delete::NAME => {
            answer
                .run_spawned::<session::Delete, _, _>(
                    params,
                    |p| async move { ops::session::delete::delete(&ops, p).await },
                )
                .await
        }
        session::Purge::NAME => {
            answer
                .run_spawned::<session::Purge, _, _>(
                    params,
                    |p| async move { ops::session::purge::purge(&ops, p).await },
                )
                .await
        }
        session::Expire::NAME => {
            answer
                .run_spawned::<session::Expire, _, _>(
                    params,
                    |p| async move { ops::session::expire::expire(&ops, p).await },
                )
                .await
        }
        session::Tag::NAME => {
            answer
                .run_spawned::<session::Tag, _, _>(params, |p| async move { ops::session::tag::tag(&ops, p).await })
                .await
        }
        session::Untag::NAME => {
            answer
                .run_spawned::<session::Untag, _, _>(
                    params,
                    |p| async move { ops::session::untag::untag(&ops, p).await },
                )
                .await
        }
        tree::Branch::NAME => {
            answer
                .run_spawned::<tree::Branch, _, _>(
                    params,
                    |p| async move { ops::session::branch::branch(&ops, p).await },
                )
                .await
        }
        tree::Merge::NAME => {
            answer
                .run_spawned::<tree::Merge, _, _>(params, |p| async move { ops::session::merge::merge(&ops, p).await })
                .await
        }
        trash::Restore::NAME => {
            answer
                .run_spawned::<trash::Restore, _, _>(
                    params,
                    |p| async move { ops::trash::restore::restore(&ops, p).await },
                )
                .await
        }
        trash::Empty::NAME => {
            answer
                .run_spawned::<trash::Empty, _, _>(params, |p| async move { ops::trash::empty::empty(&ops, p).await })
                .await
        }
        memory::Add::NAME => {
            answer
                .run_spawned::<memory::Add, _, _>(params, |p| async move { ops::memory::add::add(&ops, p).await })
                .await
        }
        memory::Remove::NAME => {
            answer
                .run_spawned::<memory::Remove, _, _>(
                    params,
                    |p| async move { ops::memory::remove::remove(&ops, p).await },
                )
                .await
        }
        // The actor completes these by itself once it has the command.
        context::Append::NAME => {
            answer.run_inline::<context::Append, _, _>(params, |p| ops::context::append::append(o, p)).await
        }
        context::Rewind::NAME => {
            answer.run_inline::<context::Rewind, _, _>(params, |p| ops::context::rewind::rewind(o, p)).await
        }
        context::Pin::NAME => answer.run_inline::<context::Pin, _, _>(params, |p| ops::context::pin::pin(o, p)).await,
        context::Unpin::NAME => {
            answer.run_inline::<context::Unpin, _, _>(params, |p| ops::context::unpin::unpin(o, p)).await
        }
        events::List::NAME => answer.run_inline::<events::List, _, _>(params, |p| ops::events::list::list(o, p)).await,
        events::Subscribe::NAME => {
            answer
                .run_inline::<events::Subscribe, _, _>(params, |p| async move {
                    let (result, subscription) = ops::events::subscribe::subscribe(o, p).await?;
                    // A connection has one subscription: a new one replaces the old.
                    let _ = caller.to_client.send(Box::new(ToClient::Events(subscription))).await;
                    Ok(result)
                })
                .await
        }
        context::Save::NAME => {
            answer.run_inline::<context::Save, _, _>(params, |p| ops::context::save::save(o, p)).await
        }
        context::Clear::NAME => {
            answer.run_inline::<context::Clear, _, _>(params, |p| ops::context::clear::clear(o, p)).await
        }
        context::Restore::NAME => {
            answer
                .run_spawned::<context::Restore, _, _>(params, |p| async move {
                    ops::context::restore::restore(&ops, p).await
                })
                .await
        }
        // A turn continues without the client that requested it.
        send::Send::NAME => {
            let ear = turn_listener(id.as_deref(), params, caller.writer);
            answer.run_inline::<send::Send, _, _>(params, |p| ops::send::send(o, p, ear)).await
        }
        send::Cancel::NAME => {
            answer.run_inline::<send::Cancel, _, _>(params, |p| ops::send::cancel::cancel(o, p)).await
        }
        // An import belongs to its connection until the commit.
        import::Begin::NAME => {
            answer
                .run_inline::<import::Begin, _, _>(params, |p| ops::session::import::begin(o, caller.connection, p))
                .await
        }
        import::Add::NAME => {
            answer.run_inline::<import::Add, _, _>(params, |p| ops::session::import::add(o, caller.connection, p)).await
        }
        import::Commit::NAME => {
            let progress = progress_callback(id.as_deref(), caller.to_client);
            answer
                .run_spawned::<import::Commit, _, _>(params, move |p| async move {
                    ops::session::import::commit(&ops, caller.connection, p, progress).await
                })
                .await
        }
        agent_transfer::ExportBegin::NAME => {
            let progress = progress_callback(id.as_deref(), caller.to_client);
            answer
                .run_spawned::<agent_transfer::ExportBegin, _, _>(params, move |p| async move {
                    ops::agent::export::begin(&ops, caller.connection, p, progress).await
                })
                .await
        }
        agent_transfer::ExportRead::NAME => {
            let connection = caller.connection;
            answer
                .run_inline::<agent_transfer::ExportRead, _, _>(params, |p| ops::agent::export::read(o, connection, p))
                .await
        }
        agent_transfer::ImportBegin::NAME => {
            let connection = caller.connection;
            answer
                .run_inline::<agent_transfer::ImportBegin, _, _>(params, |p| {
                    ops::agent::import::begin(o, connection, p)
                })
                .await
        }
        agent_transfer::ImportAdd::NAME => {
            let connection = caller.connection;
            answer
                .run_inline::<agent_transfer::ImportAdd, _, _>(params, |p| ops::agent::import::add(o, connection, p))
                .await
        }
        agent_transfer::ImportCommit::NAME => {
            let progress = progress_callback(id.as_deref(), caller.to_client);
            answer
                .run_spawned::<agent_transfer::ImportCommit, _, _>(params, move |p| async move {
                    ops.store.escalate_fatal(ops::agent::import::commit(&ops, caller.connection, p, progress).await)
                })
                .await
        }
        name if name.starts_with("backup.") => backups::dispatch(name, answer, (&ops, caller), params).await,
        other => answer.reply_error(&unknown_method_error(other)),
    }
}

/// Parses and checks a request as `dispatch` does before it calls the operation. Lets tests send malformed requests
/// without a daemon.
///
/// # Errors
/// The error that the daemon would reply.
pub fn parse_request(body: &[u8]) -> Result<Request<'_>, RpcError> {
    let request = serde_json::from_slice(body).map_err(|e| not_a_request_error(body, &e))?;
    check_request(&request).map(|()| request)
}

fn unknown_method_error(name: &str) -> RpcError {
    let shown: String = name.chars().take(80).collect();
    let failure = Error::new(ErrorKind::Unsupported, format!("there is no method {shown:?}"));
    let failure = match closest_match(name, METHOD_NAMES) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint("docs/PROTOCOL.md lists the methods"),
    };
    RpcError { code: CODE_METHOD_NOT_FOUND, ..to_rpc_error(&failure) }
}
