//! Compares messages by content, as an import that is repeated needs it.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::stored_message::StoredMessage;

/// The fields that are compared. Ids and times are left out, because every import assigns new ones.
#[derive(Deserialize, PartialEq)]
struct ComparableMessage {
    content: String,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    tool_calls: Vec<ComparableCall>,
    #[serde(default)]
    attachments: Vec<ComparableAttachment>,
}

#[derive(Deserialize)]
struct ComparableCall {
    name: String,
    params: Box<RawValue>,
}

impl PartialEq for ComparableCall {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.params.get() == other.params.get()
    }
}

#[derive(Deserialize, PartialEq)]
struct ComparableAttachment {
    name: String,
    #[serde(default)]
    size: Option<u64>,
}

/// Returns whether two messages have the same role, text, tool calls and attachments. Ids and times may differ.
#[must_use]
pub fn has_same_content(a: &StoredMessage, b: &StoredMessage) -> bool {
    let says = |message: &StoredMessage| serde_json::from_slice::<ComparableMessage>(message.json()).ok();
    let same = || says(a).is_some_and(|said| Some(said) == says(b));
    a.json() == b.json() || (a.role() == b.role() && a.chars() == b.chars() && same())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn stored(json: &str) -> StoredMessage {
        StoredMessage::parse(Bytes::copy_from_slice(json.as_bytes())).unwrap()
    }

    const ONE: &str = r#"{"id":"1","role":"user","content":"a","timestamp":"2026-02-12T09:00:00Z"}"#;

    #[test]
    fn what_an_import_gives_anew_makes_no_difference() {
        let other = ONE.replace("\"1\"", "\"2\"").replace("09:00", "10:30");
        assert!(has_same_content(&stored(ONE), &stored(&other)));
        assert!(!has_same_content(&stored(ONE), &stored(&ONE.replace("user", "assistant"))));
        assert!(!has_same_content(&stored(ONE), &stored(&ONE.replace("\"a\"", "\"b\""))));
        let call = |id: &str, params: &str| {
            let calls = format!("\"tool_calls\":[{{\"id\":\"{id}\",\"name\":\"view\",\"params\":{params}}}]}}");
            stored(&ONE.replace("user", "assistant").replace('}', &format!(",{calls}")))
        };
        assert!(has_same_content(&call("c", "{}"), &call("d", "{}")));
        assert!(!has_same_content(&call("c", "[1]"), &call("c", "[2]")));
    }
}
