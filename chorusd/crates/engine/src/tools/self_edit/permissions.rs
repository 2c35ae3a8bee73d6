//! The tool `self_edit_permissions`: changes the agent's permissions, as far as the requester of the turn may grant
//! them.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{apply_edit, ensure_no_secret};
use crate::tools::ToolContext;
use crate::tools::host::SelfEdit;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct SelfEditPermissions;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// A name, such as `standard`, or an object with `deny`, `ask`, `allow`, `always`, `default`, `bash`, `network` and `examples`.
    profile: ProfileParam,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum ProfileParam {
    Named(String),
    Own(Map<String, Value>),
}

impl ProfileParam {
    fn text(&self) -> String {
        match self {
            Self::Named(name) => name.clone(),
            Self::Own(map) => serde_json::to_string(map).unwrap_or_default(),
        }
    }

    fn action(&self) -> Action<'_> {
        let profile = match self {
            Self::Named(name) => name,
            Self::Own(_) => "custom",
        };
        Action::SelfEditPermissions { profile }
    }
}

impl Tool for SelfEditPermissions {
    const NAME: &'static str = "self_edit_permissions";
    const DESCRIPTION: &'static str =
        "Changes your permissions from your next step on, within what the person who requested this turn may grant.";
    const CAN_APPROVE_ALWAYS: bool = false;
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        if let ProfileParam::Named(name) = &params.profile
            && (name.is_empty() || name.len() > 64 || !name.chars().all(named) || name == "custom")
        {
            return Err("`profile` must be a profile name (such as `standard` or `locked`) or an object".into());
        }
        ensure_no_secret(&params.profile.text(), "profile", ctx)?;
        Ok(params.profile.action().to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let action = params.profile.action().to_string();
        let (wanted, done) = match params.profile {
            ProfileParam::Named(name) => {
                let done = format!("changed the permissions to the profile `{name}` from your next step on");
                (Value::String(name), done)
            }
            ProfileParam::Own(map) => {
                (Value::Object(map), "the new permissions apply from your next step on".to_owned())
            }
        };
        apply_edit(ctx, action, SelfEdit::Permissions(wanted), done).await
    }
}
