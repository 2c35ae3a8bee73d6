//! Buttons. The custom id of a button says what it does, so that buttons of messages from before a restart still work.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::requester::Answerer;
use chorus_proto::ErrorKind;
use serenity::model::application::ComponentInteraction;
use tokio::time::timeout;
use uuid::Uuid;

use super::command_definition::Right;
use super::confirmation::{ConfirmOutcome, PendingCommand};
use super::interaction_origin::InteractionOrigin;
use super::interaction_sender::{send_edit, send_followup, send_initial_response};
use super::invocation::Caller;
use super::response::{MAX_MESSAGE_CHARS, Response};
use super::text_format::{error_text, truncate};
use super::{BUSY_TEXT, agent, answer_unserved, context, history, run_to_completion};
use crate::app::DiscordApp;
use crate::rest::interactions::{InitialResponse, InteractionRef};
use crate::{approvals, channels, reply};

/// How long the roles of a server are waited for before a form is shown: Discord wants a response within 3 seconds.
const ROLES_TIMEOUT: Duration = Duration::from_millis(1500);

/// What a button does, parsed from its custom id.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ButtonKind {
    History {
        agent: Uuid,
        page: u64,
    },
    Confirm(Uuid),
    Cancel(Uuid),
    Stop {
        turn: Uuid,
    },
    Restore {
        session: Uuid,
    },
    /// An answer to an approval; the approvals module parses the custom id further.
    Approval,
    /// A denial of an approval for which a reason is to be typed.
    AskReason,
}

/// The outcome of a button press.
#[derive(Debug)]
enum ButtonOutcome {
    /// The message of the button gets another text.
    Edited(Response),
    /// Everybody in the channel reads the text.
    Public(String),
    /// Only the person who pressed reads the text.
    Private(String),
    /// No text: the message is edited elsewhere.
    Silent,
}

impl ButtonKind {
    fn parse(id: &str) -> Option<Self> {
        let (kind, rest) = id.split_once(':')?;
        Some(match kind {
            "history" => {
                let (agent, page) = rest.split_once(':')?;
                Self::History { agent: agent.parse().ok()?, page: page.parse().ok()? }
            }
            "confirm" => Self::Confirm(rest.parse().ok()?),
            "cancel" => Self::Cancel(rest.parse().ok()?),
            "stop" => Self::Stop { turn: rest.parse().ok()? },
            "restore" => Self::Restore { session: rest.parse().ok()? },
            "approve" | "always" | "pattern" | "turn" | "deny" => Self::Approval,
            "because" => Self::AskReason,
            _ => return None,
        })
    }
}

/// Handles a press of a button.
pub(crate) async fn handle_button(app: Arc<DiscordApp>, pressed: ComponentInteraction) {
    let ComponentInteraction { id, application_id, data, guild_id, channel_id, member, user, token, .. } = pressed;
    let way = InteractionRef { id, application: application_id, token };
    let origin = match InteractionOrigin::new(&app, guild_id, channel_id, member, user) {
        Ok(origin) => origin,
        Err(unserved) => return answer_unserved(&app, &way, unserved).await,
    };
    let Some(what) = ButtonKind::parse(&data.custom_id) else {
        send_initial_response(&app.rest, &way, &InitialResponse::PrivateMessage("This button no longer works.".into()))
            .await;
        return;
    };
    let Ok(_room) = app.commands.permits.clone().try_acquire_owned() else {
        send_initial_response(&app.rest, &way, &InitialResponse::PrivateMessage(BUSY_TEXT.into())).await;
        return;
    };
    if what == ButtonKind::AskReason {
        send_initial_response(&app.rest, &way, &reason_form(&app, &origin, data.custom_id).await).await;
        return;
    }
    if !send_initial_response(&app.rest, &way, &InitialResponse::DeferUpdate).await {
        return;
    }
    let by = match origin.caller(&app).await {
        Ok(by) => by,
        Err(failure) => return send_followup(&app, &way, &error_text(&*app, &failure), true).await,
    };
    by.find_thread().await;
    let done = run_to_completion(&app.stop, async move { run_button(what, &data.custom_id, &by).await }).await;
    match done {
        Ok(ButtonOutcome::Edited(reply)) => send_edit(&app, &way, &reply).await,
        Ok(ButtonOutcome::Public(text)) => send_followup(&app, &way, &text, false).await,
        Ok(ButtonOutcome::Private(text)) => send_followup(&app, &way, &text, true).await,
        Ok(ButtonOutcome::Silent) => {}
        Err(failure) => send_followup(&app, &way, &error_text(&*app, &failure), true).await,
    }
}

