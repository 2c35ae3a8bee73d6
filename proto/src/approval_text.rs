//! The words in which every interface asks about an action: what it does, where, and what it may reach.

use crate::methods::approvals::Approval;

/// What an agent wants to do, to be read after "wants to", and the text that is shown whole below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionText<'a> {
    pub wish: &'static str,
    /// Untrusted. Empty if the wish says it all.
    pub subject: &'a str,
    /// Whether it is a shell command.
    pub is_command: bool,
}

/// Actions by their prefix, with the wish and whether they happen in the workspace.
const WISHES: [(&str, &str, bool); 16] = [
    ("tool:bash:", "run a command", true),
    ("tool:git:push ", "push with git", true),
    ("tool:git:merge_request ", "open a merge request", true),
    ("tool:git:", "run git", true),
    ("tool:create_file:", "write a file", true),
    ("tool:append_file:", "append to a file", true),
    ("tool:str_replace:", "edit a file", true),
    ("tool:view:", "read a file", true),
    ("tool:self_edit:permissions:", "change its own permissions", false),
    ("tool:self_edit:model:", "change its own model", false),
    ("tool:self_edit:docs:", "change its own docs", false),
    ("tool:self_edit:system_prompt", "change its own system prompt", false),
    ("tool:remember:", "remember something", false),
    ("tool:send_to_agent:", "send a message to another agent", false),
    ("tool:search_sessions:", "search saved conversations", false),
    ("tool:", "use a tool", false),
];

/// Describes an action.
#[must_use]
pub fn describe_action(action: &str) -> ActionText<'_> {
    let found = WISHES.iter().find_map(|(prefix, wish, _)| Some((*wish, action.strip_prefix(prefix)?)));
    let (wish, subject) = found.unwrap_or(("act", action));
    ActionText { wish, subject: subject.trim_end_matches(':'), is_command: action.starts_with("tool:bash:") }
}

/// Returns one line that says where an action happens and what a command may reach; `None` if it happens nowhere in
/// particular. `directory` is the name of its directory for the reader.
#[must_use]
pub fn reach_line(approval: &Approval, directory: &str) -> Option<String> {
    let in_workspace =
        WISHES.iter().find(|(prefix, ..)| approval.action.starts_with(prefix)).is_some_and(|wish| wish.2);
    if !in_workspace {
        return None;
    }
    Some(match &approval.reach {
        None => format!("in {directory}"),
        Some(reach) if !reach.sandboxed => {
            format!("in {directory}, without a sandbox: it may do whatever the user of the daemon may")
        }
        Some(reach) => {
            let network = if reach.network { "may use the network" } else { "no network" };
            format!("in {directory}; writes only there; {network}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_shown_and_not_its_action() {
        for (action, wish, subject) in [
            ("tool:bash:ls -l", "run a command", "ls -l"),
            ("tool:git:push origin main", "push with git", "origin main"),
            ("tool:git:commit", "run git", "commit"),
            ("tool:self_edit:system_prompt", "change its own system prompt", ""),
            ("tool:self_edit:permissions:open", "change its own permissions", "open"),
            ("tool:list_models:", "use a tool", "list_models"),
            ("something else", "act", "something else"),
        ] {
            let text = describe_action(action);
            assert_eq!((text.wish, text.subject), (wish, subject), "{action}");
        }
    }
}
