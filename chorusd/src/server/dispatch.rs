//! From a frame's bytes to a verb and back.

use std::sync::Arc;

use bytes::Bytes;
use chorus_proto::error::{CODE_INVALID_PARAMS, CODE_INVALID_REQUEST, CODE_METHOD_NOT_FOUND, CODE_PARSE};
use chorus_proto::methods::{
    Method, agent, approvals, archive, audit, backup, chain, context, daemon, doctor, events, export, import, memory,
    models, permissions, send, session, settings, tasks, trash, tree, usage,
};
use chorus_proto::rpc::Request;
use chorus_proto::{ErrorKind, RpcError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

mod backups;
mod check;

use self::check::{check, is_id, not_a_request};
use super::line::Line;
use super::meanwhile::{ear, on_progress};
use super::reply::{self, Frame, to_rpc};
use crate::config::nearest;
use crate::failure::{Failure, Result};
use crate::ops::events::subscribe::Subscription;
use crate::ops::{self, Ops};

/// Who asks.
#[derive(Debug, Clone)]
pub struct Caller {
    pub connection: u64,
    /// The way back, for what is said in a turn.
    pub line: Arc<Line>,
    /// Takes notifications; a full queue drops them.
    pub notify: mpsc::Sender<Frame>,
    /// Takes what the connection listens to from now on.
    pub subscribe: mpsc::Sender<Box<Subscription>>,
}

/// Every method there is, for hints.
const METHODS: [&str; 72] = [
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
    archive::ExportBegin::NAME,
    archive::ExportRead::NAME,
    archive::ImportBegin::NAME,
    archive::ImportAdd::NAME,
    archive::ImportCommit::NAME,
    backup::Create::NAME,
    backup::ArchiveBegin::NAME,
    backup::ArchiveRead::NAME,
];

/// Carries out the request in `body`. `None` for a notification: it has no answer.
pub async fn dispatch(ops: Arc<Ops>, caller: Caller, body: Bytes) -> Option<Frame> {
    let request: Request<'_> = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(e) => return Some(reply::error(None, &not_a_request(&body, &e))),
    };
    if let Err(error) = check(&request) {
        return Some(reply::error(request.id.filter(|id| is_id(id)), &error));
    }
    let id = request.id.map(ToOwned::to_owned);
    let answer = Answer { id: id.as_deref(), limit: ops.config.max_frame };
    let params = request.params;
    let o = &ops;
    match request.method.as_ref() {
        // These change nothing: whoever goes away while they run loses nothing.
        daemon::Hello::NAME => answer.now::<daemon::Hello, _, _>(params, |p| ops::status::hello(o, p)).await,
        daemon::Status::NAME => answer.now::<daemon::Status, _, _>(params, |p| ops::status::status(o, p)).await,
        agent::List::NAME => answer.now::<agent::List, _, _>(params, |p| ops::agent::list::list(o, p)).await,
        agent::Show::NAME => answer.now::<agent::Show, _, _>(params, |p| ops::agent::show::show(o, p)).await,
        context::Show::NAME => answer.now::<context::Show, _, _>(params, |p| ops::context::show::show(o, p)).await,
        context::History::NAME => {
            answer.now::<context::History, _, _>(params, |p| ops::context::history::history(o, p)).await
        }
        session::Get::NAME => answer.now::<session::Get, _, _>(params, |p| ops::session::get::get(o, p)).await,
        tree::Tree::NAME => answer.now::<tree::Tree, _, _>(params, |p| ops::session::tree::tree(o, p)).await,
        tree::Diff::NAME => answer.now::<tree::Diff, _, _>(params, |p| ops::session::diff::diff(o, p)).await,
        export::Select::NAME => {
            answer.now::<export::Select, _, _>(params, |p| ops::session::export::select(o, p)).await
        }
        export::Read::NAME => answer.now::<export::Read, _, _>(params, |p| ops::session::export::read(o, p)).await,
        permissions::List::NAME => {
            answer.now::<permissions::List, _, _>(params, |p| ops::permissions::list::list(o, p)).await
        }
        permissions::Show::NAME => {
            answer.now::<permissions::Show, _, _>(params, |p| ops::permissions::show::show(o, p)).await
        }
        permissions::Check::NAME => {
            answer.now::<permissions::Check, _, _>(params, |p| ops::permissions::check::check(o, p)).await
        }
        settings::Show::NAME => answer.now::<settings::Show, _, _>(params, |p| ops::settings::show::show(o, p)).await,
        models::List::NAME => answer.now::<models::List, _, _>(params, |p| ops::models::list::list(o, p)).await,
        usage::Show::NAME => answer.now::<usage::Show, _, _>(params, |p| ops::usage::usage(o, p)).await,
        approvals::List::NAME => {
            answer.now::<approvals::List, _, _>(params, |p| ops::approvals::list::list(o, p)).await
        }
        audit::Audit::NAME => answer.now::<audit::Audit, _, _>(params, |p| ops::audit::audit(o, p)).await,
        audit::Verify::NAME => answer.now::<audit::Verify, _, _>(params, |p| ops::audit::verify::verify(o, p)).await,
        trash::List::NAME => answer.now::<trash::List, _, _>(params, |p| ops::trash::list::list(o, p)).await,
        tasks::List::NAME => answer.now::<tasks::List, _, _>(params, |p| ops::tasks::list::list(o, p)).await,
        tasks::Show::NAME => answer.now::<tasks::Show, _, _>(params, |p| ops::tasks::show::show(o, p)).await,
        tasks::Logs::NAME => answer.now::<tasks::Logs, _, _>(params, |p| ops::tasks::logs::logs(o, p)).await,
        // It ends also where nobody waits for that.
        tasks::Stop::NAME => answer.now::<tasks::Stop, _, _>(params, |p| ops::tasks::stop::stop(o, p)).await,
        memory::List::NAME => answer.now::<memory::List, _, _>(params, |p| ops::memory::list::list(o, p)).await,
        memory::Search::NAME => answer.now::<memory::Search, _, _>(params, |p| ops::memory::search::search(o, p)).await,
        daemon::Stop::NAME => answer.now::<daemon::Stop, _, _>(params, |p| ops::status::stop(o, p)).await,
        // These are carried out to the end even if the client goes away in the middle.
        agent::Init::NAME => {
            answer
                .whole::<agent::Init, _, _>(params, |p| async move {
                    ops.store.judged(ops::agent::init::init(&ops, p).await)
                })
                .await
        }
        agent::Destroy::NAME => {
            answer
                .whole::<agent::Destroy, _, _>(params, |p| async move {
                    ops.store.judged(ops::agent::destroy::destroy(&ops, p).await)
                })
                .await
        }
        approvals::Approve::NAME => {
            answer
                .whole::<approvals::Approve, _, _>(params, |p| async move {
                    ops.store.judged(ops::approvals::approve::approve(&ops, p).await)
                })
                .await
        }
        approvals::Deny::NAME => {
            answer
                .whole::<approvals::Deny, _, _>(params, |p| async move { ops::approvals::deny::deny(&ops, p).await })
                .await
        }
        doctor::Doctor::NAME => {
            answer.whole::<doctor::Doctor, _, _>(params, |p| async move { ops::doctor::doctor(&ops, p).await }).await
        }
        models::Validate::NAME => {
            answer
                .whole::<models::Validate, _, _>(
                    params,
                    |p| async move { ops::models::validate::validate(&ops, p).await },
                )
                .await
        }
        agent::Use::NAME => {
            answer.whole::<agent::Use, _, _>(params, |p| async move { ops::agent::use_::use_(&ops, p).await }).await
        }
        agent::Config::NAME => {
            answer
                .whole::<agent::Config, _, _>(params, |p| async move {
                    ops.store.judged(ops::agent::config::config(&ops, p).await)
                })
                .await
        }
        settings::Set::NAME => {
            answer
                .whole::<settings::Set, _, _>(params, |p| async move {
                    ops.store.judged(ops::settings::set::set(&ops, p).await)
                })
                .await
        }
        chain::Resume::NAME => {
            answer
                .whole::<chain::Resume, _, _>(params, |p| async move { ops::context::resume::resume(&ops, p).await })
                .await
        }
        chain::Compact::NAME => {
            answer
                .whole::<chain::Compact, _, _>(params, |p| async move { ops::context::compact::compact(&ops, p).await })
                .await
        }
        session::Delete::NAME => {
            answer
                .whole::<session::Delete, _, _>(params, |p| async move { ops::session::delete::delete(&ops, p).await })
                .await
        }
        session::Purge::NAME => {
            answer
                .whole::<session::Purge, _, _>(params, |p| async move { ops::session::purge::purge(&ops, p).await })
                .await
        }
        session::Expire::NAME => {
            answer
                .whole::<session::Expire, _, _>(params, |p| async move { ops::session::expire::expire(&ops, p).await })
                .await
        }
        session::Tag::NAME => {
            answer.whole::<session::Tag, _, _>(params, |p| async move { ops::session::tag::tag(&ops, p).await }).await
        }
        session::Untag::NAME => {
            answer
                .whole::<session::Untag, _, _>(params, |p| async move { ops::session::untag::untag(&ops, p).await })
                .await
        }
        tree::Branch::NAME => {
            answer
                .whole::<tree::Branch, _, _>(params, |p| async move { ops::session::branch::branch(&ops, p).await })
                .await
        }
        tree::Merge::NAME => {
            answer
                .whole::<tree::Merge, _, _>(params, |p| async move { ops::session::merge::merge(&ops, p).await })
                .await
        }
        trash::Restore::NAME => {
            answer
                .whole::<trash::Restore, _, _>(params, |p| async move { ops::trash::restore::restore(&ops, p).await })
                .await
        }
        trash::Empty::NAME => {
            answer.whole::<trash::Empty, _, _>(params, |p| async move { ops::trash::empty::empty(&ops, p).await }).await
        }
        memory::Add::NAME => {
            answer.whole::<memory::Add, _, _>(params, |p| async move { ops::memory::add::add(&ops, p).await }).await
        }
        memory::Remove::NAME => {
            answer
                .whole::<memory::Remove, _, _>(params, |p| async move { ops::memory::remove::remove(&ops, p).await })
                .await
        }
        // The actor carries these out by itself once it has them.
        context::Append::NAME => {
            answer.now::<context::Append, _, _>(params, |p| ops::context::append::append(o, p)).await
        }
        context::Rewind::NAME => {
            answer.now::<context::Rewind, _, _>(params, |p| ops::context::rewind::rewind(o, p)).await
        }
        context::Pin::NAME => answer.now::<context::Pin, _, _>(params, |p| ops::context::pin::pin(o, p)).await,
        context::Unpin::NAME => answer.now::<context::Unpin, _, _>(params, |p| ops::context::unpin::unpin(o, p)).await,
        events::List::NAME => answer.now::<events::List, _, _>(params, |p| ops::events::list::list(o, p)).await,
        events::Subscribe::NAME => {
            answer
                .now::<events::Subscribe, _, _>(params, |p| async move {
                    let (result, subscription) = ops::events::subscribe::subscribe(o, p).await?;
                    // One at a time: a new one takes the place of the old.
                    let _ = caller.subscribe.try_send(Box::new(subscription));
                    Ok(result)
                })
                .await
        }
        context::Save::NAME => answer.now::<context::Save, _, _>(params, |p| ops::context::save::save(o, p)).await,
        context::Clear::NAME => answer.now::<context::Clear, _, _>(params, |p| ops::context::clear::clear(o, p)).await,
        context::Restore::NAME => {
            answer
                .whole::<context::Restore, _, _>(
                    params,
                    |p| async move { ops::context::restore::restore(&ops, p).await },
                )
                .await
        }
        // A turn goes on without who asked for it.
        send::Send::NAME => {
            let ear = ear(id.as_deref(), params, caller.line);
            answer.now::<send::Send, _, _>(params, |p| ops::send::send(o, p, ear)).await
        }
        send::Cancel::NAME => answer.now::<send::Cancel, _, _>(params, |p| ops::send::cancel::cancel(o, p)).await,
        // An import belongs to its connection until the commit.
        import::Begin::NAME => {
            answer.now::<import::Begin, _, _>(params, |p| ops::session::import::begin(o, caller.connection, p)).await
        }
        import::Add::NAME => {
            answer.now::<import::Add, _, _>(params, |p| ops::session::import::add(o, caller.connection, p)).await
        }
        import::Commit::NAME => {
            let progress = on_progress(id.as_deref(), caller.notify);
            answer
                .whole::<import::Commit, _, _>(params, move |p| async move {
                    ops::session::import::commit(&ops, caller.connection, p, progress).await
                })
                .await
        }
        archive::ExportBegin::NAME => {
            let progress = on_progress(id.as_deref(), caller.notify);
            answer
                .whole::<archive::ExportBegin, _, _>(params, move |p| async move {
                    ops::agent::export::begin(&ops, caller.connection, p, progress).await
                })
                .await
        }
        archive::ExportRead::NAME => {
            let connection = caller.connection;
            answer.now::<archive::ExportRead, _, _>(params, |p| ops::agent::export::read(o, connection, p)).await
        }
        archive::ImportBegin::NAME => {
            let connection = caller.connection;
            answer.now::<archive::ImportBegin, _, _>(params, |p| ops::agent::import::begin(o, connection, p)).await
        }
        archive::ImportAdd::NAME => {
            let connection = caller.connection;
            answer.now::<archive::ImportAdd, _, _>(params, |p| ops::agent::import::add(o, connection, p)).await
        }
        archive::ImportCommit::NAME => {
            let progress = on_progress(id.as_deref(), caller.notify);
            answer
                .whole::<archive::ImportCommit, _, _>(params, move |p| async move {
                    ops.store.judged(ops::agent::import::commit(&ops, caller.connection, p, progress).await)
                })
                .await
        }
        name if name.starts_with("backup.") => backups::dispatch(name, answer, (&ops, caller), params).await,
        other => answer.fail(&unknown_method(other)),
    }
}

