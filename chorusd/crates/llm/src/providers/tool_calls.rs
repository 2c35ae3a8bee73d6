//! Assembles the tool calls of a reply from the pieces in which they arrive.

use std::borrow::Cow;
use std::collections::HashSet;

use chorus_base::json_minify::minify_json;
use chorus_proto::ToolCall;
use serde_json::value::RawValue;

/// A tool call that is not complete yet.
#[derive(Debug, Default)]
pub(super) struct PartialToolCall {
    pub id: String,
    pub name: String,
    /// The parameters as text.
    pub params: String,
}

/// Ids of tool calls in one reply.
#[derive(Debug, Default)]
pub(super) struct UniqueIds(HashSet<String>);

impl UniqueIds {
    /// Returns `id`, or a different one if it is empty or already used, because a result must match exactly one call.
    pub(super) fn make_unique(&mut self, id: &str) -> String {
        let base = if id.is_empty() { format!("call_{}", uuid::Uuid::new_v4().simple()) } else { id.to_owned() };
        let mut name = base.clone();
        let mut number = 1;
        while !self.0.insert(name.clone()) {
            number += 1;
            name = format!("{base}-{number}");
        }
        name
    }
}

/// Converts the calls for a message. If the reply was truncated (`cut`), a call whose parameters are not an object was
/// truncated too and is left out. Otherwise the model made a mistake and must be told: the text is kept as a JSON
/// string.
#[must_use]
pub(super) fn finish_calls(begun: impl IntoIterator<Item = PartialToolCall>, cut: bool) -> Vec<ToolCall> {
    begun
        .into_iter()
        .filter_map(|call| {
            let params = match parse_object(&call.params) {
                Some(params) => params,
                None if cut => return None,
                None => serde_json::value::to_raw_value(&call.params).ok()?,
            };
            let name = if call.name.is_empty() { "unknown".to_owned() } else { call.name };
            Some(ToolCall { id: call.id, name, params })
        })
        .collect()
}

/// Parses `text` as a JSON object and minifies it, keeping all digits; an empty text is an empty object.
fn parse_object(text: &str) -> Option<Box<RawValue>> {
    let text = match text.trim() {
        "" => "{}",
        text => text,
    };
    if !text.starts_with('{') {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    RawValue::from_string(minify_json(raw.get())).ok()
}

/// Returns parameters as the object that every server requires. Wraps anything else, such as a model's mistake or the
/// text of an imported call: a server that cannot parse one call refuses the whole conversation, now and later.
#[must_use]
pub(super) fn ensure_object(params: &RawValue) -> Cow<'_, RawValue> {
    if params.get().trim_start().starts_with('{') {
        return Cow::Borrowed(params);
    }
    let text = serde_json::from_str(params.get()).unwrap_or_else(|_| params.get().to_owned());
    match serde_json::value::to_raw_value(&serde_json::json!({"invalid": text})) {
        Ok(wrapped) => Cow::Owned(wrapped),
        Err(_) => Cow::Borrowed(params),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(params: &str) -> PartialToolCall {
        PartialToolCall { id: "1".into(), name: "view".into(), params: params.into() }
    }

    #[test]
    fn parameters_are_kept_digit_for_digit() {
        let one = |params: &str| finish_calls([call(params)], false).remove(0).params.get().to_owned();
        assert_eq!(one("{ \"n\": 1.50e400,\n\"m\":-0 }"), r#"{"n":1.50e400,"m":-0}"#);
        assert_eq!(one("  "), "{}");
        assert_eq!(one("{\"a\": tru"), r#""{\"a\": tru""#);
        assert_eq!(one("[1]"), "\"[1]\"");
    }

    #[test]
    fn parameters_go_out_as_an_object() {
        for (kept, sent) in [
            (r#"{"n":1.50e400}"#, r#"{"n":1.50e400}"#),
            (r#""{\"a\": tru""#, r#"{"invalid":"{\"a\": tru"}"#),
            (r#""*** Begin Patch\n""#, r#"{"invalid":"*** Begin Patch\n"}"#),
            ("[1, 2]", r#"{"invalid":"[1, 2]"}"#),
            ("null", r#"{"invalid":"null"}"#),
            ("-0", r#"{"invalid":"-0"}"#),
        ] {
            let params = RawValue::from_string(kept.to_owned()).unwrap();
            assert_eq!(ensure_object(&params).get(), sent);
        }
    }

    #[test]
    fn a_call_that_was_cut_is_left_out() {
        assert_eq!(finish_calls([call("{}"), call("{\"a\": \"b")], true).len(), 1);
    }

    #[test]
    fn every_call_has_an_id_of_its_own() {
        let mut ids = UniqueIds::default();
        assert_eq!(["a", "a", "b", "a"].map(|id| ids.make_unique(id)), ["a", "a-2", "b", "a-3"]);
        assert_ne!(ids.make_unique(""), ids.make_unique(""));
    }
}
