//! The rules of an agent: what people allowed for good when they were asked. They stand beside the agent's profile and
//! override nothing but an `ask` of it.
//!
//! A rule is a whole action, or the pattern of a command: its leading words and `*`. A pattern never covers what the
//! shell analysis cannot see through, a word that makes the program run another one, or what a narrower `ask` of the
//! profile is about.

use std::sync::{Arc, OnceLock};

use chorus_proto::methods::permissions::{AgentRule, AgentRuleKind, BashMode, Decision, Rule};
use jiff::Timestamp;
use serde_json::Value;

use super::action::BASH_PREFIX;
use super::profile::Profile;
use super::profile_spec::{MAX_PATTERN_LEN, MAX_RULES};
use super::shell::{self, Invocation, WorkspacePaths};
use super::tool_visibility::PatternSet;

/// End of a command pattern.
const ANY_ARGUMENTS: &str = " *";

/// Limit on the patterns that one question offers. Nobody would read more.
const MAX_OFFERED: usize = 5;

/// The rules of an agent, for one profile.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentRules(Arc<[CompiledRule]>);

#[derive(Debug)]
pub(crate) struct CompiledRule {
    rule: AgentRule,
    /// The leading words of a command pattern, one space apart.
    words: Option<Box<str>>,
    /// For each `ask` pattern of the profile, whether it matches every command that the rule matches. A narrower one
    /// wins over the rule. Computed when first needed.
    overridden: OnceLock<Box<[bool]>>,
}

impl PartialEq for AgentRules {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl AgentRules {
    fn new(rules: Vec<AgentRule>) -> Self {
        let compile = |rule: AgentRule| {
            let words = (rule.kind == AgentRuleKind::Command).then(|| rule.rule.strip_suffix(ANY_ARGUMENTS)).flatten();
            CompiledRule { words: words.map(Into::into), rule, overridden: OnceLock::new() }
        };
        Self(rules.into_iter().map(compile).collect())
    }

    fn iter(&self) -> impl Iterator<Item = &AgentRule> {
        self.0.iter().map(|compiled| &compiled.rule)
    }

    /// Returns the rule that allows exactly this action.
    pub(crate) fn find_action(&self, action: &str) -> Option<Rule> {
        let mut actions = self.iter().filter(|rule| rule.kind == AgentRuleKind::Action);
        actions.find(|rule| rule.rule == action).map(verdict_rule)
    }

    /// Returns the patterns that cover a command, which has no reason to ask.
    pub(crate) fn covering(&self, call: &Invocation, action: &str) -> impl Iterator<Item = &CompiledRule> {
        let command = action.strip_prefix(BASH_PREFIX).unwrap_or_default().to_owned();
        self.0.iter().filter(move |rule| rule.covers(call, &command))
    }
}

impl CompiledRule {
    /// Whether the pattern matches the command, and spells out every word of it that hands over to another program. A
    /// pattern that is only a program covers what that program is known to do by itself.
    fn covers(&self, call: &Invocation, command: &str) -> bool {
        let Some(words) = &self.words else { return false };
        let matches = command.strip_prefix(&**words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        if !matches || words.len() < call.delegation.as_ref().map_or(call.program_end, |(end, _)| *end) {
            return false;
        }
        words.contains(' ') || shell::reviewed(&call.words.iter().map(String::as_str).collect::<Vec<_>>()).is_ok()
    }

    /// Whether the `ask` pattern at `index` matches every command that this rule matches. `patterns` are all of them.
    pub(crate) fn overrides(&self, index: usize, patterns: &[String]) -> bool {
        let Some(words) = &self.words else { return false };
        let all = self.overridden.get_or_init(|| {
            let (alone, with_arguments) = (format!("{BASH_PREFIX}{words}"), format!("{BASH_PREFIX}{words} "));
            let matches_all = |pattern: &String| {
                let set = PatternSet::new(std::slice::from_ref(pattern));
                set.matches(&alone) && set.always_matches(&with_arguments)
            };
            patterns.iter().map(matches_all).collect()
        });
        all.get(index).copied().unwrap_or(false)
    }

    pub(crate) fn verdict_rule(&self) -> Rule {
        verdict_rule(&self.rule)
    }
}

fn verdict_rule(rule: &AgentRule) -> Rule {
    Rule::Agent { number: rule.number, rule: rule.rule.clone() }
}

/// Parses the `permission_rules` of an agent.json.
///
/// # Errors
/// A text that follows "agent.json has ".
pub fn parse_agent_rules(value: &Value) -> Result<Vec<AgentRule>, String> {
    const KEY: &str = "permission_rules";
    let list = value.as_array().ok_or_else(|| format!("`{KEY}` that are not a list"))?;
    if list.len() > MAX_RULES {
        return Err(format!("more than {MAX_RULES} `{KEY}`"));
    }
    let parse = |(at, value): (usize, &Value)| {
        let mut value = value.clone();
        if let Some(map) = value.as_object_mut() {
            map.insert("number".into(), (at + 1).into());
        }
        let rule: AgentRule = serde_json::from_value(value).map_err(|e| format!("a wrong `{KEY}[{at}]`: {e}"))?;
        if rule.rule.len() > MAX_PATTERN_LEN {
            return Err(format!("a `{KEY}[{at}]` longer than {MAX_PATTERN_LEN} bytes"));
        }
        if rule.kind == AgentRuleKind::Command && !is_command_pattern(&rule.rule) {
            return Err(format!("a wrong `{KEY}[{at}]`: a command rule has plain words and ends in ` *`"));
        }
        Ok(rule)
    };
    list.iter().enumerate().map(parse).collect()
}

/// Returns the rules as agent.json keeps them: without their numbers, which are their places.
#[must_use]
pub fn agent_rules_to_json(rules: &[AgentRule]) -> Value {
    let entry = |rule: &AgentRule| {
        let mut value = serde_json::to_value(rule).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.remove("number");
        }
        value
    };
    rules.iter().map(entry).collect()
}

/// Whether a pattern is words without quotes, one space apart, and ` *`. Then the words end where a word of the command
/// ends.
fn is_command_pattern(pattern: &str) -> bool {
    let plain = |word: &str| !word.is_empty() && !word.contains(['*', '[', ']']) && shell::quote_word(word) == word;
    pattern.strip_suffix(ANY_ARGUMENTS).is_some_and(|words| words.split(' ').all(plain))
}

impl Profile {
    /// Returns this profile with the rules of an agent beside it.
    #[must_use]
    pub fn with_agent_rules(&self, rules: Vec<AgentRule>) -> Self {
        let mut profile = self.clone();
        profile.agent_rules = AgentRules::new(rules);
        profile
    }

