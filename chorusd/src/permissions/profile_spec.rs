//! A profile as it is written: in config.toml, or inline in agent.json.

use std::fmt;

use chorus_proto::methods::permissions::{BashMode, Decision};
use serde_json::{Map, Value, json};

/// More rules than anybody reads, and fewer than make a check slow.
pub(super) const MAX_RULES: usize = 1000;
/// Bytes of one pattern.
pub(super) const MAX_PATTERN_LEN: usize = 4096;

/// Every key of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSpec {
    pub deny: Vec<String>,
    pub ask: Vec<String>,
    pub allow: Vec<String>,
    /// Whole actions, no patterns: allowed where all else would have them asked about.
    pub always: Vec<String>,
    /// Where nothing matches; never `Allow`.
    pub default: Decision,
    pub bash: BashMode,
    pub network: bool,
    /// Actions with the decision they must get, checked when the profile is loaded.
    pub examples: Vec<(String, Decision)>,
}

impl Default for ProfileSpec {
    /// Everything is denied.
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

/// Where in a profile something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileLocation {
    pub key: String,
    /// In a list, from 0.
    pub index: Option<usize>,
}

/// What is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    /// `None`: the whole of it.
    pub location: Option<ProfileLocation>,
    /// To be read after the place.
    pub message: String,
}

impl ProfileError {
    /// Something wrong with `key`, or with one entry of it.
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
    /// Reads a profile; keys that are left out have the values of an empty one.
    ///
    /// # Errors
    /// An unknown key or a value that does not fit.
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
                    return Err(wrong(&format!("is no key of a profile ({})", known.join(", "))));
                }
            }
        }
        if spec.deny.len() + spec.ask.len() + spec.allow.len() + spec.always.len() > MAX_RULES {
            return Err(ProfileError { location: None, message: format!("has more than {MAX_RULES} patterns") });
        }
        Ok(spec)
    }

    /// All keys, as [`Spec::read`] takes them.
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
