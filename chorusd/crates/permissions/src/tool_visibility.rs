//! Finds the tools that a profile can never allow or ask about, so that they need not be offered to a model.
//!
//! A tool is left out only if that is certain: a DFA of the patterns is fed the prefix that the tool's actions share.
//! If it reaches a dead state, no pattern matches any action of the tool.

use std::collections::{BTreeMap, HashSet};

use chorus_proto::methods::permissions::Decision;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind, nfa::thompson};

use super::action::{ACTION_PREFIX, BASH_PREFIX, TOOL_ACTION_PREFIXES};
use super::profile_spec::ProfileSpec;

/// Prefix of the actions of a command that only writes a file.
const CREATE_FILE_PREFIX: &str = "tool:create_file:";

/// Memory limit of an automaton in bytes. Tools are offered if it is exceeded.
const NFA_SIZE_LIMIT: usize = 16 << 20;
const DFA_CACHE_CAPACITY: usize = 8 << 20;
/// Limit on the states visited to prove that a pattern matches every continuation.
const MAX_VISITED_STATES: usize = 4096;

/// Whether each tool could be allowed or asked about.
#[derive(Debug)]
pub(crate) struct ToolVisibility {
    tools: BTreeMap<&'static str, bool>,
    /// The answer for tools that are not in `tools`.
    unlisted: bool,
}

impl ToolVisibility {
    /// Takes `spec` and its anchored patterns (`whole`) in the order deny, ask, allow.
    pub(crate) fn new(spec: &ProfileSpec, whole: &[String]) -> Self {
        let (deny, permit) = whole.split_at(spec.deny.len().min(whole.len()));
        let (deny, permit) = (PatternSet::new(deny), PatternSet::new(permit));
        let offered = |begins: &str| {
            let written = || begins == BASH_PREFIX && permit.may_match(CREATE_FILE_PREFIX);
            let permitted = spec.default == Decision::Ask || permit.may_match(begins) || written();
            permitted && !deny.always_matches(begins)
        };
        Self {
            tools: TOOL_ACTION_PREFIXES.iter().map(|(tool, begins)| (*tool, offered(begins))).collect(),
            unlisted: offered(ACTION_PREFIX),
        }
    }

    /// Returns true if some action of the tool may be allowed or asked about.
    pub(crate) fn is_visible(&self, tool: &str) -> bool {
        self.tools.get(tool).copied().unwrap_or(self.unlisted)
    }
}

/// A set of patterns as one automaton.
#[derive(Debug)]
pub(crate) enum PatternSet {
    Empty,
    NotCompiled,
    Compiled(Box<DFA>),
}

impl PatternSet {
    pub(crate) fn new(patterns: &[String]) -> Self {
        if patterns.is_empty() {
            return Self::Empty;
        }
        // Clearing the cache would reuse state ids for other states.
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .cache_capacity(DFA_CACHE_CAPACITY)
            .minimum_cache_clear_count(Some(0))
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true);
        let size = thompson::Config::new().nfa_size_limit(Some(NFA_SIZE_LIMIT));
        match DFA::builder().configure(config).thompson(size).build_many(patterns) {
            Ok(dfa) => Self::Compiled(Box::new(dfa)),
            Err(_) => Self::NotCompiled,
        }
    }

    /// Returns true if a pattern matches some text with this prefix, or if that is unknown.
    fn may_match(&self, begins: &str) -> bool {
        match self {
            Self::Empty => false,
            Self::NotCompiled => true,
            Self::Compiled(dfa) => {
                let mut cache = dfa.create_cache();
                state_after(dfa, &mut cache, begins).is_none_or(|state| !state.is_dead())
            }
        }
    }

    /// Returns true if every text with this prefix is matched; false if that is unknown.
    pub(crate) fn always_matches(&self, begins: &str) -> bool {
        let Self::Compiled(dfa) = self else { return false };
        let mut cache = dfa.create_cache();
        state_after(dfa, &mut cache, begins).is_some_and(|state| is_universal(dfa, &mut cache, state).unwrap_or(false))
    }
}

impl PatternSet {
    /// Returns true if a pattern matches this text; false if that is unknown.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Self::Compiled(dfa) = self else { return false };
        let mut cache = dfa.create_cache();
        let end = state_after(dfa, &mut cache, text).and_then(|state| dfa.next_eoi_state(&mut cache, state).ok());
        end.is_some_and(|end| end.is_match())
    }
}

/// Returns the state that `text` leads to, or `None` if the automaton gives up.
fn state_after(dfa: &DFA, cache: &mut Cache, text: &str) -> Option<LazyStateID> {
    let mut state = dfa.start_state_forward(cache, &Input::new("").anchored(Anchored::Yes)).ok()?;
    for byte in text.bytes() {
        state = dfa.next_state(cache, state, byte).ok()?;
        if state.is_quit() || state.is_unknown() {
            return None;
        }
    }
    Some(state)
}

/// Returns true if every continuation in valid UTF-8 ends in a match, or `None` if that is unknown.
fn is_universal(dfa: &DFA, cache: &mut Cache, from: LazyStateID) -> Option<bool> {
    let (mut seen, mut left) = (HashSet::from([(from, Utf8Position::Boundary)]), vec![(from, Utf8Position::Boundary)]);
    while let Some((state, place)) = left.pop() {
        if seen.len() > MAX_VISITED_STATES {
            return None;
        }
        if place == Utf8Position::Boundary && !dfa.next_eoi_state(cache, state).ok()?.is_match() {
            return Some(false);
        }
        for byte in 0..=u8::MAX {
            let Some(place) = place.advance(byte) else { continue };
            let next = dfa.next_state(cache, state, byte).ok()?;
            if next.is_quit() || next.is_unknown() {
                return None;
            }
            if next.is_dead() {
                return Some(false);
            }
            if seen.insert((next, place)) {
                left.push((next, place));
            }
        }
    }
    Some(true)
}

