//! A profile as it is written: in config.toml, or inline in agent.json.

use std::fmt;

use chorus_proto::methods::permissions::{BashMode, Decision};
use serde_json::{Map, Value, json};

/// More rules than anybody reads, and fewer than make a check slow.
pub(super) const MAX_RULES: usize = 1000;
/// Bytes of one pattern.
pub(super) const MAX_PATTERN: usize = 4096;

/// Every key of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
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

impl Default for Spec {
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
pub struct Place {
    pub key: String,
    /// In a list, from 0.
    pub index: Option<usize>,
}

/// What is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `None`: the whole of it.
    pub place: Option<Place>,
    /// To be read after the place.
    pub what: String,
}

impl Problem {
    /// Something wrong with `key`, or with one entry of it.
    pub fn new(key: &str, index: Option<usize>, what: impl Into<String>) -> Self {
        Self { place: Some(Place { key: key.to_owned(), index }), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            None => write!(f, "{}", self.what),
            Some(Place { key, index: None }) => write!(f, "`{key}` {}", self.what),
            Some(Place { key, index: Some(index) }) => write!(f, "`{key}[{index}]` {}", self.what),
        }
    }
}

impl Spec {
    /// Reads a profile; keys that are left out have the values of an empty one.
    ///
    /// # Errors
    /// An unknown key or a value that does not fit.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        for (key, value) in map {
            let wrong = |what: &str| Problem::new(key, None, what);
            match key.as_str() {
                "deny" => spec.deny = patterns(key, value)?,
                "ask" => spec.ask = patterns(key, value)?,
                "allow" => spec.allow = patterns(key, value)?,
                "always" => spec.always = patterns(key, value)?,
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
                "examples" => spec.examples = examples(key, value)?,
                _ => {
                    let known = ["deny", "ask", "allow", "always", "default", "bash", "network", "examples"];
                    return Err(wrong(&format!("is no key of a profile ({})", known.join(", "))));
                }
            }
        }
        if spec.deny.len() + spec.ask.len() + spec.allow.len() + spec.always.len() > MAX_RULES {
            return Err(Problem { place: None, what: format!("has more than {MAX_RULES} patterns") });
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

fn patterns(key: &str, value: &Value) -> Result<Vec<String>, Problem> {
    let list = value.as_array().ok_or_else(|| Problem::new(key, None, "must be a list of regular expressions"))?;
    let pattern = |(index, pattern): (usize, &Value)| {
        let wrong = |what: String| Problem::new(key, Some(index), what);
        let text = pattern.as_str().ok_or_else(|| wrong("must be a regular expression in quotes".into()))?;
        if text.len() > MAX_PATTERN {
            return Err(wrong(format!("is longer than {MAX_PATTERN} bytes")));
        }
        Ok(text.to_owned())
    };
    list.iter().enumerate().map(pattern).collect()
}

fn examples(key: &str, value: &Value) -> Result<Vec<(String, Decision)>, Problem> {
    let list = value.as_array().ok_or_else(|| Problem::new(key, None, "must be a list"))?;
    let example = |(index, example): (usize, &Value)| {
        let action = example.get("action").and_then(Value::as_str);
        let decision = match example.get("decision").and_then(Value::as_str) {
            Some("deny") => Some(Decision::Deny),
            Some("ask") => Some(Decision::Ask),
            Some("allow") => Some(Decision::Allow),
            _ => None,
        };
        action.map(str::to_owned).zip(decision).ok_or_else(|| {
            Problem::new(key, Some(index), "must have an `action`, and a `decision`: \"deny\", \"ask\" or \"allow\"")
        })
    };
    list.iter().enumerate().map(example).collect()
}
