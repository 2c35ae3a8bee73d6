//! `backup.*`.

use std::sync::Arc;

use chorus_proto::methods::{Method as _, backup};
use serde_json::value::RawValue;

use super::super::meanwhile::on_progress;
use super::super::reply::Frame;
use super::{Answer, Caller, unknown_method};
use crate::ops::{self, Ops};

/// Carries out the request `name`.
pub async fn dispatch(
    name: &str,
    answer: Answer<'_>,
    (ops, caller): (&Arc<Ops>, Caller),
    params: Option<&RawValue>,
) -> Option<Frame> {
    let connection = caller.connection;
    match name {
        backup::Create::NAME => {
            let (ops, progress) = (ops.clone(), on_progress(answer.id, caller.notify));
            answer
                .whole::<backup::Create, _, _>(params, move |p| async move {
                    ops::backup::create::create(&ops, p, progress).await
                })
                .await
        }
        backup::ArchiveBegin::NAME => {
            answer.now::<backup::ArchiveBegin, _, _>(params, |p| ops::backup::archive::begin(ops, connection, p)).await
        }
        backup::ArchiveRead::NAME => {
            answer.now::<backup::ArchiveRead, _, _>(params, |p| ops::backup::archive::read(ops, connection, p)).await
        }
        other => answer.fail(&unknown_method(other)),
    }
}
