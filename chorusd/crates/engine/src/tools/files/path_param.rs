//! A path parameter of a tool.

use std::borrow::Cow;
use std::sync::OnceLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::WorkspacePath;
use crate::tools::ToolContext;

/// A path as given by the model. It is normalised once, so the path that was judged is the one that is opened.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "String")]
pub(super) struct PathParam {
    given: String,
    place: OnceLock<Result<WorkspacePath, String>>,
}

impl From<String> for PathParam {
    fn from(given: String) -> Self {
        Self { given, place: OnceLock::new() }
    }
}

impl PathParam {
    /// Returns the path in the workspace.
    pub(super) fn resolve(&self, ctx: &ToolContext) -> Result<&WorkspacePath, String> {
        self.place.get_or_init(|| WorkspacePath::parse(&self.given, &ctx.workspace())).as_ref().map_err(Clone::clone)
    }
}

impl JsonSchema for PathParam {
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
