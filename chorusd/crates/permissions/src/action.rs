//! Tool calls as action strings, which the patterns of a profile are matched against.

use std::fmt;

/// Prefix of the action of a `bash` command.
pub(crate) const BASH_PREFIX: &str = "tool:bash:";

/// Every tool with the prefix that all of its actions share.
pub(crate) const TOOL_ACTION_PREFIXES: [(&str, &str); 25] = [
    ("create_file", "tool:create_file:"),
    ("append_file", "tool:append_file:"),
    ("str_replace", "tool:str_replace:"),
    ("view", "tool:view:"),
    ("bash", BASH_PREFIX),
    ("git_init", "tool:git:init"),
    ("git_commit", "tool:git:commit"),
    ("git_branch", "tool:git:branch"),
    ("git_checkout", "tool:git:checkout"),
    ("git_diff", "tool:git:diff"),
    ("git_log", "tool:git:log"),
    ("git_push", "tool:git:push"),
    ("git_merge_request", "tool:git:merge_request"),
    ("self_edit_system_prompt", "tool:self_edit:system_prompt"),
    ("self_edit_docs", "tool:self_edit:docs:"),
    ("self_edit_permissions", "tool:self_edit:permissions:"),
    ("self_edit_model", "tool:self_edit:model:"),
    ("list_models", "tool:list_models:"),
    ("list_agents", "tool:list_agents:"),
    ("search_sessions", "tool:search_sessions:"),
    ("remember", "tool:remember:"),
    ("send_to_agent", "tool:send_to_agent:"),
    ("schedule_add", "tool:schedule_add:"),
    ("schedule_list", "tool:schedule_list:"),
    ("schedule_remove", "tool:schedule_remove:"),
];

/// Prefix of every action.
pub(crate) const ACTION_PREFIX: &str = "tool:";

/// An operation that a tool is about to perform. `Display` writes its action string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<'a> {
    /// A file tool (`create_file`, `append_file`, `str_replace`, `view`) with the path in the workspace that the tool
    /// opens.
    File {
        tool: &'a str,
        path: &'a str,
    },
    Bash {
        command: &'a str,
    },
    /// `init`, `commit`, `diff` or `log`.
    Git {
        verb: &'a str,
    },
    GitBranch {
        name: &'a str,
    },
    GitCheckout {
        name: &'a str,
    },
    GitPush {
        remote: &'a str,
        branch: &'a str,
    },
    GitMergeRequest {
        target: &'a str,
    },
    SelfEditSystemPrompt,
    SelfEditDocs {
        path: &'a str,
    },
    /// The profile's name, or `custom` for an inline profile.
    SelfEditPermissions {
        profile: &'a str,
    },
    SelfEditModel {
        model: &'a str,
    },
    /// `list_models`, `list_agents`, `search_sessions`, `remember`, `send_to_agent` or `schedule_…`, with its argument.
    Other {
        tool: &'a str,
        argument: &'a str,
    },
}

impl fmt::Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { tool, path } => write!(f, "tool:{tool}:{path}"),
            Self::Bash { command } => write!(f, "{BASH_PREFIX}{command}"),
            Self::Git { verb } => write!(f, "tool:git:{verb}"),
            Self::GitBranch { name } => write!(f, "tool:git:branch {name}"),
            Self::GitCheckout { name } => write!(f, "tool:git:checkout {name}"),
            Self::GitPush { remote, branch } => write!(f, "tool:git:push {remote} {branch}"),
            Self::GitMergeRequest { target } => write!(f, "tool:git:merge_request {target}"),
            Self::SelfEditSystemPrompt => f.write_str("tool:self_edit:system_prompt"),
            Self::SelfEditDocs { path } => write!(f, "tool:self_edit:docs:{path}"),
            Self::SelfEditPermissions { profile } => write!(f, "tool:self_edit:permissions:{profile}"),
            Self::SelfEditModel { model } => write!(f, "tool:self_edit:model:{model}"),
            Self::Other { tool, argument } => write!(f, "tool:{tool}:{argument}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_written_as_the_contract_says() {
        for (action, text) in [
            (Action::File { tool: "view", path: "src/a b.rs" }, "tool:view:src/a b.rs"),
            (Action::Bash { command: "ls\n-l" }, "tool:bash:ls\n-l"),
            (Action::Git { verb: "init" }, "tool:git:init"),
            (Action::GitBranch { name: "x" }, "tool:git:branch x"),
            (Action::GitCheckout { name: "x" }, "tool:git:checkout x"),
            (Action::GitPush { remote: "origin", branch: "x" }, "tool:git:push origin x"),
            (Action::GitMergeRequest { target: "main" }, "tool:git:merge_request main"),
            (Action::SelfEditSystemPrompt, "tool:self_edit:system_prompt"),
            (Action::SelfEditDocs { path: "a.md" }, "tool:self_edit:docs:a.md"),
            (Action::SelfEditPermissions { profile: "custom" }, "tool:self_edit:permissions:custom"),
            (Action::SelfEditModel { model: "a/b" }, "tool:self_edit:model:a/b"),
            (Action::Other { tool: "remember", argument: "x" }, "tool:remember:x"),
        ] {
            assert_eq!(action.to_string(), text);
        }
    }
}
