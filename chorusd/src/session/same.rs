//! Messages that say the same.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::message::Stored;

/// What a message says, without what an import gives it anew: ids and times.
#[derive(Deserialize, PartialEq)]
struct Says {
    content: String,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    tool_calls: Vec<Call>,
    #[serde(default)]
    attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    params: Box<RawValue>,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.params.get() == other.params.get()
    }
}

#[derive(Deserialize, PartialEq)]
struct Attachment {
    name: String,
    #[serde(default)]
    size: Option<u64>,
}

/// Whether two messages say the same: role, text, calls, attachments. Their ids may differ.
#[must_use]
pub fn say_the_same(a: &Stored, b: &Stored) -> bool {
    let says = |message: &Stored| serde_json::from_slice::<Says>(message.json()).ok();
    let same = || says(a).is_some_and(|said| Some(said) == says(b));
    a.json() == b.json() || (a.role() == b.role() && a.chars() == b.chars() && same())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn stored(json: &str) -> Stored {
        Stored::parse(Bytes::copy_from_slice(json.as_bytes())).unwrap()
    }

    const ONE: &str = r#"{"id":"1","role":"user","content":"a","timestamp":"2026-02-12T09:00:00Z"}"#;

    #[test]
    fn what_an_import_gives_anew_makes_no_difference() {
        let other = ONE.replace("\"1\"", "\"2\"").replace("09:00", "10:30");
        assert!(say_the_same(&stored(ONE), &stored(&other)));
        assert!(!say_the_same(&stored(ONE), &stored(&ONE.replace("user", "assistant"))));
        assert!(!say_the_same(&stored(ONE), &stored(&ONE.replace("\"a\"", "\"b\""))));
        let call = |id: &str, params: &str| {
            let calls = format!("\"tool_calls\":[{{\"id\":\"{id}\",\"name\":\"view\",\"params\":{params}}}]}}");
            stored(&ONE.replace("user", "assistant").replace('}', &format!(",{calls}")))
        };
        assert!(say_the_same(&call("c", "{}"), &call("d", "{}")));
        assert!(!say_the_same(&call("c", "[1]"), &call("c", "[2]")));
    }
}
