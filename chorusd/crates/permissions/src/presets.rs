//! The built-in profiles.

use chorus_proto::methods::permissions::BashMode;

use super::profile_spec::ProfileSpec;

/// Names of the presets, most permissive first.
pub(crate) const PRESET_NAMES: [&str; 3] = ["open", "standard", "locked"];

/// The patterns that `standard` allows: files of the workspace, local git operations, tools that only read, and the
/// agent's own docs.
const STANDARD_ALLOW: [&str; 7] = [
    "tool:(create_file|append_file|str_replace|view):.*",
    "tool:git:(init|commit|branch|checkout|diff|log)( .*)?",
    "tool:self_edit:docs:.*",
    "tool:list_models:.*",
    "tool:list_agents:.*",
    "tool:search_sessions:.*",
    "tool:schedule_list:.*",
];

/// Returns the preset called `name`.
#[must_use]
pub(crate) fn preset(name: &str) -> Option<ProfileSpec> {
    let own = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    let spec = match name {
        "open" => ProfileSpec { allow: own(&[".*"]), bash: BashMode::Whole, network: true, ..ProfileSpec::default() },
        "standard" => ProfileSpec {
            allow: own(&STANDARD_ALLOW),
            ask: own(&[
                "tool:bash:.*",
                "tool:git:(push|merge_request)( .*)?",
                "tool:self_edit:(system_prompt|permissions:.*|model:.*)",
                "tool:remember:.*",
                "tool:send_to_agent:.*",
                "tool:schedule_(add|remove):.*",
                "tool:mcp:.*",
            ]),
            ..ProfileSpec::default()
        },
        "locked" => ProfileSpec {
            allow: own(&["tool:view:.*", "tool:list_models:.*", "tool:search_sessions:.*"]),
            ..ProfileSpec::default()
        },
        _ => return None,
    };
    Some(spec)
}
