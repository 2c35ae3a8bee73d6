//! `doctor`: checks and repairs.

use super::{method, wire};

method!(
    /// Checks databases, files, models and the machine. With `rebuild`, rebuilds the catalog from the files first. With
    /// `salvage`, makes sessions of everything that is readable in a damaged journal.
    Doctor = "doctor", DoctorParams => DoctorResult
);

#[wire(params)]
pub struct DoctorParams {
    /// Rebuild the tables of agents and sessions from the directories and session files.
    #[serde(default)]
    pub rebuild: bool,
    /// Make sessions of what can still be read of live contexts that are damaged, and restore them.
    pub salvage: bool,
}

#[wire(PartialEq, Eq)]
pub struct DoctorResult {
    pub checks: Vec<Check>,
    /// What was rebuilt, where it was.
    #[omit_empty]
    pub rebuilt: Option<Rebuilt>,
    /// What was salvaged, if that was asked for.
    #[omit_empty]
    pub salvaged: Option<Salvaged>,
}

/// One thing that was looked at.
#[wire(PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
    pub text: String,
    /// What to do about it.
    #[omit_empty]
    pub hint: Option<String>,
}

#[wire(Copy, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    /// Nothing is lost and everything works, but somebody should look.
    Warn,
    Fail,
    /// Neither good nor bad: how this machine is.
    Info,
}

#[wire(Default, PartialEq, Eq)]
pub struct Rebuilt {
    pub agents: u64,
    pub sessions: u64,
    /// Of the sessions, those whose file cannot be read.
    pub corrupt: u64,
    pub duration_ms: u64,
    /// What the damaged database is called now.
    #[omit_empty]
    pub set_aside: Option<String>,
}

#[wire(Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Sessions that were made; they have the tag `salvaged`.
    pub sessions: u64,
    /// Messages in them.
    pub messages: u64,
    /// Messages that the journals counted in what was salvaged. More may be found: those that were rewound are found, too.
    #[omit_empty]
    pub expected: Option<u64>,
    /// Records and messages that could not be read.
    pub unreadable: u64,
    /// Agents whose live context is a salvaged session now.
    pub restored: Vec<String>,
    /// Directories with the damaged files.
    pub set_aside: Vec<String>,
    /// Those of them in which nothing could be read: the files there are the only copy.
    #[omit_empty]
    pub nothing_readable: Vec<String>,
}
