//! `permissions.*`: permission profiles and verdicts.

use jiff::Timestamp;
use serde_json::Value;

use super::{method, wire};

method!(
    /// Lists the permission profiles: the presets and those of the configuration.
    List = "permissions.list", ListParams => ListResult
);
method!(
    /// Shows one profile with its rules, numbered as in verdicts.
    Show = "permissions.show", ShowParams => ShowResult
);
method!(
    /// Returns the verdict of an agent's profile on an action, and the rule behind it. Does not carry out the action.
    Check = "permissions.check", CheckParams => Verdict
);

method!(
    /// Lists the rules of an agent: what people allowed permanently.
    Rules = "permissions.rules", RulesParams => RulesResult
);
method!(
    /// Removes a rule of an agent. The profile alone decides again about what it allowed.
    RemoveRule = "permissions.remove_rule", RemoveRuleParams => RemoveRuleResult
);

#[wire(params)]
pub struct ListParams {}

#[wire(PartialEq)]
pub struct ListResult {
    /// The presets, then those of the configuration, sorted by name.
    pub profiles: Vec<ProfileInfo>,
}

/// A profile in lists.
#[wire(PartialEq)]
pub struct ProfileInfo {
    pub name: String,
    /// True for `open`, `standard` and `locked`.
    pub preset: bool,
    /// The decision if no rule matches.
    pub default: Decision,
    /// Mode in which commands of `bash` are checked.
    pub bash: BashMode,
    /// True if commands may use the network.
    pub network: bool,
    /// Names of the agents that use it, sorted.
    pub agents: Vec<String>,
}

#[wire]
#[serde(deny_unknown_fields)]
pub struct ShowParams {
    /// A profile.
    pub name: String,
}

#[wire(PartialEq)]
pub struct ShowResult {
    pub info: ProfileInfo,
    /// All its keys: `deny`, `ask`, `allow`, `always`, `default`, `bash`, `network`, `examples`.
    pub profile: Value,
}

#[wire]
#[serde(deny_unknown_fields)]
pub struct CheckParams {
    #[omit_empty]
    pub agent: Option<String>,
    /// For example `tool:bash:git status`.
    pub action: String,
}

#[wire(params)]
pub struct RulesParams {
    pub agent: Option<String>,
}

#[wire(PartialEq, Eq)]
pub struct RulesResult {
    pub agent: String,
    /// Oldest first.
    pub rules: Vec<AgentRule>,
}

#[wire(params)]
pub struct RemoveRuleParams {
    pub agent: Option<String>,
    /// Its number.
    pub number: u64,
    /// Its text: if the rule with this number has another text, nothing is removed.
    pub rule: Option<String>,
}

#[wire(PartialEq, Eq)]
pub struct RemoveRuleResult {
    pub agent: String,
    pub removed: AgentRule,
}

/// Something that a person allowed an agent permanently. It overrides an `ask` of the profile, never a `deny`.
#[wire(PartialEq, Eq)]
pub struct AgentRule {
    /// Its position among the rules of the agent, starting at 1.
    pub number: u64,
    pub kind: AgentRuleKind,
    /// The whole action, such as `tool:bash:git status`, or the pattern of a command, such as `git status *`.
    pub rule: String,
    pub created_at: Timestamp,
    /// `owner`, or somebody in a channel.
    pub created_by: String,
    /// For the tool of an MCP server: SHA-256, in hex, of its description and parameters at that time. If they change, the
    /// action needs approval again.
    #[omit_empty]
    pub definition: Option<String>,
}

/// How an agent's rule matches.
#[wire(Copy, PartialEq, Eq)]
pub enum AgentRuleKind {
    /// Exactly this action.
    Action,
    /// Commands that begin with these words.
    Command,
}

/// Decision about an action, ordered by strictness: the smallest is the strictest.
#[wire(Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    Deny,
    /// It needs approval.
    Ask,
    Allow,
}

impl Decision {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

/// Mode in which a profile checks commands of `bash`.
#[wire(Copy, Default, PartialEq, Eq)]
pub enum BashMode {
    /// Each simple command separately; a command that hides others is at best `ask`.
    #[default]
    Parsed,
    /// The whole command as one string.
    Whole,
}

/// Decision about an action.
#[wire(PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    /// The rule that made the decision.
    pub rule: Rule,
    /// The parts of a command that are checked separately; otherwise the action itself.
    pub parts: Vec<Part>,
}

/// A part of an action that is checked separately.
#[wire(PartialEq, Eq)]
pub struct Part {
    /// The action of this part.
    pub action: String,
    pub decision: Decision,
    pub rule: Rule,
}

/// The reason of a decision.
#[wire(PartialEq, Eq)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Rule {
    /// A pattern of the profile.
    Pattern {
        /// The list that contains it: that of the decision.
        list: Decision,
        /// Its position in the list, starting at 0.
        index: u64,
        pattern: String,
    },
    /// Permanently approved: exactly this action is in `always`.
    Always {
        /// Its position in the list, starting at 0.
        index: u64,
    },
    /// A rule of the agent allows what the profile asks about.
    Agent {
        /// Its number, starting at 1.
        number: u64,
        rule: String,
    },
    /// No pattern matched.
    Default,
    /// A pattern of `allow` matches, but it needs approval: it cannot be analyzed, or the pattern is too general.
    Shell {
        /// Completes "it needs approval because".
        reason: String,
    },
}
