//! The trait of a tool, and its type-erased form.

use std::sync::Arc;

use chorus_base::error::Error;
use chorus_llm::ToolSpec;
use chorus_proto::methods::approvals::Detail;
use chorus_redact::Redactor;
use futures_util::future::{BoxFuture, FutureExt as _};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ToolContext;

/// The outcome of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolOutcome {
    /// The text is the tool result, and the turn goes on.
    Completed { text: String, is_error: bool },
    /// The turn ends, because the daemon cannot go on.
    Stop(Error),
}

impl ToolOutcome {
    pub fn success(text: impl Into<String>) -> Self {
        Self::Completed { text: text.into(), is_error: false }
    }

    /// Returns the outcome with secrets replaced if `redact` is set.
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

    /// Returns the output, or the message of the error that ends the turn.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Completed { text, .. } => text,
            Self::Stop(error) => &error.message,
        }
    }

    /// An error that the model can react to.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Completed { text: text.into(), is_error: true }
    }
}

/// A tool.
pub(super) trait Tool: Send + Sync + 'static {
    const NAME: &'static str;
    /// What the tool does, in a sentence or two, for the model.
    const DESCRIPTION: &'static str;
    /// True if the tool takes negligible time and must finish before later calls of the same reply start.
    const IN_ORDER: bool = false;
    /// True if the tool works with the files or the repository of the working directory.
    const USES_WORKSPACE: bool = false;
    /// False if the effect depends on more than the action says, so that the action cannot be allowed for good.
    const CAN_APPROVE_ALWAYS: bool = true;
    /// True if a turn that no person requested needs an approval for it, whatever the profile allows.
    const ASKS_IF_UNATTENDED: bool = false;
    /// The parameters. The model sees their doc comments.
    type Params: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// Returns the action string that a profile judges (`permissions::Action`).
    fn action(params: &Self::Params, ctx: &ToolContext) -> Result<String, String>;

    /// Returns the reason why a call with these arguments needs approval even if its action was allowed for good
    /// without them.
    fn not_covered_by_always(_: &Self::Params) -> Option<&'static str> {
        None
    }

    /// Returns the effective target (for example the URL of a remote) if neither the action nor the arguments contain
    /// it. It is shown in the approval prompt and stored in `ctx.approved_target`; [`Tool::run`] must refuse if the
    /// target has changed since.
    fn effective_target(_: &Self::Params, _: &ToolContext) -> impl Future<Output = Option<String>> + Send {
        std::future::ready(None)
    }

    /// Runs the call, which was allowed. Should end soon after `ctx.cancel` is cancelled.
    fn run(params: Self::Params, ctx: Arc<ToolContext>) -> impl Future<Output = ToolOutcome> + Send;
}

/// A call with valid arguments.
pub(super) struct PreparedCall {
    pub action: String,
    /// Whether the action can be allowed for good.
    pub always: AlwaysApproval,
    /// See [`Tool::ASKS_IF_UNATTENDED`].
    pub asks_if_unattended: bool,
    /// The definition of a server's tool, for which a permanent approval holds.
    pub definition: Option<String>,
    /// Details that a person should know besides the arguments.
    pub details: Vec<Detail>,
    pub call: Box<dyn BoundTool>,
}

/// Whether the action of a call can be allowed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AlwaysApproval {
    Allowed,
    /// The action does not fully describe the effect.
    Never,
    /// This call goes beyond its action, for this reason; other calls with the same action do not.
    NotThisCall(&'static str),
}

/// A tool with its arguments.
pub(super) trait BoundTool: Send + Sync {
    /// See [`Tool::effective_target`].
    fn effective_target<'a>(&'a self, ctx: &'a ToolContext) -> BoxFuture<'a, Option<String>>;
    /// See [`Tool::run`].
    fn run(self: Box<Self>, ctx: Arc<ToolContext>) -> BoxFuture<'static, ToolOutcome>;
}

struct ToolWithParams<T: Tool>(T::Params);

impl<T: Tool> BoundTool for ToolWithParams<T> {
    fn effective_target<'a>(&'a self, ctx: &'a ToolContext) -> BoxFuture<'a, Option<String>> {
        T::effective_target(&self.0, ctx).boxed()
    }

    fn run(self: Box<Self>, ctx: Arc<ToolContext>) -> BoxFuture<'static, ToolOutcome> {
        T::run(self.0, ctx).boxed()
    }
}

/// A tool without its static type.
#[derive(Clone, Copy)]
pub(super) struct ToolDescriptor {
    pub name: &'static str,
    pub in_order: bool,
    pub uses_workspace: bool,
    pub spec: fn() -> ToolSpec,
    pub prepare: fn(&RawValue, &ToolContext) -> Result<PreparedCall, String>,
}

impl ToolDescriptor {
    pub(super) const fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            in_order: T::IN_ORDER,
            uses_workspace: T::USES_WORKSPACE,
            spec: tool_spec::<T>,
            prepare: prepare_params::<T>,
        }
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
        // Some servers require the key even if there are no parameters.
        map.entry("properties").or_insert_with(|| serde_json::json!({}));
    }
    slim_schema(&mut schema);
    ToolSpec { name: T::NAME.into(), description: T::DESCRIPTION.into(), parameters: schema }
}

/// Removes parts of a schema that tell a model nothing: every request contains all schemas, and the window of a local
/// model may be small. Optional parameters may be omitted, so `null` need not be mentioned; invalid arguments are
/// refused when the call arrives.
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

fn prepare_params<T: Tool>(params: &RawValue, ctx: &ToolContext) -> Result<PreparedCall, String> {
    let wrong = |e: serde_json::Error| format!("invalid parameters for {}: {e}; fix them and call it again", T::NAME);
    let params: T::Params = serde_json::from_str(params.get()).map_err(wrong)?;
    let action = T::action(&params, ctx)?;
    let always = match T::not_covered_by_always(&params) {
        _ if !T::CAN_APPROVE_ALWAYS => AlwaysApproval::Never,
        Some(why) => AlwaysApproval::NotThisCall(why),
        None => AlwaysApproval::Allowed,
    };
    let call = Box::new(ToolWithParams::<T>(params));
    let asks_if_unattended = T::ASKS_IF_UNATTENDED;
    Ok(PreparedCall { action, always, asks_if_unattended, definition: None, details: Vec::new(), call })
}
