//! Edits of a context that add no messages: of its notes, and rewinds. Part of the state machine.

use chorus_base::error::{Error, Result};
use chorus_proto::{ErrorKind, EventType};
use chorus_session::notes::{NoteEdit, NoteError, NoteList};
use serde_json::json;

use super::context::{Context, context_from_head};
use super::effect::{ContextEdit, ContextHead, Edit, Effect};
use super::event::{CommandOutcome, EditedNotes, RequestMeta, RewoundContext};
use super::state::{ExclusiveOp, State, deadline_of_request, empty_context_error};

impl State {
    /// Edits the notes. If the agent has no context, this starts one, without an idle timer.
    pub(super) fn edit_notes(&mut self, asked: &RequestMeta, edit: NoteEdit, effects: &mut Vec<Effect>) {
        let set = self.context.as_ref().map(|context| context.working_set.clone()).unwrap_or_default();
        let applied = match edit.apply(&set) {
            Ok(applied) => applied,
            Err(failure) => {
                effects.push(Effect::Reply(asked.id, Err(note_error(&failure))));
                return;
            }
        };
        if applied.changes.is_empty() {
            let edited = EditedNotes { working_set: Box::new(set), edit: applied };
            effects.push(Effect::Reply(asked.id, Ok(CommandOutcome::NotesEdited(Box::new(edited)))));
            return;
        }
        let begin = self.head_for_edit(asked);
        let mut context = self.context.clone().unwrap_or_else(|| context_from_head(&begin));
        context.edit_notes(&applied.changes);
        let what = ContextEdit::Notes(applied.changes.clone());
        let working_set = Box::new(context.working_set.clone());
        let reply = CommandOutcome::NotesEdited(Box::new(EditedNotes { working_set, edit: applied }));
        self.record_edit(asked, begin, context, what, reply, effects);
    }

    /// Returns the head of the context that an edit goes into: the live one, or a new one without an idle timer.
    pub(super) fn head_for_edit(&self, asked: &RequestMeta) -> ContextHead {
        let agent = asked.settings.id;
        match &self.context {
            Some(context) => ContextHead {
                context: context.number,
                agent,
                started_at: context.started_at,
                deadline: context.deadline,
                parent: context.parent,
            },
            None => {
                ContextHead { context: asked.new_context, agent, started_at: asked.now, deadline: None, parent: None }
            }
        }
    }

    /// Drops the last user turns from the context. Until the next message they can be brought back.
    pub(super) fn rewind(&mut self, asked: &RequestMeta, turns: u64, effects: &mut Vec<Effect>) {
        let Some(context) = self.context.as_ref().filter(|context| context.totals.messages > 0) else {
            effects.push(Effect::Reply(asked.id, Err(empty_context_error(asked))));
            return;
        };
        let Some(keep) = context.rewind_index(turns) else {
            effects.push(Effect::Reply(asked.id, Err(rewind_too_far_error(asked, context, turns))));
            return;
        };
        let mut after = context.clone();
        after.rewind(keep);
        let moved = context.totals.messages - after.totals.messages;
        self.finish_rewind(
            asked,
            after,
            ContextEdit::Rewind { keep: keep as u64, saved: context.saved },
            moved,
            effects,
        );
    }

    /// Undoes the last rewind.
    pub(super) fn unrewind(&mut self, asked: &RequestMeta, effects: &mut Vec<Effect>) {
        let before = self.context.as_ref().map_or(0, |context| context.totals.messages);
        let mut after = self.context.clone();
        if !after.as_mut().is_some_and(Context::unrewind) {
            let failure = Error::new(ErrorKind::Denied, format!("{} has no rewind to undo", asked.settings.name))
                .hint("a rewind can only be undone before the next message");
            effects.push(Effect::Reply(asked.id, Err(failure)));
            return;
        }
        if let Some(after) = after {
            let moved = after.totals.messages - before;
            self.finish_rewind(asked, after, ContextEdit::Unrewind, moved, effects);
        }
    }

    fn finish_rewind(
        &mut self,
        asked: &RequestMeta,
        mut context: Context,
        what: ContextEdit,
        moved: u64,
        effects: &mut Vec<Effect>,
    ) {
        // A context without messages does not expire.
        context.deadline = deadline_of_request(asked).filter(|_| context.totals.messages > 0);
        context.last_activity_at = asked.now;
        let reply =
            CommandOutcome::Rewound(RewoundContext { moved_messages: moved, messages: context.totals.messages });
        let begin = self.head_for_edit(asked);
        self.record_edit(asked, begin, context, what, reply, effects);
    }