/// Position within the UTF-8 encoding of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Utf8Position {
    Boundary,
    /// The number of bytes left, and the lowest and highest value of the next one.
    Inside(u8, u8, u8),
}

impl Utf8Position {
    /// Returns the position after this byte, or `None` if the byte is invalid here.
    fn advance(self, byte: u8) -> Option<Self> {
        let next = match (self, byte) {
            (Self::Boundary, 0..=0x7F) => Self::Boundary,
            (Self::Boundary, 0xC2..=0xDF) => Self::Inside(1, 0x80, 0xBF),
            (Self::Boundary, 0xE0) => Self::Inside(2, 0xA0, 0xBF),
            (Self::Boundary, 0xED) => Self::Inside(2, 0x80, 0x9F),
            (Self::Boundary, 0xE1..=0xEF) => Self::Inside(2, 0x80, 0xBF),
            (Self::Boundary, 0xF0) => Self::Inside(3, 0x90, 0xBF),
            (Self::Boundary, 0xF4) => Self::Inside(3, 0x80, 0x8F),
            (Self::Boundary, 0xF1..=0xF3) => Self::Inside(3, 0x80, 0xBF),
            (Self::Inside(1, low, high), byte) if (low..=high).contains(&byte) => Self::Boundary,
            (Self::Inside(left, low, high), byte) if (low..=high).contains(&byte) => Self::Inside(left - 1, 0x80, 0xBF),
            _ => return None,
        };
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Profile, ProfileSpec, Profiles};

    const TOOLS: [&str; 6] = ["view", "create_file", "bash", "git_push", "list_models", "one_of_tomorrow"];

    fn shown(spec: &serde_json::Value) -> Vec<&'static str> {
        let profile = Profile::new(ProfileSpec::from_json(spec.as_object().unwrap()).unwrap()).unwrap();
        TOOLS.into_iter().filter(|tool| profile.may_use_tool(tool)).collect()
    }

    #[test]
    fn presets_show_what_they_may_do() {
        let shown = |name: &str| {
            let profiles = Profiles::default();
            TOOLS.into_iter().filter(|tool| profiles.get(name).unwrap().may_use_tool(tool)).collect::<Vec<_>>()
        };
        assert_eq!(shown("open"), TOOLS);
        assert_eq!(shown("standard"), TOOLS);
        // The engine knows no actions of an unknown tool.
        assert_eq!(shown("locked"), ["view", "list_models", "one_of_tomorrow"]);
        assert!(TOOLS.iter().all(|tool| !Profile::default().may_use_tool(tool)));
    }

    #[test]
    fn a_tool_is_left_out_only_where_nothing_of_it_can_be_done() {
        let all = |deny: &str| shown(&json!({"allow": [".*"], "deny": [deny]}));
        let but = |gone: &str| TOOLS.into_iter().filter(|tool| *tool != gone).collect::<Vec<_>>();
        assert_eq!(all("tool:bash:.*"), but("bash"));
        assert_eq!(all("tool:(bash|x):(a|.*)"), but("bash"));
        assert_eq!(all("tool:b.*"), but("bash"));
        assert_eq!(all("(?-s)tool:bash:.*"), TOOLS, "a newline is none of those");
        assert_eq!(all("tool:bash:.+"), TOOLS, "an empty command");
        assert_eq!(all("tool:bash:[^\u{1F600}]*"), TOOLS);
        assert_eq!(all("tool:bash:(rm|ls).*"), TOOLS);
        assert_eq!(all(r"tool:bash:(.*\b.*|.*)"), TOOLS, "what is not known is shown");
        assert_eq!(all(".*"), [""; 0]);
        assert_eq!(shown(&json!({"default": "ask"})), TOOLS);
        assert_eq!(shown(&json!({"default": "ask", "deny": ["tool:git:.*"]})), but("git_push"));
        assert_eq!(shown(&json!({"allow": ["tool:view:src/.*"]})), ["view", "one_of_tomorrow"]);
        assert_eq!(shown(&json!({"ask": ["(?i)TOOL:VIEW:x"]})), ["view", "one_of_tomorrow"]);
        assert_eq!(shown(&json!({"allow": [".*x"]})), TOOLS);
        assert_eq!(shown(&json!({"allow": ["nonsense"]})), [""; 0]);
        assert_eq!(shown(&json!({"ask": ["tool:git:push origin main"]})), ["git_push", "one_of_tomorrow"]);
    }

    #[test]
    fn a_command_that_only_writes_a_file_is_one_too() {
        let spec = json!({"allow": ["tool:create_file:.*"]});
        let profile = Profile::new(ProfileSpec::from_json(spec.as_object().unwrap()).unwrap()).unwrap();
        let decision = profile.judge("tool:bash:> x").decision;
        assert_eq!(decision, chorus_proto::methods::permissions::Decision::Allow);
        assert_eq!(shown(&spec), ["create_file", "bash", "one_of_tomorrow"]);
    }
}
