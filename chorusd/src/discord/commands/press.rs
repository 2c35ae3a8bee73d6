//! Buttons. What a button is for stands in its id, so that those of messages from before a restart still lead somewhere.

use std::sync::Arc;

use chorus_proto::ErrorKind;
use serenity::model::application::ComponentInteraction;
use uuid::Uuid;

use super::call::Asker;
use super::confirm::{Answer, Deed};
use super::reply::Reply;
use super::told::{edit, first, whisper};
use super::{BUSY, DIRECT, agent, asker, context, history, is_ours, known, whole};
use crate::discord::bridge::Bridge;
use crate::discord::rest::interactions::{First, Way};
use crate::failure::{Failure, Result};

/// What a button is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pressed {
    History { agent: Uuid, page: u64 },
    Confirm(Uuid),
    Cancel(Uuid),
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
    if !is_ours(&bridge, guild) {
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
    let done = whole(&bridge, async move { act(what, &by).await }).await;
    match done {
        Ok(reply) => edit(&bridge, &way, &reply).await,
        Err(failure) => whisper(&bridge, &way, &failure).await,
    }
}

async fn act(what: Pressed, by: &Asker) -> Result<Reply> {
    match what {
        Pressed::History { agent, page } => history::turn(by, agent, page).await,
        Pressed::Confirm(id) => match answered(by, id)? {
            Deed::Clear { agent, save } => context::clear_now(by, agent, save).await,
            Deed::Destroy { agent, keep_files } => agent::destroy_now(by, agent, keep_files).await,
        },
        Pressed::Cancel(id) => answered(by, id).map(|_| Reply::new("Nothing was done.")),
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
        for wrong in
            ["", "history", "history:x:1", "history:1", "confirm:", "nothing:1", &format!("history:{agent}:-1")]
        {
            assert_eq!(Pressed::parse(wrong), None, "{wrong}");
        }
    }
}
