//! A compiled profile, which judges actions.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use chorus_proto::methods::permissions::{BashMode, Decision, Part, Rule, Verdict};
use regex::{RegexBuilder, RegexSet, RegexSetBuilder};
use regex_automata::util::syntax;

use super::action::BASH_PREFIX;
use super::agent_rules::{AgentRules, CompiledRule};
use super::literal_prefixes::LiteralPrefixes;
use super::profile_spec::{ProfileError, ProfileSpec};
use super::shell::{self, CommandPart, Invocation, WorkspacePaths};
use super::tool_visibility::ToolVisibility;

/// Memory limit of one compiled pattern, in bytes.
const PATTERN_SIZE_LIMIT: usize = 1 << 20;
/// Memory limit of all compiled patterns together, in bytes.
const PATTERN_SET_SIZE_LIMIT: usize = 16 << 20;

/// Advice appended to the reason why a rule does not allow a command.
const NAME_PROGRAM_HINT: &str = "name the program in a rule to allow it";

/// A profile whose patterns compile and whose examples hold.
#[derive(Debug, Clone)]
pub struct Profile {
    spec: ProfileSpec,
    /// Patterns in the order deny, ask, allow, so that the first match is the strictest.
    rules: RegexSet,
    /// The literal prefixes of the commands that each pattern of `allow` matches.
    literal_prefixes: Arc<[LiteralPrefixes]>,
    /// The tools that could be allowed or asked about; computed once, when first needed.
    tool_visibility: Arc<OnceLock<ToolVisibility>>,
    /// What people allowed the agent that has this profile.
    pub(super) agent_rules: AgentRules,
}

impl Default for Profile {
    /// The profile that denies everything.
    fn default() -> Self {
        Self {
            spec: ProfileSpec::default(),
            rules: RegexSet::empty(),
            literal_prefixes: Arc::default(),
            tool_visibility: Arc::default(),
            agent_rules: AgentRules::default(),
        }
    }
}

impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec && self.agent_rules == other.agent_rules
    }
}

/// Index of the matching pattern in [`Profile::rules`]; `None` if no pattern matched.
type RuleMatch = Option<usize>;

impl Profile {
    /// Compiles a profile and checks its examples.
    ///
    /// # Errors
    /// The first pattern that does not compile, or the first example that does not hold.
    pub fn new(spec: ProfileSpec) -> Result<Self, ProfileError> {
        let lists = [("deny", &spec.deny), ("ask", &spec.ask), ("allow", &spec.allow)];
        let mut whole = Vec::new();
        for (key, patterns) in lists {
            for (index, pattern) in patterns.iter().enumerate() {
                let problem = |e: &dyn Display| {
                    ProfileError::new(
                        key,
                        Some(index),
                        format!("is not a valid regular expression: {}", last_error_line(e)),
                    )
                };
                let anchored = format!(r"(?s)\A(?:{pattern})\z");
                // Parse the bare pattern too: `a)|(?:b` would close the group that anchors it.
                syntax::parse(pattern).map_err(|e| problem(&e))?;
                RegexBuilder::new(&anchored).size_limit(PATTERN_SIZE_LIMIT).build().map_err(|e| problem(&e))?;
                whole.push(anchored);
            }
        }
        let rules = RegexSetBuilder::new(&whole).size_limit(PATTERN_SET_SIZE_LIMIT).build().map_err(|e| {
            ProfileError { location: None, message: format!("has patterns that are too large in total: {e}") }
        })?;
        let allow = whole.len() - spec.allow.len();
        let spelled = whole[allow..].iter().map(|pattern| LiteralPrefixes::new(pattern)).collect();
        let profile = Self {
            spec,
            rules,
            literal_prefixes: spelled,
            tool_visibility: Arc::default(),
            agent_rules: AgentRules::default(),
        };
        for (index, (action, wanted)) in profile.spec.examples.iter().enumerate() {
            let decision = profile.judge(action).decision;
            if decision != *wanted {
                let (is, wanted) = (decision.as_str(), wanted.as_str());
                let what = format!("failed: {action:?} is {is}, expected {wanted}");
                return Err(ProfileError::new("examples", Some(index), what));
            }
        }
        Ok(profile)
    }

    /// Returns the profile as written in the configuration.
    #[must_use]
    pub fn spec(&self) -> &ProfileSpec {
        &self.spec
    }

    /// Returns true if commands may use the network.
    #[must_use]
    pub fn allows_network(&self) -> bool {
        self.spec.network
    }

