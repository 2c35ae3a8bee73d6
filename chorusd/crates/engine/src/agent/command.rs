//! The commands that can be sent to an agent, each with the type of its reply.

use chorus_agent_core::compaction_extraction::ExtractionResult;
use chorus_agent_core::context::{PageBudget, PageRange};
use chorus_agent_core::effect::CallModel;
use chorus_agent_core::event::{
    AgentCommand, BegunByCompaction, CommandOutcome, CompactedContext, CompactionSave, ContextDraft, ContextPage,
    EditedNotes, Restore, RestoredContext, Resume, RewoundContext, SavedContext, UndoContinuation,
};
use chorus_agent_core::interruption_reason::Interruption;
use chorus_agent_core::turn::TurnRequest;
use chorus_base::Ticks;
use chorus_proto::methods::context::{AppendResult, ClearResult};
use chorus_proto::methods::send::SendResult;
use chorus_proto::{Session, Trigger};
use chorus_session::notes::NoteEdit;
use chorus_session::stored_message::StoredMessage;
use tokio::sync::oneshot;
use uuid::Uuid;

/// A command to an agent whose reply is an `R`.
#[derive(Debug)]
pub struct Command<R> {
    pub(super) command: AgentCommand,
    /// Takes the reply out of the outcome; `None` if it is the outcome of another command.
    pub(super) take_reply: fn(CommandReply) -> Option<R>,
}

/// The outcome of a command, and for [`hold`] the guard.
#[derive(Debug)]
pub(super) struct CommandReply {
    pub(super) outcome: CommandOutcome,
    pub(super) hold: Option<HoldGuard>,
}

/// Keeps an agent locked; it is unlocked when the guard is dropped.
#[derive(Debug)]
pub struct HoldGuard {
    _release: oneshot::Sender<()>,
}

impl HoldGuard {
    /// Returns a guard, and the receiver that ends when it is dropped.
    pub(super) fn new() -> (Self, oneshot::Receiver<()>) {
        let (release, dropped) = oneshot::channel();
        (Self { _release: release }, dropped)
    }
}

/// The reply to [`compact`].
#[derive(Debug)]
pub enum CompactionOutcome {
    /// A fresh context continues from the live one, which was saved.
    Compacted(CompactedContext),
    /// The context has changed since it was saved; `replaced` says whether another one has taken its place.
    ContextMovedOn { replaced: bool },
}

/// The reply to [`uncompact`].
#[derive(Debug)]
pub enum UncompactOutcome {
    Uncompacted(CompactedContext),
    /// The last compaction was by hand.
    ByHand(BegunByCompaction),
}

/// The reply to [`expire`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiryOutcome {
    /// The context has ended, or its deadline was another one by then.
    Settled,
    /// A turn runs, so the context did not expire.
    TurnRunning,
}

/// Defines a constructor for each command. The arms say which outcome belongs to it, and what the reply is.
macro_rules! commands {
    ($(
        $(#[$doc:meta])*
        $name:ident($($param:ident: $type:ty),*) -> $reply:ty {
            $command:expr; $($outcome:pat => $value:expr),+
        }
    )*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name($($param: $type),*) -> Command<$reply> {
                let take_reply = |reply: CommandReply| match reply.outcome {
                    $($outcome => Some($value),)+
                    _ => None,
                };
                Command { command: $command, take_reply }
            }
        )*
    };
}

