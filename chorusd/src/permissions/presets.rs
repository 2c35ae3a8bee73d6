//! The profiles that are always there.

use chorus_proto::methods::permissions::BashMode;

use super::spec::Spec;

/// Their names, the freest first.
pub const NAMES: [&str; 3] = ["open", "standard", "locked"];

/// What `standard` allows: files of the workspace, git that stays on this machine, what only reads, and its own notes.
const STANDARD: [&str; 6] = [
    "tool:(create_file|append_file|str_replace|view):.*",
    "tool:git:(init|commit|branch|checkout|diff|log)( .*)?",
    "tool:self_edit:docs:.*",
    "tool:list_models:.*",
    "tool:list_agents:.*",
    "tool:search_sessions:.*",
];

/// The preset called `name`.
#[must_use]
pub fn preset(name: &str) -> Option<Spec> {
    let own = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    let spec = match name {
        "open" => Spec { allow: own(&[".*"]), bash: BashMode::Whole, network: true, ..Spec::default() },
        "standard" => Spec {
            allow: own(&STANDARD),
            ask: own(&[
                "tool:bash:.*",
                "tool:git:(push|merge_request)( .*)?",
                "tool:self_edit:(system_prompt|permissions:.*|model:.*)",
                "tool:remember:.*",
                "tool:send_to_agent:.*",
            ]),
            ..Spec::default()
        },
        "locked" => {
            Spec { allow: own(&["tool:view:.*", "tool:list_models:.*", "tool:search_sessions:.*"]), ..Spec::default() }
        }
        _ => return None,
    };
    Some(spec)
}
