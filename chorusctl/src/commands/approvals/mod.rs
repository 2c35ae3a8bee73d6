//! `chorusctl approvals`: one module per subcommand; the default is `list`.

pub mod approve;
pub mod deny;
pub mod format;
pub mod list;

group! {
    /// List and answer pending approvals
    enum Verb or list {
        /// List pending approvals (default)
        List(list::Args),
        /// Approve an action, once or always
        Approve(approve::Args),
        /// Deny an action
        Deny(deny::Args),
    }
}
