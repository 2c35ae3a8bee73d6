//! Talks to daemons of earlier releases, whose agents have one conversation each: they refuse the field `conversation`.

use chorus_proto::{CallError, ErrorKind};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::conversation_select::{MAIN, SELECTED};
use crate::error::Error;
use crate::print_pages::RawObject;

/// Returns true if the daemon refused a request, before it did anything, because it does not know conversations.
#[must_use]
pub(crate) fn refuses_conversations(error: &CallError) -> bool {
    let refused = "unknown field `conversation`";
    matches!(error, CallError::Rpc(error) if error.kind() == ErrorKind::InvalidParams && error.message.contains(refused))
}

/// Returns the parameters without `conversation`: the only one that such a daemon has is meant.
///
/// # Errors
/// Another conversation is named.
pub(crate) fn without_conversation(params: &(impl Serialize + ?Sized)) -> Result<Box<RawValue>, Error> {
    let raw = to_raw_value(params).map_err(CallError::from)?;
    let mut fields: RawObject = serde_json::from_str(raw.get()).map_err(CallError::from)?;
    match fields.get::<Option<String>>("conversation")?.as_deref() {
        None | Some(MAIN | SELECTED) => {}
        Some(name) => {
            return Err(Error::failed(format!(
                "the daemon has no conversation {name:?}: its version has one per agent"
            ))
            .with_hint("restart it: chorusctl daemon restart"));
        }
    }
    fields.remove("conversation");
    Ok(to_raw_value(&fields).map_err(CallError::from)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_one_conversation_can_be_left_out() {
        let without = |conversation: &str| {
            let params = serde_json::from_str::<Box<RawValue>>(&format!(
                r#"{{"agent":"a",{conversation}"messages":[{{"n":1.10}}]}}"#
            ));
            without_conversation(&params.expect("JSON"))
                .map(|raw| raw.get().to_owned())
                .map_err(|error| format!("{error:?}"))
        };
        let plain = Ok(r#"{"agent":"a","messages":[{"n":1.10}]}"#.to_owned());
        assert_eq!(without(r#""conversation":"@","#), plain);
        assert_eq!(without(r#""conversation":"main","#), plain);
        assert_eq!(without(""), plain);
        assert!(without(r#""conversation":"review","#).is_err_and(|error| error.contains("daemon restart")));
        let refused = json!({"code": -32602, "message": "unknown field `conversation`, expected `agent`",
            "data": {"kind": "invalid_params"}});
        assert!(refuses_conversations(&CallError::Rpc(serde_json::from_value(refused).expect("an error"))));
    }
}