    pub(super) fn record_edit(
        &mut self,
        asked: &RequestMeta,
        begin: ContextHead,
        context: Context,
        what: ContextEdit,
        reply: CommandOutcome,
        effects: &mut Vec<Effect>,
    ) {
        if self.context.is_none() {
            self.next_record = 0;
        }
        let number = self.next_record;
        self.next_record = number.saturating_add(1);
        effects.push(Effect::RecordEdit(Box::new(Edit {
            head: begin,
            record_number: number,
            edit: what,
            totals: context.totals,
            saved: context.saved,
            deadline: context.deadline,
        })));
        self.exclusive = Some(ExclusiveOp::Changing { request: asked.id, context: Box::new(context), reply });
    }

    pub(super) fn on_edit_recorded(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(ExclusiveOp::Changing { request, context, reply }) = self.exclusive.take() else { return };
        if result.is_ok() {
            let before = self.context.replace(*context).map_or(0, |context| context.totals.messages);
            if let CommandOutcome::Rewound(RewoundContext { moved_messages, messages }) = &reply {
                let key = if *messages < before { "removed" } else { "restored" };
                let data = json!({key: moved_messages, "messages": messages});
                effects.push(Effect::EmitEvent(EventType::ContextRewound, data));
            }
        }
        effects.push(Effect::Reply(request, result.map(|()| reply)));
    }
}

/// Returns the error for an edit of notes that is impossible.
fn note_error(failure: &NoteError) -> Error {
    let list = "list notes with their numbers: chorusctl notes list";
    match failure {
        NoteError::NotFound(text) => Error::new(ErrorKind::NotFound, format!("no note {text:?}")).hint(list),
        NoteError::NeedsLetter(number) => Error::invalid(format!("note {number} is ambiguous: a letter is missing"))
            .hint(format!("d{number} is a decision, t{number} a task, f{number} a fact, p{number} a file")),
        NoteError::WrongKind { number, list: NoteList::Conflicts } => Error::invalid(format!("{number} is a conflict"))
            .hint(format!(
                "resolve it: chorusctl notes resolve {number} --keep A, or remove it: chorusctl notes rm {number}"
            )),
        NoteError::WrongKind { number, list: NoteList::Decisions } => {
            Error::invalid(format!("{number} is a decision")).hint(format!("remove it: chorusctl notes rm {number}"))
        }
        NoteError::WrongKind { number, .. } => Error::invalid(format!("the command does not fit the note {number}"))
            .hint(format!("change it: chorusctl notes edit {number} TEXT, or remove it: chorusctl notes rm {number}")),
        NoteError::NoSides(number) => Error::invalid(format!("{number} does not name two sides"))
            .hint(format!("remove it, and what does not hold: chorusctl notes rm {number}")),
    }
}

/// Returns the error that a context has fewer turns, with a hint at the session that has the earlier ones.
fn rewind_too_far_error(asked: &RequestMeta, context: &Context, turns: u64) -> Error {
    let (agent, conversation) = (&asked.settings.name, asked.conversation_phrase());
    let queries = context.totals.queries;
    let there_are = format!("{queries} user turn{}", if queries == 1 { "" } else { "s" });
    let failure = |message| Error::new(ErrorKind::InvalidParams, message);
    if queries == 0 && context.parent.is_none() {
        return failure(format!("nothing to undo: {conversation} has no user turn"));
    }
    match context.parent.filter(|_| context.working_set.background.is_some()) {
        Some(parent) => failure(match queries {
            0 => format!("nothing to undo: no user turn since {conversation} was resumed or compacted"),
            _ => format!("only {there_are} since {conversation} was resumed or compacted; cannot rewind {turns}"),
        })
        .hint(format!(
            "restore the earlier session instead (unsaved messages are saved first): chorusctl --agent {agent} \
             restore {parent}"
        )),
        None => failure(format!("only {there_are} in {conversation}; cannot rewind {turns}"))
            .hint("use a smaller number, or clear the conversation: chorusctl context clear"),
    }
}
