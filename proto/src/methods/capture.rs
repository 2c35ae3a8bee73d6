//! `capture.*`: keeps the conversations that other coding agents have on this machine.

use jiff::Timestamp;

use super::{method, wire};

method!(
    /// Turns capture on for sources, and sends `progress` until what is there has been read.
    On = "capture.on", OnParams => StatusResult
);
method!(
    /// Turns capture off. What was captured stays.
    Off = "capture.off", OffParams => StatusResult
);
method!(
    /// Describes what is captured, from where, and what could not be read.
    Status = "capture.status", StatusParams => StatusResult
);
method!(
    /// Leaves out the conversations of a project directory, or the transcripts below a path.
    Exclude = "capture.exclude", ExcludeParams => StatusResult
);
method!(
    /// Deletes a conversation and never captures it again, or lets conversations that were deleted be captured again.
    Forget = "capture.forget", ForgetParams => ForgetResult
);
method!(
    /// Captures nothing until `capture.resume`.
    Pause = "capture.pause", PauseParams => StatusResult
);
method!(
    /// Continues after `capture.pause`, with everything that was written since.
    Resume = "capture.resume", ResumeParams => StatusResult
);

#[wire(params)]
pub struct OnParams {
    /// Names of sources, such as `claude-code`; all of them if empty.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Redact secrets in conversations that are captured for the first time. If it is missing, the setting stays; at first it is true.
    pub redact: Option<bool>,
}

#[wire(params)]
pub struct OffParams {
    /// Names of sources; all of them if empty.
    #[serde(default)]
    pub sources: Vec<String>,
}

#[wire(params)]
pub struct StatusParams {
    /// Names of sources; all of them if empty.
    #[serde(default)]
    pub sources: Vec<String>,
}

#[wire(params)]
pub struct ExcludeParams {
    /// An absolute path.
    pub path: String,
    /// Remove it from the excluded paths.
    #[serde(default)]
    pub remove: bool,
}

#[wire(params)]
pub struct ForgetParams {
    /// A session of a conversation, or the id that its program gives it; with `undo`, also a session in the trash. Without one,
    /// `undo` lifts all.
    pub conversation: Option<String>,
    /// Capture it again.
    #[serde(default)]
    pub undo: bool,
}

#[wire(PartialEq, Eq)]
pub struct ForgetResult {
    /// Conversations that are not captured any more, or again.
    pub conversations: u64,
    /// Sessions that were moved to the trash.
    pub sessions: u64,
    /// The id that its program gives the conversation, if there is one. `undo` takes it.
    #[omit_empty]
    pub conversation: Option<String>,
}

#[wire(params)]
pub struct PauseParams {}

#[wire(params)]
pub struct ResumeParams {}

#[wire(PartialEq, Eq)]
pub struct StatusResult {
    pub paused: bool,
    pub redact: bool,
    pub excluded: Vec<String>,
    /// Files that are known to have changed and are not yet read.
    pub pending: u64,
    pub sources: Vec<SourceStatus>,
}

/// A program whose conversations can be captured.
#[wire(PartialEq, Eq)]
pub struct SourceStatus {
    /// Its name, as in `source.program` of a session.
    pub source: String,
    pub on: bool,
    /// The directories where it keeps conversations. One that does not exist yet is included.
    pub places: Vec<String>,
    /// One of these directories exists.
    #[omit_empty]
    pub found: bool,
    /// Transcripts that were read.
    pub files: u64,
    pub conversations: u64,
    pub messages: u64,
    /// When a transcript was last written; null if there is none.
    pub last_written_at: Option<Timestamp>,
    /// Set if the program was used long after a transcript was last written: when that was. Its conversations are probably elsewhere
    /// now.
    #[omit_empty]
    pub used_since: Option<Timestamp>,
    /// Lines that could not be read. Those that are not part of a conversation do not count.
    pub skipped_lines: u64,
    /// One of these lines, in the transcript that was written last.
    #[omit_empty]
    pub skipped: Option<UnreadLine>,
    /// Transcripts that could not be captured.
    pub failed: u64,
    /// How many of them were read but could not be saved.
    #[omit_empty]
    pub unsaved: Option<u64>,
    /// The newest failure, rather one of a transcript that could not be read.
    #[omit_empty]
    pub failure: Option<CaptureFailure>,
    /// Directories of transcripts that could not be listed.
    #[omit_empty]
    pub unreadable: Vec<CaptureFailure>,
    /// The transcripts that the program will delete soon, if it deletes old ones.
    #[omit_empty]
    pub deletion: Option<UpcomingDeletion>,
}

/// A line of a transcript that could not be read.
#[wire(PartialEq, Eq)]
pub struct UnreadLine {
    pub path: String,
    /// Starts at 1.
    pub line: u64,
    pub reason: String,
}

/// A transcript that could not be captured, or a directory that could not be listed.
#[wire(PartialEq, Eq)]
pub struct CaptureFailure {
    pub path: String,
    pub reason: String,
}

/// The transcripts that a program deletes because they are old.
#[wire(PartialEq, Eq)]
pub struct UpcomingDeletion {
    /// Age in days at which the program deletes a transcript.
    pub after_days: u64,
    /// The next days for which `transcripts` are counted.
    pub within_days: u64,
    /// Transcripts that will be deleted.
    pub transcripts: u64,
    /// How many of them were not captured.
    pub not_captured: u64,
}
