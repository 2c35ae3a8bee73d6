//! What the gateway says, as events.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serenity::model::event::{
    ChannelCreateEvent, ChannelDeleteEvent, ChannelUpdateEvent, Event, GatewayEvent, GuildCreateEvent,
    GuildDeleteEvent, GuildRoleCreateEvent, GuildRoleDeleteEvent, GuildRoleUpdateEvent, GuildUpdateEvent,
    InteractionCreateEvent, MessageCreateEvent, MessageDeleteBulkEvent, MessageDeleteEvent, MessageUpdateEvent,
    ReadyEvent, UnknownEvent,
};

use crate::discord::rest;

/// The beginning of every event.
#[derive(Debug, Deserialize)]
struct Head {
    op: u8,
    #[serde(default)]
    t: Option<String>,
    #[serde(default)]
    s: Option<u64>,
}

/// One text of the gateway.
#[derive(Debug)]
pub enum Said {
    /// The connection is taken up again, all that was missed has been told.
    Resumed,
    Dispatch {
        event: Box<Event>,
        seq: u64,
    },
    /// An event that cannot be read. Which one, and why: nothing of what it says.
    Unreadable {
        kind: String,
        why: String,
        seq: Option<u64>,
    },
    /// The first word.
    Hello,
    /// What keeps the connection up, which is dealt with elsewhere.
    Own,
}

pub fn read(text: &str) -> Said {
    let head: Head = match serde_json::from_str(text) {
        Ok(head) => head,
        Err(e) => return Said::Unreadable { kind: "?".into(), why: rest::told(&e), seq: None },
    };
    match head.op {
        0 => {}
        10 => return Said::Hello,
        _ => return Said::Own,
    }
    if head.t.as_deref() == Some("RESUMED") {
        return Said::Resumed;
    }
    match serde_json::from_str::<GatewayEvent>(text) {
        Ok(GatewayEvent::Dispatch(seq, Event::Unknown(event))) => match broken(&event) {
            Some(why) => Said::Unreadable { kind: event.kind, why, seq: Some(seq) },
            None => Said::Dispatch { event: Box::new(Event::Unknown(event)), seq },
        },
        Ok(GatewayEvent::Dispatch(seq, event)) => Said::Dispatch { event: Box::new(event), seq },
        Ok(_) => Said::Own,
        Err(e) => Said::Unreadable { kind: head.t.unwrap_or_else(|| "?".into()), why: rest::told(&e), seq: head.s },
    }
}

/// serenity takes an event that it cannot read for one that it does not know. Why it cannot; `None`: it does not know it.
fn broken(event: &UnknownEvent) -> Option<String> {
    fn look<T: DeserializeOwned>(event: &UnknownEvent) -> Option<String> {
        serde_json::from_value::<T>(event.value.clone()).err().map(|e| rest::told(&e))
    }
    match event.kind.as_str() {
        "READY" => look::<ReadyEvent>(event),
        "GUILD_CREATE" => look::<GuildCreateEvent>(event),
        "GUILD_UPDATE" => look::<GuildUpdateEvent>(event),
        "GUILD_DELETE" => look::<GuildDeleteEvent>(event),
        "GUILD_ROLE_CREATE" => look::<GuildRoleCreateEvent>(event),
        "GUILD_ROLE_UPDATE" => look::<GuildRoleUpdateEvent>(event),
        "GUILD_ROLE_DELETE" => look::<GuildRoleDeleteEvent>(event),
        "CHANNEL_CREATE" => look::<ChannelCreateEvent>(event),
        "CHANNEL_UPDATE" => look::<ChannelUpdateEvent>(event),
        "CHANNEL_DELETE" => look::<ChannelDeleteEvent>(event),
        "MESSAGE_CREATE" => look::<MessageCreateEvent>(event),
        "MESSAGE_UPDATE" => look::<MessageUpdateEvent>(event),
        "MESSAGE_DELETE" => look::<MessageDeleteEvent>(event),
        "MESSAGE_DELETE_BULK" => look::<MessageDeleteBulkEvent>(event),
        "INTERACTION_CREATE" => look::<InteractionCreateEvent>(event),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_those_that_cannot_be_are_named_without_what_they_say() {
        assert!(matches!(read(r#"{"op":11,"d":null,"s":null,"t":null}"#), Said::Own));
        assert!(matches!(read(r#"{"op":0,"s":9,"t":"RESUMED","d":null}"#), Said::Resumed));
        let unknown = read(r#"{"op":0,"s":4,"t":"SOMETHING_NEW","d":{"a":1}}"#);
        assert!(
            matches!(&unknown, Said::Dispatch { event, seq: 4 } if matches!(**event, Event::Unknown(_))),
            "{unknown:?}"
        );
        let deleted = read(r#"{"op":0,"s":5,"t":"MESSAGE_DELETE","d":{"id":"1","channel_id":"2","guild_id":"3"}}"#);
        assert!(
            matches!(&deleted, Said::Dispatch { event, seq: 5 } if matches!(**event, Event::MessageDelete(_))),
            "{deleted:?}"
        );
        for (broken, kind) in [
            (r#"{"op":0,"s":6,"t":"MESSAGE_CREATE","d":{"id":"a secret"}}"#, "MESSAGE_CREATE"),
            (r#"{"op":0,"s":6,"t":"MESSAGE_CREATE","d":"a secret"}"#, "MESSAGE_CREATE"),
            ("a secret", "?"),
        ] {
            let Said::Unreadable { kind: named, why, .. } = read(broken) else { panic!("{broken} was read") };
            assert!(named == kind && !why.contains("secret"), "{named} {why}");
        }
    }
}
