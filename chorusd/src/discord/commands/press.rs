//! Buttons. What a button is for stands in its id, so that those of messages from before a restart still lead somewhere.

use std::sync::Arc;

use chorus_proto::ErrorKind;
use serenity::model::application::ComponentInteraction;
use uuid::Uuid;

use super::call::Asker;
use super::confirm::{Answer, Deed};
use super::definitions::Right;
use super::reply::Reply;
use super::told::{edit, first, say};
use super::words::sorry;
use super::{BUSY, DIRECT, agent, asker, context, history, known, whole};
use crate::discord::bridge::Bridge;
use crate::discord::rest::interactions::{First, Way};
use crate::discord::{answer, approvals, rooms};
use crate::failure::{Failure, Result};
use crate::who::Answerer;

/// What a button is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pressed {
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
    /// An answer to an approval, which reads the rest.
    Approval,
}

/// What came of it.
#[derive(Debug)]
enum Done {
    /// The message of the button says something else now.
    Changed(Reply),
    /// Everybody is told.
    Told(String),
    /// Who pressed is told.
    Whispered(String),
    /// The message changes by itself.
    Seen,
}

impl Pressed {
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
            "approve" | "always" | "deny" => Self::Approval,
            _ => return None,
        })
    }
}

/// Carries out what a button is for.
pub async fn press(bridge: Arc<Bridge>, pressed: ComponentInteraction) {
    let ComponentInteraction { id, application_id, data, guild_id, channel_id, member, token, .. } = pressed;
    let way = Way { id, application: application_id, token };
    let Some((guild, member)) = guild_id.zip(member) else {
        first(&bridge, &way, &First::Say(DIRECT.into())).await;
        return;
    };
    if !bridge.rooms.serves(guild) {
        return;
    }
    let Some(what) = Pressed::parse(&data.custom_id) else {
        first(&bridge, &way, &First::Say("Chorus does not know this button any more.".into())).await;
        return;
    };
    let Ok(_room) = bridge.slash.room.clone().try_acquire_owned() else {
        first(&bridge, &way, &First::Say(BUSY.into())).await;
        return;
    };
    if !first(&bridge, &way, &First::Update).await {
        return;
    }
    let by = known(asker(&bridge, guild, channel_id, &member), &member).await;
    let done = whole(&bridge, async move { act(what, &data.custom_id, &by).await }).await;
    match done {
        Ok(Done::Changed(reply)) => edit(&bridge, &way, &reply).await,
        Ok(Done::Told(text)) => say(&bridge, &way, &text, false).await,
        Ok(Done::Whispered(text)) => say(&bridge, &way, &text, true).await,
        Ok(Done::Seen) => {}
        Err(failure) => say(&bridge, &way, &sorry(&failure), true).await,
    }
}

async fn act(what: Pressed, id: &str, by: &Asker) -> Result<Done> {
    let who = &by.person.requester;
    match what {
        Pressed::History { agent, page } => history::turn(by, agent, page).await.map(Done::Changed),
        Pressed::Confirm(id) => match answered(by, id)? {
            Deed::Clear { agent, save } => context::clear_now(by, agent, save).await,
            Deed::Destroy { agent, keep_files } => agent::destroy_now(by, agent, keep_files).await,
        }
        .map(Done::Changed),
        Pressed::Cancel(id) => answered(by, id).map(|_| Done::Changed(Reply::new("Nothing was done."))),
        Pressed::Stop { turn } => {
            answer::stop(&by.bridge, turn, who, by.person.rights.changes()).await.map(|()| Done::Seen)
        }
        Pressed::Restore { session } => {
            by.note(&*by.agent(None)?, "context.restore", Right::Change).await?;
            rooms::restore(&by.bridge, by.channel, &session.to_string()).await.map(Done::Told)
        }
        Pressed::Approval => {
            let by_whom = Answerer { who: who.clone(), approver: by.person.rights.approver };
            approvals::pressed(&by.bridge, id, &by_whom).await.map(Done::Whispered)
        }
    }
}

/// What was asked under this id, where it is theirs to answer.
fn answered(by: &Asker, id: Uuid) -> Result<Deed> {
    match by.bridge.slash.asked.take(id, by.ops().clock.ticks(), &by.person.requester) {
        Answer::Yes(deed) => Ok(deed),
        Answer::NotTheirs => {
            Err(Failure::new(ErrorKind::Denied, "somebody else was asked that").hint("run the command yourself"))
        }
        Answer::Over => Err(Failure::new(ErrorKind::Expired, "that was answered already, or too late")
            .hint("run the command again; a question is open for a minute, and not after a restart")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_buttons_say_all_and_are_short_enough() {
        let (agent, page) = (Uuid::from_u128(7), u64::MAX);
        let id = history::button_id(agent, page);
        assert!(id.len() <= 100);
        assert_eq!(Pressed::parse(&id), Some(Pressed::History { agent, page }));
        assert_eq!(Pressed::parse(&format!("confirm:{agent}")), Some(Pressed::Confirm(agent)));
        assert_eq!(Pressed::parse(&format!("cancel:{agent}")), Some(Pressed::Cancel(agent)));
        assert_eq!(Pressed::parse(&format!("stop:{agent}")), Some(Pressed::Stop { turn: agent }));
        assert_eq!(Pressed::parse(&format!("restore:{agent}")), Some(Pressed::Restore { session: agent }));
        for answer in ["approve", "always", "deny"] {
            assert_eq!(Pressed::parse(&format!("{answer}:k7mq2x:01234567")), Some(Pressed::Approval));
        }
        for wrong in
            ["", "history", "history:x:1", "history:1", "confirm:", "nothing:1", &format!("history:{agent}:-1")]
        {
            assert_eq!(Pressed::parse(wrong), None, "{wrong}");
        }
    }
}
