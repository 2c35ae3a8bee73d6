//! The tools that a client may call, one file each.

mod append;
mod list;
mod pin;
mod recall;
mod remember;
mod restore;
mod resume;
mod save;
mod search;
mod show;

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use futures_util::future::{BoxFuture, FutureExt as _};
use rmcp::model::{self, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::call::CallContext;

/// All tools, those that only read first.
pub(crate) const TOOLS: [ToolDescriptor; 10] = [
    ToolDescriptor::of::<search::SearchTool>(),
    ToolDescriptor::of::<show::ShowTool>(),
    ToolDescriptor::of::<list::ListTool>(),
    ToolDescriptor::of::<recall::RecallTool>(),
    ToolDescriptor::of::<remember::RememberTool>(),
    ToolDescriptor::of::<append::AppendTool>(),
    ToolDescriptor::of::<pin::PinTool>(),
    ToolDescriptor::of::<save::SaveTool>(),
    ToolDescriptor::of::<restore::RestoreTool>(),
    ToolDescriptor::of::<resume::ResumeTool>(),
];

/// The effect of a tool on the archive, for the annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    /// Adds something.
    Adds,
    /// Adds something once, however often it is called.
    AddsOnce,
    /// Replaces the live conversation, which is saved first.
    Replaces,
}

/// A tool.
trait Tool: 'static {
    const NAME: &'static str;
    /// The name for people.
    const TITLE: &'static str;
    /// A sentence or two for the model.
    const DESCRIPTION: &'static str;
    const EFFECT: Effect;
    /// The arguments. The model sees their doc comments.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// Runs a call and returns its text.
    fn run(args: Self::Args, context: &CallContext) -> impl Future<Output = Result<String>> + Send;
}

/// A tool without its static type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolDescriptor {
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    pub(crate) spec: fn() -> model::Tool,
    pub(crate) run: for<'a> fn(JsonObject, &'a CallContext) -> BoxFuture<'a, Result<String>>,
}

impl ToolDescriptor {
    const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, effect: T::EFFECT, spec: spec::<T>, run: run::<T> }
    }

    /// Returns true if it changes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        self.effect == Effect::Reads
    }
}

fn run<T: Tool>(args: JsonObject, context: &CallContext) -> BoxFuture<'_, Result<String>> {
    async move {
        let args = serde_json::from_value(Value::Object(args)).map_err(|e| {
            Error::invalid(format!("invalid arguments for `{}`: {e}", T::NAME)).hint("fix them and call it again")
        })?;
        T::run(args, context).await
    }
    .boxed()
}

fn spec<T: Tool>() -> model::Tool {
    let effect = T::EFFECT;
    let annotations = ToolAnnotations::with_title(T::TITLE)
        .read_only(effect == Effect::Reads)
        .destructive(effect == Effect::Replaces)
        .idempotent(matches!(effect, Effect::Reads | Effect::AddsOnce))
        .open_world(false);
    model::Tool::new(T::NAME, T::DESCRIPTION, Arc::new(schema::<T::Args>()))
        .with_title(T::TITLE)
        .with_annotations(annotations)
}

/// Returns the JSON Schema of arguments.
fn schema<A: JsonSchema>() -> JsonObject {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    slim(&mut schema);
    let Value::Object(mut schema) = schema else { return JsonObject::new() };
    schema.remove("title");
    schema.remove("description");
    schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    schema
}

/// Removes what tells a model nothing. Optional arguments may be left out, so `null` need not be mentioned, and some
/// clients refuse it.
fn slim(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    map.remove("default");
    map.remove("format");
    if let Some(Value::Array(kinds)) = map.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &mut kinds[..] {
            let kind = kind.take();
            map.insert("type".into(), kind);
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(kinds)) = map.get_mut("anyOf") {
        kinds.retain(|kind| kind["type"] != "null");
        if let [Value::Object(kind)] = &mut kinds[..] {
            let kind = std::mem::take(kind);
            map.remove("anyOf");
            map.extend(kind);
        }
    }
    let properties = map.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(slim);
    map.get_mut("items").into_iter().for_each(slim);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_small_and_describe_every_argument() {
        for tool in TOOLS {
            let spec = (tool.spec)();
            let schema = Value::Object(spec.input_schema.as_ref().clone());
            let text = schema.to_string();
            assert!(text.len() < 2_000 && !text.contains("null") && !text.contains("anyOf"), "{}: {text}", tool.name);
            assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)), "{text}");
            for (name, argument) in schema["properties"].as_object().expect("arguments") {
                let is_described = argument["description"].as_str().is_some_and(|text| text.len() > 10);
                assert!(is_described && argument["type"].is_string(), "{} {name}: {text}", tool.name);
            }
        }
    }

    #[test]
    fn tools_that_only_read_come_first() {
        let reading: Vec<bool> = TOOLS.iter().map(ToolDescriptor::only_reads).collect();
        assert!(reading.is_sorted_by_key(|reads| !reads), "{reading:?}");
    }
}