    /// Returns true if the profile may allow or ask about some action of the tool. False is certain; true is an upper
    /// bound.
    #[must_use]
    pub fn may_use_tool(&self, tool: &str) -> bool {
        self.tool_visibility.get_or_init(|| ToolVisibility::new(&self.spec, self.rules.patterns())).is_visible(tool)
    }

    /// Judges an action. The strictest matching rule wins: deny, then ask, then allow, else the default. With
    /// `bash: parsed` a shell command is split and each part is judged by itself. If the result is `ask`, an action
    /// that `always` or a rule of the agent lists literally is allowed, unless it has an `ask_reason`.
    #[must_use]
    pub fn judge(&self, action: &str) -> Verdict {
        self.judge_in_workspace(action, &WorkspacePaths::default())
    }

    /// Like [`Profile::judge`], but also matches the files of commands by their other names in `workspace`.
    #[must_use]
    pub fn judge_in_workspace(&self, action: &str, workspace: &WorkspacePaths) -> Verdict {
        let (verdict, guard) = self.judge_by_patterns(action, workspace);
        if verdict.decision != Decision::Ask || guard.is_some() {
            return verdict;
        }
        let always = self.spec.always.iter().position(|always| always == action);
        let always = always.map(|index| Rule::Always { index: index as u64 });
        match always.or_else(|| self.agent_rules.find_action(action)) {
            Some(rule) => Verdict { decision: Decision::Allow, rule, ..verdict },
            None => verdict,
        }
    }

    /// Judges by the patterns alone. The second value is the reason why no rule may improve the verdict beyond `ask`,
    /// if there is one.
    pub(super) fn judge_by_patterns(&self, action: &str, workspace: &WorkspacePaths) -> (Verdict, Option<String>) {
        match action.strip_prefix(BASH_PREFIX) {
            Some(command) if self.spec.bash == BashMode::Parsed => self.judge_command(command, workspace),
            _ => {
                let (decision, rule) = self.decision_and_rule(self.strictest_match(action));
                let parts = vec![Part { action: action.to_owned(), decision, rule: rule.clone() }];
                (Verdict { decision, rule, parts }, None)
            }
        }
    }

    fn judge_command(&self, command: &str, workspace: &WorkspacePaths) -> (Verdict, Option<String>) {
        let script = shell::analyze(command, workspace);
        let guard =
            script.ask_reason.clone().or_else(|| script.parts.iter().find_map(|piece| piece.ask_reason.clone()));
        let mut used = Vec::new();
        let parts: Vec<Part> = script.parts.into_iter().map(|piece| self.judge_part(piece, &mut used)).collect();
        let strictest = parts.iter().min_by_key(|part| part.decision);
        let mut decided = match strictest {
            Some(part) => (part.decision, part.rule.clone()),
            None => self.decision_and_rule(self.strictest_match(&format!("{BASH_PREFIX}{command}"))),
        };
        let command = format!("{BASH_PREFIX}{command}");
        let forms = script.possible_actions.iter().chain([&command]);
        if let Some(found) = forms.filter_map(|form| self.strictest_not_overridden(form, &used)).min() {
            let whole = self.decision_and_rule(Some(found));
            if whole.0 < decided.0 {
                decided = whole;
            }
        }
        if let (Decision::Allow, Some(reason)) = (decided.0, script.ask_reason) {
            decided = (Decision::Ask, Rule::Shell { reason });
        }
        (Verdict { decision: decided.0, rule: decided.1, parts }, guard)
    }

