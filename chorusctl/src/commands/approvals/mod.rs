//! `chorusctl approvals`: one module per subcommand; the default is `list`.

pub mod approve;
pub mod deny;
pub mod format;
pub mod list;

group! {
    /// See what waits for an answer, and answer it
    enum Verb or list {
        /// Show what waits for an answer; the same as no command
        List(list::Args),
        /// Let an action be done, once or from now on
        Approve(approve::Args),
        /// Refuse an action
        Deny(deny::Args),
    }
}
