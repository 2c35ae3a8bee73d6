//! Dispatches the methods `backup.*`.

use std::sync::Arc;

use chorus_engine::ops;
use chorus_engine::ops::Ops;
use chorus_proto::methods::{Method as _, backup};
use serde_json::value::RawValue;

use super::super::progress::progress_callback;
use super::super::reply::Frame;
use super::responder::Responder;
use super::{ClientHandle, unknown_method_error};

/// Runs the request for the method `name`.
pub(super) async fn dispatch(
    name: &str,
    answer: Responder<'_>,
    (ops, caller): (&Arc<Ops>, ClientHandle),
    params: Option<&RawValue>,
) -> Option<Frame> {
    let connection = caller.connection;
    match name {
        backup::Create::NAME => {
            let (ops, progress) = (ops.clone(), progress_callback(answer.id, caller.to_client));
            answer
                .run_spawned::<backup::Create, _, _>(params, move |p| async move {
                    ops::backup::create::create(&ops, p, progress).await
                })
                .await
        }
        backup::ArchiveBegin::NAME => {
            answer
                .run_inline::<backup::ArchiveBegin, _, _>(params, |p| ops::backup::archive::begin(ops, connection, p))
                .await
        }
        backup::ArchiveRead::NAME => {
            answer
                .run_inline::<backup::ArchiveRead, _, _>(params, |p| ops::backup::archive::read(ops, connection, p))
                .await
        }
        other => answer.reply_error(&unknown_method_error(other)),
    }
}
