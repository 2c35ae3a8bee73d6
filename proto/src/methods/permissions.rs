//! `permissions.*`: permission profiles and verdicts.

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

#[wire(params)]
pub struct ListParams {}

#[wire(PartialEq)]
pub struct ListResult {
    /// The presets, then those of the configuration by name.
    pub profiles: Vec<ProfileInfo>,
}

/// A profile as lists show it.
#[wire(PartialEq)]
pub struct ProfileInfo {
    pub name: String,
    /// True for `open`, `standard` and `locked`.
    pub preset: bool,
    /// What holds where no rule matches.
    pub default: Decision,
    /// How commands of `bash` are judged.
    pub bash: BashMode,
    /// Whether commands may use the network.
    pub network: bool,
    /// Names of the agents that have it, sorted.
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
    /// Every key of it: `deny`, `ask`, `allow`, `always`, `default`, `bash`, `network`, `examples`.
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

/// May it be done? Ordered by strictness: the smallest is the strictest.
#[wire(Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    Deny,
    /// Somebody is asked.
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

/// How a profile judges commands of `bash`.
#[wire(Copy, Default, PartialEq, Eq)]
pub enum BashMode {
    /// Each simple command by itself; what hides others is never better than `ask`.
    #[default]
    Parsed,
    /// The command as one string.
    Whole,
}

/// What was decided about an action.
#[wire(PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    /// The rule that decided.
    pub rule: Rule,
    /// Of a command that is judged in parts, each of them; else the action itself.
    pub parts: Vec<Part>,
}

/// One thing that is judged by itself.
#[wire(PartialEq, Eq)]
pub struct Part {
    /// Its action.
    pub action: String,
    pub decision: Decision,
    pub rule: Rule,
}

/// Why it was decided so.
#[wire(PartialEq, Eq)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Rule {
    /// A pattern of the profile.
    Pattern {
        /// The list it stands in: that of the decision.
        list: Decision,
        /// Its place in the list, from 0.
        index: u64,
        pattern: String,
    },
    /// Approved for ever: exactly this action is in `always`.
    Always {
        /// Its place in the list, from 0.
        index: u64,
    },
    /// No pattern matched.
    Default,
    /// A pattern of `allow` matches, but it is asked about: it cannot be seen through, or the pattern says too little.
    Shell {
        /// To be read after "it is asked about because".
        reason: String,
    },
}