/// Returns the form that asks for the reason of a denial, or a private error for those who may not deny. Discord takes no
/// form after a deferred response, so the roles are not waited for if they take long.
async fn reason_form(app: &Arc<DiscordApp>, origin: &InteractionOrigin, custom_id: String) -> InitialResponse {
    let refusal = |failure: &Error| {
        let text = error_text(&**app, failure);
        InitialResponse::PrivateMessage(truncate(&app.redact(&text), MAX_MESSAGE_CHARS))
    };
    let late = || {
        let late =
            Error::new(ErrorKind::DiscordFailed, "Discord did not return your roles").hint("try again in a moment");
        origin.known_caller(app).ok_or(late)
    };
    let by = match timeout(ROLES_TIMEOUT, origin.caller(app)).await.unwrap_or_else(|_| late()) {
        Ok(by) => by,
        Err(failure) => return refusal(&failure),
    };
    let by_whom = Answerer { requester: by.member.requester.clone(), is_approver: by.member.rights.approver };
    match approvals::ensure_may_deny(by.ops(), &custom_id, &by_whom).await {
        Ok(()) => InitialResponse::Form { custom_id, title: "No", label: "Why not? (for the agent)" },
        Err(failure) => refusal(&by.verify_denial(failure)),
    }
}

async fn run_button(what: ButtonKind, id: &str, by: &Caller) -> Result<ButtonOutcome> {
    let who = &by.member.requester;
    match what {
        ButtonKind::History { agent, page } => history::show_page(by, agent, page).await.map(ButtonOutcome::Edited),
        ButtonKind::Confirm(id) => match take_confirmation(by, id)? {
            PendingCommand::Clear { conversation, save } => context::clear_confirmed(by, conversation, save).await,
            PendingCommand::Destroy { agent, keep_files } => agent::destroy_confirmed(by, agent, keep_files).await,
        }
        .map(ButtonOutcome::Edited),
        ButtonKind::Cancel(id) => {
            take_confirmation(by, id).map(|_| ButtonOutcome::Edited(Response::new("Cancelled. Nothing was changed.")))
        }
        ButtonKind::Stop { turn } => {
            let done =
                reply::stop_turn(by.ops(), &by.app.running_turns, turn, who, by.member.rights.can_change_context())
                    .await;
            done.map_err(|failure| by.verify_denial(failure)).map(|()| ButtonOutcome::Silent)
        }
        ButtonKind::Restore { session } => {
            by.audit(&*by.resolve_agent(None)?, "context.restore", Right::Change).await?;
            channels::restore_session(by.ops(), &by.app.channels, by.channel, &session.to_string(), who)
                .await
                .map(ButtonOutcome::Public)
        }
        ButtonKind::AskReason => Ok(ButtonOutcome::Silent),
        ButtonKind::Approval => {
            let by_whom = Answerer { requester: who.clone(), is_approver: by.member.rights.approver };
            let done = approvals::on_button(by.ops(), id, &by_whom).await;
            done.map_err(|failure| by.verify_denial(failure)).map(ButtonOutcome::Private)
        }
    }
}

/// Takes the confirmation with this id, if it is the caller's to give.
fn take_confirmation(by: &Caller, id: Uuid) -> Result<PendingCommand> {
    match by.app.commands.confirmations.take(id, by.ops().clock.ticks(), &by.member.requester) {
        ConfirmOutcome::Confirmed(deed) => Ok(deed),
        ConfirmOutcome::WrongPerson => Err(Error::new(ErrorKind::Denied, "This confirmation is for someone else")
            .hint("to confirm it yourself, run the command")),
        ConfirmOutcome::Expired => {
            Err(Error::new(ErrorKind::Expired, "This confirmation was already answered or has expired")
                .hint("run the command again and confirm within a minute"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_buttons_say_all_and_are_short_enough() {
        let (agent, page) = (Uuid::from_u128(7), u64::MAX);
        let id = history::page_button_id(agent, page);
        assert!(id.len() <= 100);
        assert_eq!(ButtonKind::parse(&id), Some(ButtonKind::History { agent, page }));
        assert_eq!(ButtonKind::parse(&format!("confirm:{agent}")), Some(ButtonKind::Confirm(agent)));
        assert_eq!(ButtonKind::parse(&format!("cancel:{agent}")), Some(ButtonKind::Cancel(agent)));
        assert_eq!(ButtonKind::parse(&format!("stop:{agent}")), Some(ButtonKind::Stop { turn: agent }));
        assert_eq!(ButtonKind::parse(&format!("restore:{agent}")), Some(ButtonKind::Restore { session: agent }));
        for answer in ["approve", "always", "pattern", "turn", "deny"] {
            assert_eq!(ButtonKind::parse(&format!("{answer}:k7mq2x:01234567")), Some(ButtonKind::Approval));
        }
        for wrong in
            ["", "history", "history:x:1", "history:1", "confirm:", "nothing:1", &format!("history:{agent}:-1")]
        {
            assert_eq!(ButtonKind::parse(wrong), None, "{wrong}");
        }
    }
}
