//! What a tool is.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Scene;
use crate::failure::Failure;
use crate::llm::ToolSpec;
use crate::redact::Redactor;

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The model is told, and the turn goes on.
    Told { text: String, is_error: bool },
    /// The turn ends: the daemon cannot go on.
    Stop(Failure),
}

impl Outcome {
    pub fn done(text: impl Into<String>) -> Self {
        Self::Told { text: text.into(), is_error: false }
    }

    /// The same without secrets.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor, redact: bool) -> Self {
        match self {
            Self::Told { text, is_error } if redact => Self::Told { text: redactor.cut_text(text), is_error },
            Self::Stop(failure) if redact => {
                let message = redactor.text(&failure.message).into_owned();
                Self::Stop(Failure { message, ..failure })
            }
            other => other,
        }
    }

    /// A failure that the model can do something about.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Told { text: text.into(), is_error: true }
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
    const ALWAYS: bool = true;
    /// What it is given. Its doc comments are the model's, too.
    type Params: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// What it is about to do, as the one string that a profile judges (`permissions::Action`). Arguments for which
    /// there is none are told to the model.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    fn action(params: &Self::Params, scene: &Scene) -> Result<String, String>;

    /// Why these arguments are asked about even where the action was approved for ever; it was approved without them.
    fn beyond_always(_: &Self::Params) -> Option<&'static str> {
        None
    }

    /// Where it leads, where neither the action nor the arguments say so: shown to whoever is asked. What is told here is what
    /// [`Tool::run`] finds in `scene.agreed`, and has to hold still.
    fn leads_to(_: &Self::Params, _: &Scene) -> impl Future<Output = Option<String>> + Send {
        std::future::ready(None)
    }

    /// Does it; it was allowed. Should end soon after `scene.cancel` is cancelled.
    fn run(params: Self::Params, scene: Arc<Scene>) -> impl Future<Output = Outcome> + Send;
}

/// A call whose arguments are good.
pub struct Prepared {
    pub action: String,
    /// Whether it can be approved for ever, and why not.
    pub always: Always,
    pub ready: Box<dyn Ready>,
}

/// Whether what is approved for ever covers a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Always {
    Can,
    /// The action does not say enough.
    Never,
    /// This call goes beyond its action: why. Others of the same action do not.
    Beyond(&'static str),
}

/// A tool with its arguments.
pub trait Ready: Send + Sync {
    /// As [`Tool::leads_to`].
    fn leads_to<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Option<String>>;
    /// As [`Tool::run`].
    fn run(self: Box<Self>, scene: Arc<Scene>) -> BoxFuture<'static, Outcome>;
}

struct With<T: Tool>(T::Params);

impl<T: Tool> Ready for With<T> {
    fn leads_to<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Option<String>> {
        T::leads_to(&self.0, scene).boxed()
    }

    fn run(self: Box<Self>, scene: Arc<Scene>) -> BoxFuture<'static, Outcome> {
        T::run(self.0, scene).boxed()
    }
}

/// A tool without its type.
#[derive(Clone, Copy)]
pub struct Descriptor {
    pub name: &'static str,
    pub in_order: bool,
    pub spec: fn() -> ToolSpec,
    pub prepare: fn(&RawValue, &Scene) -> Result<Prepared, String>,
}

impl Descriptor {
    pub const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, in_order: T::IN_ORDER, spec: spec::<T>, prepare: prepare::<T> }
    }
}

fn spec<T: Tool>() -> ToolSpec {
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
    slim(&mut schema);
    ToolSpec { name: T::NAME.into(), description: T::DESCRIPTION.into(), parameters: schema }
}

/// Takes out of a schema what tells a model nothing: each request has all of them, and the window of a local model may be small. What is not
/// required may be left out, so nothing has to say that it may be null; what does not fit is refused when it comes.
fn slim(schema: &mut Value) {
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
    properties.into_iter().flat_map(Map::values_mut).for_each(slim);
    map.get_mut("items").into_iter().for_each(slim);
    map.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten().for_each(slim);
}

fn prepare<T: Tool>(params: &RawValue, scene: &Scene) -> Result<Prepared, String> {
    let wrong =
        |e: serde_json::Error| format!("the parameters of {} do not fit: {e}; call it again with others", T::NAME);
    let params: T::Params = serde_json::from_str(params.get()).map_err(wrong)?;
    let action = T::action(&params, scene)?;
    let always = match T::beyond_always(&params) {
        _ if !T::ALWAYS => Always::Never,
        Some(why) => Always::Beyond(why),
        None => Always::Can,
    };
    Ok(Prepared { action, always, ready: Box::new(With::<T>(params)) })
}