    /// Iterates over the rules of the agent, oldest first.
    pub fn agent_rules(&self) -> impl Iterator<Item = &AgentRule> {
        self.agent_rules.iter()
    }

    /// Returns the rules of the agent with these added, unless they are there already. A rule for another definition of a
    /// server's tool is replaced.
    #[must_use]
    pub fn extended_agent_rules(
        &self,
        kind: AgentRuleKind,
        new: &[String],
        (at, by): (Timestamp, &str),
        definition: Option<&str>,
    ) -> Vec<AgentRule> {
        let mut rules: Vec<AgentRule> = self.agent_rules().cloned().collect();
        for text in new {
            let known = rules.iter().position(|rule| rule.kind == kind && rule.rule == *text);
            let number = known.unwrap_or(rules.len()) as u64 + 1;
            let (rule, definition) = (text.clone(), definition.map(str::to_owned));
            let rule = AgentRule { number, kind, rule, created_at: at, created_by: by.to_owned(), definition };
            match known {
                Some(known) if rules[known].definition == rule.definition => {}
                Some(known) => rules[known] = rule,
                None => rules.push(rule),
            }
        }
        rules
    }

    /// Returns the narrowest patterns that would allow this command: one for each part that is not allowed already. Empty
    /// if there is a part for which no pattern is proven to cover no other program, or if the command would be asked about
    /// all the same.
    #[must_use]
    pub fn propose_patterns(&self, action: &str, workspace: &WorkspacePaths) -> Vec<String> {
        self.find_patterns(action, workspace).unwrap_or_default()
    }

    fn find_patterns(&self, action: &str, workspace: &WorkspacePaths) -> Option<Vec<String>> {
        let command = action.strip_prefix(BASH_PREFIX).filter(|_| self.spec().bash == BashMode::Parsed)?;
        let script = shell::analyze(command, workspace);
        if script.ask_reason.is_some() {
            return None;
        }
        let mut patterns: Vec<String> = Vec::new();
        for piece in script.parts {
            let words = piece.invocation.as_ref().map(|call| call.words.clone());
            if self.judge_part(piece, &mut Vec::new()).decision == Decision::Allow {
                continue;
            }
            let words = words?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let kind = words.get(..shell::kind_len(&words)?)?.join(" ");
            let pattern = format!("{kind}{ANY_ARGUMENTS}");
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        let rules = self.extended_agent_rules(AgentRuleKind::Command, &patterns, (Timestamp::UNIX_EPOCH, ""), None);
        if patterns.len() > MAX_OFFERED || rules.len() > MAX_RULES {
            return None;
        }
        let allowed = self.with_agent_rules(rules).judge_in_workspace(action, workspace).decision == Decision::Allow;
        allowed.then_some(patterns)
    }
}

#[cfg(test)]
mod tests;
