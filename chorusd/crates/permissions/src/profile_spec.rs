//! A profile as written in config.toml or inline in agent.json.

use std::fmt;

use chorus_proto::methods::permissions::{BashMode, Decision};
use serde_json::{Map, Value, json};

/// Limit on the rules of one profile: more than anybody reads, and few enough to keep checks fast.
pub(super) const MAX_RULES: usize = 1000;
/// Limit on the length of one pattern, in bytes.
pub(super) const MAX_PATTERN_LEN: usize = 4096;

/// All keys of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSpec {
    pub deny: Vec<String>,
    pub ask: Vec<String>,
    pub allow: Vec<String>,
    /// Literal actions (not patterns), which are allowed where the patterns would ask.
    pub always: Vec<String>,
    /// The decision if no pattern matches; never `Allow`.
    pub default: Decision,
    pub bash: BashMode,
    pub network: bool,
    /// Actions with their expected decisions, checked when the profile is loaded.
    pub examples: Vec<(String, Decision)>,
}

impl Default for ProfileSpec {
    /// The profile that denies everything.
    fn default() -> Self {
        Self {
            deny: Vec::new(),
            ask: Vec::new(),
            allow: Vec::new(),
            always: Vec::new(),
            default: Decision::Deny,
            bash: BashMode::Parsed,
            network: false,
            examples: Vec::new(),
        }
    }
}

/// The key, or list entry, that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileLocation {
    pub key: String,
    /// Index in the list, counted from 0.
    pub index: Option<usize>,
}

/// An error in a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    /// `None` if the error concerns the whole profile.
    pub location: Option<ProfileLocation>,
    /// The message, which is printed after the location.
    pub message: String,
}

impl ProfileError {
    /// Creates an error about `key`, or about one entry of its list.
    pub fn new(key: &str, index: Option<usize>, what: impl Into<String>) -> Self {
        Self { location: Some(ProfileLocation { key: key.to_owned(), index }), message: what.into() }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            None => write!(f, "{}", self.message),
            Some(ProfileLocation { key, index: None }) => write!(f, "`{key}` {}", self.message),
            Some(ProfileLocation { key, index: Some(index) }) => write!(f, "`{key}[{index}]` {}", self.message),
        }
    }
}

impl ProfileSpec {
    /// Parses a profile. Missing keys keep the values of [`ProfileSpec::default`].
    pub fn from_json(map: &Map<String, Value>) -> Result<Self, ProfileError> {
        let mut spec = Self::default();
        for (key, value) in map {
            let wrong = |what: &str| ProfileError::new(key, None, what);
            match key.as_str() {
                "deny" => spec.deny = parse_patterns(key, value)?,
                "ask" => spec.ask = parse_patterns(key, value)?,
                "allow" => spec.allow = parse_patterns(key, value)?,
                "always" => spec.always = parse_patterns(key, value)?,
                "default" => {
                    spec.default = match value.as_str() {
                        Some("deny") => Decision::Deny,
                        Some("ask") => Decision::Ask,
                        _ => return Err(wrong("must be \"deny\" or \"ask\"")),
                    }
                }
                "bash" => {
                    spec.bash = match value.as_str() {
                        Some("parsed") => BashMode::Parsed,
                        Some("whole") => BashMode::Whole,
                        _ => return Err(wrong("must be \"parsed\" or \"whole\"")),
                    }
                }
                "network" => spec.network = value.as_bool().ok_or_else(|| wrong("must be true or false"))?,
                "examples" => spec.examples = parse_examples(key, value)?,
                _ => {
                    let known = ["deny", "ask", "allow", "always", "default", "bash", "network", "examples"];
                    return Err(wrong(&format!("is not a key of a profile ({})", known.join(", "))));
                }
            }
        }
        if spec.deny.len() + spec.ask.len() + spec.allow.len() + spec.always.len() > MAX_RULES {
            return Err(ProfileError { location: None, message: format!("has more than {MAX_RULES} patterns") });
        }
        Ok(spec)
    }

    /// Returns all keys in the form that [`ProfileSpec::from_json`] parses.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let examples: Vec<Value> = self
            .examples
            .iter()
            .map(|(action, decision)| json!({"action": action, "decision": decision.as_str()}))
            .collect();
        json!({
            "deny": self.deny, "ask": self.ask, "allow": self.allow, "always": self.always,
            "default": self.default, "bash": self.bash, "network": self.network,
            "examples": examples,
        })
    }
}

fn parse_patterns(key: &str, value: &Value) -> Result<Vec<String>, ProfileError> {
    let list = value.as_array().ok_or_else(|| ProfileError::new(key, None, "must be a list of regular expressions"))?;
    let pattern = |(index, pattern): (usize, &Value)| {
        let wrong = |what: String| ProfileError::new(key, Some(index), what);
        let text = pattern.as_str().ok_or_else(|| wrong("must be a regular expression in quotes".into()))?;
        if text.len() > MAX_PATTERN_LEN {
            return Err(wrong(format!("is longer than {MAX_PATTERN_LEN} bytes")));
        }
        Ok(text.to_owned())
    };
    list.iter().enumerate().map(pattern).collect()
}

fn parse_examples(key: &str, value: &Value) -> Result<Vec<(String, Decision)>, ProfileError> {
    let list = value.as_array().ok_or_else(|| ProfileError::new(key, None, "must be a list"))?;
    let example = |(index, example): (usize, &Value)| {
        let action = example.get("action").and_then(Value::as_str);
        let decision = match example.get("decision").and_then(Value::as_str) {
            Some("deny") => Some(Decision::Deny),
            Some("ask") => Some(Decision::Ask),
            Some("allow") => Some(Decision::Allow),
            _ => None,
        };
        action.map(str::to_owned).zip(decision).ok_or_else(|| {
            ProfileError::new(
                key,
                Some(index),
                "must have an `action`, and a `decision`: \"deny\", \"ask\" or \"allow\"",
            )
        })
    };
    list.iter().enumerate().map(example).collect()
}
