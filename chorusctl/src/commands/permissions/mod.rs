//! `chorusctl permissions`: one module per subcommand; the default is `list`.

use chorus_proto::methods::permissions::{Decision, Rule};

use crate::ui::{Style, sanitize};

pub mod check;
pub mod list;
pub mod rules;
pub mod show;

group! {
    /// Show permission profiles and test actions against them
    enum Verb or list {
        /// List permission profiles (default)
        List(list::Args),
        /// Show a profile with its rules
        Show(show::Args),
        /// Test an action against an agent's profile and explain the result
        Check(check::Args),
        /// List or remove what an agent is permanently allowed
        Rules(rules::Args),
    }
}

fn decision_style(decision: Decision) -> Style {
    match decision {
        Decision::Allow => Style::Good,
        Decision::Ask => Style::Strong,
        Decision::Deny => Style::Bad,
    }
}

/// Formats a rule as `deny[3] tool:bash:rm .*`, or says why no rule applies.
#[must_use]
pub fn format_rule(rule: &Rule) -> String {
    match rule {
        Rule::Pattern { list, index, pattern } => format!("{}[{index}] {}", list.as_str(), sanitize::one_line(pattern)),
        Rule::Always { index } => format!("always[{index}]: approved permanently"),
        Rule::Agent { number, rule } => format!("rule {number} of the agent: {}", sanitize::one_line(rule)),
        Rule::Default => "default (no rule matches)".to_owned(),
        Rule::Shell { reason } => format!("needs approval because {}", sanitize::one_line(reason)),
    }
}
