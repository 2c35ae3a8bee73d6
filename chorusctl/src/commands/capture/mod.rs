//! `chorusctl capture`: one module per subcommand.

pub mod exclude;
pub mod forget;
pub mod off;
pub mod on;
pub mod pause;
mod report;
pub mod resume;
pub mod status;

group! {
    /// Keep what other coding agents say, as they say it
    ///
    /// Conversations of Claude Code, Codex, Gemini CLI, opencode, GitHub Copilot CLI, goose, pi, OpenClaw, Hermes and Cursor's agent are saved as sessions
    /// while they are held, and those that are there already when capture is turned on. They stay when the program deletes its transcripts, and can be found, shown and continued like all sessions. Capture
    /// only reads the files of these programs. It is off until you turn it on.
    enum Verb or only status {
        /// Turn capture on, and save what is there
        On(on::Args),
        /// Turn capture off; what was captured stays
        Off(off::Args),
        /// Show what is captured and what could not be read (default)
        Status(status::Args),
        /// Leave out a project, or transcripts
        Exclude(exclude::Args),
        /// Delete a conversation, and never capture it again
        Forget(forget::Args),
        /// Capture nothing for a while
        Pause(pause::Args),
        /// Continue after a pause
        Resume(resume::Args),
    }
}
