//! Says what a command has changed, for the case that its result cannot be printed: whoever repeats it would change it twice.

use chorus_proto::methods::Method as _;
use chorus_proto::methods::{
    agent, config, context, continuation, conversations, memory, notes, schedule, send, session, session_branching,
};

/// The methods that change something, each with the beginning of a sentence.
const CHANGES: [(&str, &str); 30] = [
    (config::Set::NAME, "the configuration was changed"),
    (context::Append::NAME, "the message was appended"),
    (context::Save::NAME, "the conversation was saved"),
    (context::Clear::NAME, "the conversation was cleared"),
    (context::Restore::NAME, "the conversation was restored"),
    (context::Rewind::NAME, "the conversation was changed"),
    (context::Pin::NAME, "the fact was pinned"),
    (context::Unpin::NAME, "the fact was unpinned"),
    (continuation::Resume::NAME, "the conversation was resumed"),
    (continuation::Compact::NAME, "the conversation was changed"),
    (send::Send::NAME, "the message was sent and answered"),
    (agent::Init::NAME, "the agent was created"),
    (agent::Destroy::NAME, "the agent was destroyed"),
    (conversations::New::NAME, "the conversation was created"),
    (conversations::Rename::NAME, "the conversation was renamed"),
    (conversations::Close::NAME, "the conversation was closed"),
    (memory::Add::NAME, "the memory was added"),
    (memory::Remove::NAME, "the memory was removed"),
    (notes::Add::NAME, "the note was added"),
    (notes::Edit::NAME, "the note was changed"),
    (notes::Rm::NAME, "the note was removed"),
    (schedule::Add::NAME, "the schedule was added"),
    (schedule::Run::NAME, "a run of the schedule was started"),
    (schedule::Pause::NAME, "the schedule was paused"),
    (schedule::Resume::NAME, "the schedule was resumed"),
    (schedule::Remove::NAME, "the schedule was removed"),
    (session::Delete::NAME, "the session was moved to the trash"),
    (session::Tag::NAME, "the session was tagged"),
    (session_branching::Branch::NAME, "the branch was created"),
    (session_branching::Merge::NAME, "the sessions were merged"),
];

/// Returns what a request of `method` has changed; `None` if it only reads.
#[must_use]
pub(crate) fn sentence(method: &str) -> Option<&'static str> {
    CHANGES.iter().find(|(name, _)| *name == method).map(|(_, done)| *done)
}
