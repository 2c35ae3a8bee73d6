//! `chorusctl notes`: one module per subcommand.

pub mod add;
pub mod done;
pub mod edit;
pub mod list;
pub mod print;
pub mod resolve;
pub mod rm;

group! {
    /// Manage facts, decisions, open tasks and conflicts
    ///
    /// Decisions and open tasks are kept through every save, resume and compaction until they are done or removed. Notes that you add are
    /// never changed. A fact is known in this conversation, in every conversation of the agent, or in every conversation of all agents of
    /// its project.
    enum Verb or list {
        /// List facts, decisions, open tasks, files and conflicts
        List(list::Args),
        /// Add a fact, a decision, a task or a file
        Add(add::Args),
        /// Change the text of a note
        Edit(edit::Args),
        /// Mark an open task as done
        Done(done::Args),
        /// Remove a note
        Rm(rm::Args),
        /// Resolve a conflict: keep one side
        Resolve(resolve::Args),
    }
}
