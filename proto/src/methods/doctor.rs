//! `doctor`.

use serde::{Deserialize, Serialize};

use super::method;

method!(
    /// Whether everything is as it should be; with `rebuild`, the index is made anew from the files first.
    Doctor = "doctor", DoctorParams => DoctorResult
);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoctorParams {
    /// Make the tables of agents and sessions anew from the directories and session files.
    #[serde(default)]
    pub rebuild: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoctorResult {
    pub checks: Vec<Check>,
    /// What was rebuilt, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<Rebuilt>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
    pub text: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Verdict {
    Ok,
    /// Nothing is lost and everything works, but somebody should look.
    Warn,
    Fail,
    /// Neither good nor bad: how this machine is.
    Info,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rebuilt {
    pub agents: u64,
    pub sessions: u64,
    /// Of the sessions, those whose file cannot be read.
    pub corrupt: u64,
    pub duration_ms: u64,
    /// What the damaged database is called now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
}
