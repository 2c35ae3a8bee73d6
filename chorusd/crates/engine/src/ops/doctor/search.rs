//! Checks the search.

use chorus_proto::ErrorKind;
use chorus_proto::methods::doctor::{Check, Verdict};

use super::check_with;
use crate::ops::Ops;

/// Checks whether the index and the model can be used. A search that works needs no line.
pub(super) fn checks(ops: &Ops) -> Vec<Check> {
    let index = ops.search.index().err().filter(|failure| failure.kind == ErrorKind::StorageFailed).map(|failure| {
        let hint = failure.hint.unwrap_or_default();
        check_with("search index", Verdict::Fail, failure.message, hint)
    });
    let unreadable = ops.semantic.choice_problem().map(|problem| {
        let hint = "choose the model again: chorusctl search model --from DIR, or --use MODEL";
        check_with("search model", Verdict::Warn, problem, hint)
    });
    let problem = ops.semantic.describe().and_then(|model| Some((model.problem?, model.name)));
    let model = problem.map(|(problem, name)| {
        check_with(
            "search model",
            Verdict::Warn,
            format!("{name}: {problem}"),
            "messages are found by their words only; see chorusctl search model",
        )
    });
    index.into_iter().chain(unreadable).chain(model).collect()
}