    /// Judges a part. The agent's patterns that allow it are added to `used`.
    pub(super) fn judge_part<'a>(&'a self, piece: CommandPart, used: &mut Vec<&'a CompiledRule>) -> Part {
        let strict = piece.alternatives.iter().filter_map(|form| self.strictest_deny_or_ask(form)).min();
        let found = match (self.strictest_match(&piece.action), strict) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let (mut decision, mut rule) = self.decision_and_rule(found);
        let pattern = self.covering_pattern(&piece).filter(|_| decision != Decision::Deny);
        if decision == Decision::Allow {
            let first = found.unwrap_or_default();
            let enough = match (piece.ask_reason, &piece.invocation) {
                (Some(reason), _) => Err(reason),
                (None, Some(call)) => self.find_spelling_rule(call, &piece.action, first),
                (None, None) => Ok(first),
            };
            (decision, rule) = match enough {
                Ok(found) => self.decision_and_rule(Some(found)),
                Err(reason) => (Decision::Ask, Rule::Shell { reason }),
            };
        }
        if let (Decision::Ask, Some(pattern)) = (decision, pattern) {
            (decision, rule) = (Decision::Allow, pattern.verdict_rule());
            used.push(pattern);
        }
        Part { action: piece.action, decision, rule }
    }

    /// Returns the agent's pattern that covers a part, and that no narrower `ask` wins over.
    fn covering_pattern(&self, piece: &CommandPart) -> Option<&CompiledRule> {
        let call = piece.invocation.as_ref().filter(|_| piece.ask_reason.is_none())?;
        let forms = piece.alternatives.iter().chain([&piece.action]);
        let unopposed = |pattern: &&CompiledRule| {
            forms.clone().all(|form| self.strictest_not_overridden(form, &[*pattern]).is_none())
        };
        self.agent_rules.covering(call, &piece.action).find(unopposed)
    }

    /// Returns the strictest matching rule that denies, or that asks and is not overridden by one of the agent's patterns.
    fn strictest_not_overridden(&self, action: &str, patterns: &[&CompiledRule]) -> RuleMatch {
        let first = self.strictest_deny_or_ask(action)?;
        let deny = self.spec.deny.len();
        if first < deny || patterns.is_empty() {
            return Some(first);
        }
        let asks = deny..deny + self.spec.ask.len();
        let sources = &self.rules.patterns()[asks.clone()];
        let is_overridden = |index: usize| patterns.iter().any(|pattern| pattern.overrides(index - deny, sources));
        self.rules.matches(action).into_iter().filter(|index| asks.contains(index)).find(|index| !is_overridden(*index))
    }

    /// Finds the rule that allows a command. `first` is the first allow rule that matches. The rule must spell out the
    /// program and any delegating words, or the command must be one that is known to run nothing else.
    fn find_spelling_rule(&self, call: &Invocation, action: &str, first: usize) -> Result<usize, String> {
        let command = action.strip_prefix(BASH_PREFIX).unwrap_or_default();
        let before = self.spec.deny.len() + self.spec.ask.len();
        let wanted = call.delegation.as_ref().map_or(call.program_end, |(end, _)| *end);
        let spells = |found: &usize| {
            let spelled = found.checked_sub(before).and_then(|index| self.literal_prefixes.get(index));
            spelled.is_some_and(|spelled| spelled.spelled_len(command) >= wanted)
        };
        if let Some(found) = Some(first).filter(spells).or_else(|| self.rules.matches(action).into_iter().find(spells))
        {
            return Ok(found);
        }
        if let Some((_, reason)) = &call.delegation {
            return Err(format!("{reason}, and no rule names that"));
        }
        let words: Vec<&str> = call.words.iter().map(String::as_str).collect();
        let index = first.saturating_sub(before);
        shell::reviewed(&words).map(|()| first).map_err(|words| {
            format!("allow[{index}] matches any program, and `{words}` may run other programs: {NAME_PROGRAM_HINT}")
        })
    }

    /// Returns the indices of the `allow` patterns that match commands without naming a program.
    pub fn rules_matching_any_program(&self) -> impl Iterator<Item = usize> {
        let parsed = self.spec.bash == BashMode::Parsed;
        self.literal_prefixes
            .iter()
            .enumerate()
            .filter(move |(_, spelled)| parsed && spelled.matches_any_program())
            .map(|(at, _)| at)
    }

    /// Returns the strictest rule that matches.
    fn strictest_match(&self, action: &str) -> RuleMatch {
        self.rules.matches(action).iter().next()
    }

    /// Returns the strictest matching rule that denies or asks.
    fn strictest_deny_or_ask(&self, action: &str) -> RuleMatch {
        self.strictest_match(action).filter(|found| *found < self.spec.deny.len() + self.spec.ask.len())
    }

    fn decision_and_rule(&self, found: RuleMatch) -> (Decision, Rule) {
        let Some(found) = found else { return (self.spec.default, Rule::Default) };
        let (deny, ask) = (self.spec.deny.len(), self.spec.ask.len());
        let (list, patterns, index) = match found {
            _ if found < deny => (Decision::Deny, &self.spec.deny, found),
            _ if found < deny + ask => (Decision::Ask, &self.spec.ask, found - deny),
            _ => (Decision::Allow, &self.spec.allow, found - deny - ask),
        };
        let pattern = patterns.get(index).cloned().unwrap_or_default();
        (list, Rule::Pattern { list, index: index as u64, pattern })
    }
}

/// Returns the last line of an error of the regex crate; the lines before it repeat the pattern.
fn last_error_line(error: &dyn Display) -> String {
    let text = error.to_string();
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
