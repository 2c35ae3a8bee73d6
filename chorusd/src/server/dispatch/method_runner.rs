//! Decodes the parameters of a request, runs its operation, and encodes the reply.

use std::sync::OnceLock;

use chorus_base::error::{Elsewhere, Error, Result};
use chorus_engine::ops::agent::AgentClaims;
use chorus_proto::RpcError;
use chorus_proto::error::{CODE_INVALID_PARAMS, CODE_INVALID_REQUEST, CODE_PARSE};
use chorus_proto::methods::Method;
use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::task::JoinHandle;

use super::super::reply::{self, Frame, to_rpc_error};

/// Encodes the reply to one request.
#[derive(Clone, Copy)]
pub(super) struct Responder<'a> {
    /// `None` for a notification, which gets no reply.
    pub(super) id: Option<&'a RawValue>,
    pub(super) limit: usize,
    /// Gets the node that has to be asked instead, if an operation says so.
    pub(super) elsewhere: &'a OnceLock<Box<Elsewhere>>,
    /// Says when nobody waits for the store any more; `None` for requests that wait for other things.
    pub(super) claims: Option<&'a AgentClaims>,
    /// The request changes nothing.
    pub(super) is_read: bool,
}

/// Encodes the result of an operation as the reply to a request, in a frame of limited length.
type EncodeReply = Box<dyn FnOnce(&RawValue, usize) -> Frame + Send>;

impl<'a> Responder<'a> {
    /// Runs an operation as part of the connection's task. What it has begun continues if nobody waits for it any more.
    pub(super) async fn run_inline<M: Method, R: Serialize, F: Future<Output = Result<R>>>(
        self,
        params: Option<&RawValue>,
        verb: impl FnOnce(M::Params) -> F,
    ) -> Option<Frame> {
        let until_given_up = |params| async {
            tokio::select! {
                biased;
                ended = verb(params) => ended,
                failure = self.store_given_up() => Err(failure),
            }
        };
        self.run_until_end::<M, _, _>(params, until_given_up).await
    }

    /// As [`Responder::run_inline`], for an operation that waits for other things than the store.
    pub(super) async fn run_until_end<M: Method, R: Serialize, F: Future<Output = Result<R>>>(
        self,
        params: Option<&RawValue>,
        verb: impl FnOnce(M::Params) -> F,
    ) -> Option<Frame> {
        match parse_params::<M::Params>(params) {
            Ok(params) => self.reply(verb(params).await),
            Err(error) => self.reply_error(&error),
        }
    }

    /// Starts an operation as a task of its own, which continues if the client disconnects.
    pub(super) fn run_spawned<
        M: Method,
        R: Serialize + Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
    >(
        self,
        params: Option<&RawValue>,
        verb: impl FnOnce(M::Params) -> F,
    ) -> BoxFuture<'a, Option<Frame>> {
        match parse_params::<M::Params>(params) {
            Ok(params) => {
                let work = verb(params);
                // All operations give the same type, so that what waits for them is compiled once.
                self.wait_for(chorus_runtime::spawn(async move {
                    let result = work.await?;
                    let encode: EncodeReply = Box::new(move |id, limit| reply::success_frame(id, result, limit));
                    Ok(encode)
                }))
                .boxed()
            }
            Err(error) => ready(self.reply_error(&error)).boxed(),
        }
    }

    async fn store_given_up(self) -> Error {
        match self.claims {
            Some(claims) => claims.store_given_up(self.is_read).await,
            None => std::future::pending().await,
        }
    }

    async fn wait_for(self, task: JoinHandle<Result<EncodeReply>>) -> Option<Frame> {
        let result = tokio::select! {
            biased;
            ended = task => ended.unwrap_or_else(|e| Err(Error::internal(e.to_string()))),
            // The operation continues, and its outcome is known once the store is back.
            failure = self.store_given_up() => Err(failure),
        };
        match result {
            Ok(encode) => self.id.map(|id| encode(id, self.limit)),
            Err(failure) => self.reply_failure(failure),
        }
    }

    fn reply<R: Serialize>(self, result: Result<R>) -> Option<Frame> {
        match result {
            Ok(result) => self.id.map(|id| reply::success_frame(id, result, self.limit)),
            Err(failure) => self.reply_failure(failure),
        }
    }

    fn reply_failure(self, failure: Error) -> Option<Frame> {
        let reply = self.reply_error(&to_rpc_error(&failure));
        if let Some(there) = failure.elsewhere {
            let _ = self.elsewhere.set(there);
        }
        reply
    }

    pub(super) fn reply_error(self, error: &RpcError) -> Option<Frame> {
        self.id.map(|id| reply::error_frame(Some(id), error))
    }
}

fn parse_params<P: DeserializeOwned>(params: Option<&RawValue>) -> Result<P, RpcError> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(to_rpc_error(
            &Error::invalid("the parameters are not an object").hint("pass parameters by name, not by position"),
        ));
    }
    serde_json::from_str(text).map_err(|e| {
        let reason = e.to_string();
        // The JSON itself is malformed, independent of what the method takes.
        let code = if e.is_syntax() || e.is_eof() {
            CODE_PARSE
        } else if reason.starts_with("duplicate field") || reason.starts_with("number out of range") {
            CODE_INVALID_REQUEST
        } else {
            CODE_INVALID_PARAMS
        };
        let failure =
            Error::invalid(format!("invalid parameters: {reason}")).hint("see the parameters in docs/PROTOCOL.md");
        RpcError { code, ..to_rpc_error(&failure) }
    })
}