commands! {
    append(messages: Vec<StoredMessage>, key: Option<String>) -> AppendResult {
        AgentCommand::Append { messages, key }; CommandOutcome::Appended(result) => result
    }
    /// Starts a turn with the model, or queues it.
    send(turn: TurnRequest) -> SendResult {
        AgentCommand::Send(Box::new(turn)); CommandOutcome::Sent(result) => *result
    }
    /// Ends the running turn. With an id, only if it is that turn, or withdraws that turn if it is queued. Replies with
    /// the turn that is being ended.
    cancel(turn: Option<Uuid>) -> Option<Uuid> {
        AgentCommand::Cancel(turn); CommandOutcome::Cancelled(turn) => turn
    }
    /// Removes this turn from the queue of waiting turns.
    cancel_queued(turn: Uuid) -> Option<Uuid> {
        AgentCommand::CancelQueued(turn); CommandOutcome::Cancelled(turn) => turn
    }
    /// Ends the running turn and refuses the queued ones because the daemon stops.
    end_turns() -> () {
        AgentCommand::EndTurns; CommandOutcome::Done => ()
    }
    /// Ends the running turn, since the store can no longer be reached.
    end_turn_without_store() -> () {
        AgentCommand::EndTurnWithoutStore; CommandOutcome::Done => ()
    }
    /// Makes the actor load the context and close a turn that a crash left open.
    wake() -> () {
        AgentCommand::Wake; CommandOutcome::Done => ()
    }
    read_page(pick: PageRange, budget: PageBudget) -> ContextPage {
        AgentCommand::ReadPage { pick, budget }; CommandOutcome::Page(page) => page
    }
    /// Returns what the next model call would be made of.
    window() -> CallModel {
        AgentCommand::Window; CommandOutcome::Window(call) => *call
    }
    /// Returns the context as a save would write it, dated by the last message; `None` if it has no messages.
    draft() -> Option<Box<ContextDraft>> {
        AgentCommand::Draft; CommandOutcome::Draft(draft) => draft
    }
    save(description: Option<String>, tags: Vec<String>, clear: bool) -> SavedContext {
        AgentCommand::Save { description, tags, clear }; CommandOutcome::Saved(saved) => saved
    }
    clear(save: bool) -> ClearResult {
        AgentCommand::Clear { save }; CommandOutcome::Cleared(result) => *result
    }
    restore(session: Restore) -> RestoredContext {
        AgentCommand::Restore(Box::new(session)); CommandOutcome::Restored(restored) => restored
    }
    /// Saves the messages that no session holds. `end` clears the context afterwards.
    save_if_unsaved(trigger: Trigger, end: bool) -> Option<Session> {
        AgentCommand::SaveIfUnsaved { trigger, end };
        CommandOutcome::SavedIfUnsaved(session) => session.map(|session| *session)
    }
    /// Saves the messages that no session holds and clears the context, if its deadline is still `due`.
    expire(due: Ticks) -> ExpiryOutcome {
        AgentCommand::Expire { due };
        CommandOutcome::SavedIfUnsaved(_) => ExpiryOutcome::Settled,
        CommandOutcome::TurnRunning => ExpiryOutcome::TurnRunning
    }
    /// Recomputes the deadline after a change of the idle timeout.
    update_idle_timeout() -> () {
        AgentCommand::UpdateIdleTimeout; CommandOutcome::Done => ()
    }
    /// Edits the notes: pins a fact, closes a task and the like.
    edit_notes(edit: NoteEdit) -> EditedNotes {
        AgentCommand::EditNotes(Box::new(edit)); CommandOutcome::NotesEdited(edited) => *edited
    }
    /// Saves the session that a compaction continues from. The context stays.
    save_for_compaction() -> CompactionSave {
        AgentCommand::SaveForCompaction; CommandOutcome::SavedForCompaction(saved) => saved
    }
    /// Fails if a running turn keeps the context from being replaced.
    check_replaceable() -> () {
        AgentCommand::CheckReplaceable; CommandOutcome::Done => ()
    }
    /// Starts a fresh context that continues from a session.
    resume(session: Resume) -> RestoredContext {
        AgentCommand::Resume(Box::new(session)); CommandOutcome::Restored(restored) => restored
    }
    /// Starts a fresh context that continues from the save of the live context, which is the target of the compaction.
    compact(session: Resume) -> CompactionOutcome {
        AgentCommand::Resume(Box::new(session));
        CommandOutcome::Compacted(compacted) => CompactionOutcome::Compacted(compacted),
        CommandOutcome::ContextMovedOn { replaced } => CompactionOutcome::ContextMovedOn { replaced }
    }
    /// Undoes the last compaction in place. If the last one was by hand, replies what undoing that needs.
    uncompact() -> UncompactOutcome {
        AgentCommand::Uncompact;
        CommandOutcome::Uncompacted(uncompacted) => UncompactOutcome::Uncompacted(uncompacted),
        CommandOutcome::BegunByCompaction(begun) => UncompactOutcome::ByHand(begun)
    }
    /// Undoes the compaction by hand that the context began with. Replies with the number of messages, or `None` if
    /// another context has taken its place.
    undo_continuation(undo: UndoContinuation) -> Option<u64> {
        AgentCommand::UndoContinuation(Box::new(undo));
        CommandOutcome::Restored(restored) => Some(restored.messages),
        CommandOutcome::ContextMovedOn { .. } => None
    }
    /// Stores what the model extracted from messages that have left the window.
    apply_extraction(result: ExtractionResult) -> () {
        AgentCommand::ApplyExtraction(Box::new(result)); CommandOutcome::Done => ()
    }
    /// Drops the last user turns from the context.
    rewind(turns: u64) -> RewoundContext {
        AgentCommand::Rewind { turns }; CommandOutcome::Rewound(rewound) => rewound
    }
    /// Brings back the messages that the last rewind dropped.
    unrewind() -> RewoundContext {
        AgentCommand::Unrewind; CommandOutcome::Rewound(rewound) => rewound
    }
    /// Copies this session's messages into the journal, because the session is about to be deleted.
    materialise(session: Uuid) -> () {
        AgentCommand::Materialise(session); CommandOutcome::Materialised => ()
    }
    /// Evicts the context from memory if no request came for a while.
    evict() -> () {
        AgentCommand::Evict; CommandOutcome::Done => ()
    }
}

/// Locks the agent against other requests until the guard is dropped. Fails while a turn runs, unless `ends_turn` is
/// set: then it ends the turn first, for that reason.
#[must_use]
pub fn hold(ends_turn: Option<Interruption>) -> Command<HoldGuard> {
    Command { command: AgentCommand::Hold { ends_turn }, take_reply: |reply| reply.hold }
}