/// What is wrong with a request before its verb is asked: for tests that bend requests, without a daemon.
///
/// # Errors
/// What would be answered.
pub fn examine(body: &[u8]) -> Result<Request<'_>, RpcError> {
    let request = serde_json::from_slice(body).map_err(|e| not_a_request(body, &e))?;
    check(&request).map(|()| request)
}

/// The answer to one request.
#[derive(Clone, Copy)]
struct Answer<'a> {
    /// `None`: a notification, which is not answered.
    id: Option<&'a RawValue>,
    limit: usize,
}

impl Answer<'_> {
    /// Runs a verb as part of the connection.
    async fn now<M: Method, R: Serialize, F: Future<Output = Result<R>>>(
        self,
        params: Option<&RawValue>,
        verb: impl FnOnce(M::Params) -> F,
    ) -> Option<Frame> {
        match read::<M::Params>(params) {
            Ok(params) => self.finish(verb(params).await),
            Err(error) => self.fail(&error),
        }
    }

    /// Runs a verb as a task of its own.
    async fn whole<M: Method, R: Serialize + Send + 'static, F: Future<Output = Result<R>> + Send + 'static>(
        self,
        params: Option<&RawValue>,
        verb: impl FnOnce(M::Params) -> F,
    ) -> Option<Frame> {
        match read::<M::Params>(params) {
            Ok(params) => {
                let ended = tokio::spawn(verb(params)).await;
                self.finish(ended.unwrap_or_else(|e| Err(Failure::internal(e.to_string()))))
            }
            Err(error) => self.fail(&error),
        }
    }

    fn finish<R: Serialize>(self, result: Result<R>) -> Option<Frame> {
        match result {
            Ok(result) => self.id.map(|id| reply::success(id, result, self.limit)),
            Err(failure) => self.fail(&to_rpc(&failure)),
        }
    }

    fn fail(self, error: &RpcError) -> Option<Frame> {
        self.id.map(|id| reply::error(Some(id), error))
    }
}

fn read<P: DeserializeOwned>(params: Option<&RawValue>) -> Result<P, RpcError> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(to_rpc(
            &Failure::invalid("the parameters are not an object").hint("they go by name, never by place"),
        ));
    }
    serde_json::from_str(text).map_err(|e| {
        let reason = e.to_string();
        // The JSON itself is at fault, not what it says.
        let code = if e.is_syntax() || e.is_eof() {
            CODE_PARSE
        } else if reason.starts_with("duplicate field") || reason.starts_with("number out of range") {
            CODE_INVALID_REQUEST
        } else {
            CODE_INVALID_PARAMS
        };
        let failure = Failure::invalid(format!("the parameters cannot be used: {reason}"))
            .hint("docs/PROTOCOL.md lists what each method takes");
        RpcError { code, ..to_rpc(&failure) }
    })
}

fn unknown_method(name: &str) -> RpcError {
    let shown: String = name.chars().take(80).collect();
    let failure = Failure::new(ErrorKind::Unsupported, format!("there is no method {shown:?}"));
    let failure = match nearest(name, METHODS) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint("docs/PROTOCOL.md lists the methods"),
    };
    RpcError { code: CODE_METHOD_NOT_FOUND, ..to_rpc(&failure) }
}
