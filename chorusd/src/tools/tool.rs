//! What a tool is.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ToolContext;
use crate::error::Error;
use crate::llm::ToolSpec;
use crate::redact::Redactor;

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolOutcome {
    /// The model is told, and the turn goes on.
    Completed { text: String, is_error: bool },
    /// The turn ends: the daemon cannot go on.
    Stop(Error),
}

impl ToolOutcome {
    pub fn success(text: impl Into<String>) -> Self {
        Self::Completed { text: text.into(), is_error: false }
    }

    /// The same without secrets.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor, redact: bool) -> Self {
        match self {
            Self::Completed { text, is_error } if redact => {
                Self::Completed { text: redactor.redact_truncated(text), is_error }
            }
            Self::Stop(failure) if redact => {
                let message = redactor.redact_text(&failure.message).into_owned();
                Self::Stop(Error { message, ..failure })
            }
            other => other,
        }
    }

    /// A failure that the model can do something about.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Completed { text: text.into(), is_error: true }
    }
}

/// One tool.
pub trait Tool: Send + Sync + 'static {
    const NAME: &'static str;
    /// For the model: what it does, in a sentence or two.
    const DESCRIPTION: &'static str;
    /// It takes no time worth mentioning, and is done before the calls behind it in the same answer begin.
    const IN_ORDER: bool = false;
    /// Whether an action of it can be approved for ever: not where what it does depends on more than the action says.
    const CAN_APPROVE_ALWAYS: bool = true;
    /// What it is given. Its doc comments are the model's, too.
    type Params: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// What it is about to do, as the one string that a profile judges (`permissions::Action`). Arguments for which
    /// there is none are told to the model.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    fn action(params: &Self::Params, scene: &ToolContext) -> Result<String, String>;

    /// Why these arguments are asked about even where the action was approved for ever; it was approved without them.
    fn not_covered_by_always(_: &Self::Params) -> Option<&'static str> {
        None
    }

    /// Where it leads, where neither the action nor the arguments say so: shown to whoever is asked. What is told here is what
    /// [`Tool::run`] finds in `scene.agreed`, and has to hold still.
    fn effective_target(_: &Self::Params, _: &ToolContext) -> impl Future<Output = Option<String>> + Send {
        std::future::ready(None)
    }

    /// Does it; it was allowed. Should end soon after `scene.cancel` is cancelled.
    fn run(params: Self::Params, scene: Arc<ToolContext>) -> impl Future<Output = ToolOutcome> + Send;
}

/// A call whose arguments are good.
pub struct PreparedCall {
    pub action: String,
    /// Whether it can be approved for ever, and why not.
    pub always: AlwaysApproval,
    pub call: Box<dyn BoundTool>,
}

/// Whether what is approved for ever covers a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlwaysApproval {
    Allowed,
    /// The action does not say enough.
    Never,
    /// This call goes beyond its action: why. Others of the same action do not.
    NotThisCall(&'static str),
}

/// A tool with its arguments.
pub trait BoundTool: Send + Sync {
    /// As [`Tool::leads_to`].
    fn effective_target<'a>(&'a self, scene: &'a ToolContext) -> BoxFuture<'a, Option<String>>;
    /// As [`Tool::run`].
    fn run(self: Box<Self>, scene: Arc<ToolContext>) -> BoxFuture<'static, ToolOutcome>;
}

struct ToolWithParams<T: Tool>(T::Params);

impl<T: Tool> BoundTool for ToolWithParams<T> {
    fn effective_target<'a>(&'a self, scene: &'a ToolContext) -> BoxFuture<'a, Option<String>> {
        T::effective_target(&self.0, scene).boxed()
    }

    fn run(self: Box<Self>, scene: Arc<ToolContext>) -> BoxFuture<'static, ToolOutcome> {
        T::run(self.0, scene).boxed()
    }
}

/// A tool without its type.
#[derive(Clone, Copy)]
pub struct ToolDescriptor {
    pub name: &'static str,
    pub in_order: bool,
    pub spec: fn() -> ToolSpec,
    pub prepare: fn(&RawValue, &ToolContext) -> Result<PreparedCall, String>,
}

impl ToolDescriptor {
    pub const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, in_order: T::IN_ORDER, spec: tool_spec::<T>, prepare: prepare_params::<T> }
    }
}

fn tool_spec<T: Tool>() -> ToolSpec {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T::Params>().to_value();
    if let Some(map) = schema.as_object_mut() {
        map.remove("title");
        map.remove("description");
        // Servers want it, also where there are none.
        map.entry("properties").or_insert_with(|| serde_json::json!({}));
    }
    slim_schema(&mut schema);
    ToolSpec { name: T::NAME.into(), description: T::DESCRIPTION.into(), parameters: schema }
}

/// Takes out of a schema what tells a model nothing: each request has all of them, and the window of a local model may be small. What is not
/// required may be left out, so nothing has to say that it may be null; what does not fit is refused when it comes.
fn slim_schema(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    for key in ["default", "format", "additionalProperties", "$schema"] {
        map.remove(key);
    }
    if map.get("minimum").is_some_and(|least| *least == 0) {
        map.remove("minimum");
    }
    if let Some(Value::Array(kinds)) = map.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &mut kinds[..] {
            let kind = kind.take();
            map.insert("type".into(), kind);
        }
    }
    let properties = map.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(slim_schema);
    map.get_mut("items").into_iter().for_each(slim_schema);
    map.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten().for_each(slim_schema);
}

fn prepare_params<T: Tool>(params: &RawValue, scene: &ToolContext) -> Result<PreparedCall, String> {
    let wrong =
        |e: serde_json::Error| format!("the parameters of {} do not fit: {e}; call it again with others", T::NAME);
    let params: T::Params = serde_json::from_str(params.get()).map_err(wrong)?;
    let action = T::action(&params, scene)?;
    let always = match T::not_covered_by_always(&params) {
        _ if !T::CAN_APPROVE_ALWAYS => AlwaysApproval::Never,
        Some(why) => AlwaysApproval::NotThisCall(why),
        None => AlwaysApproval::Allowed,
    };
    Ok(PreparedCall { action, always, call: Box::new(ToolWithParams::<T>(params)) })
}
