//! Parses the payloads of the gateway.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serenity::model::event::{
    ChannelCreateEvent, ChannelDeleteEvent, ChannelUpdateEvent, Event, GatewayEvent, GuildCreateEvent,
    GuildDeleteEvent, GuildRoleCreateEvent, GuildRoleDeleteEvent, GuildRoleUpdateEvent, GuildUpdateEvent,
    InteractionCreateEvent, MessageCreateEvent, MessageDeleteBulkEvent, MessageDeleteEvent, MessageUpdateEvent,
    ReadyEvent, UnknownEvent,
};

use crate::rest;

/// The fields that every payload has.
#[derive(Debug, Deserialize)]
struct PayloadHeader {
    op: u8,
    #[serde(default)]
    t: Option<String>,
    #[serde(default)]
    s: Option<u64>,
}

/// A payload of the gateway.
#[derive(Debug)]
pub(super) enum Payload {
    /// The session was resumed; every missed event has been replayed.
    Resumed,
    Dispatch {
        event: Box<Event>,
        seq: u64,
    },
    /// An event that cannot be parsed: its type and the error, without its content.
    Unreadable {
        kind: String,
        why: String,
        seq: Option<u64>,
    },
    /// The first payload of a connection.
    Hello,
    /// A payload that keeps the connection up; the library deals with it.
    Control,
}

pub(super) fn parse_payload(text: &str) -> Payload {
    let head: PayloadHeader = match serde_json::from_str(text) {
        Ok(head) => head,
        Err(e) => return Payload::Unreadable { kind: "?".into(), why: rest::describe_json_error(&e), seq: None },
    };
    match head.op {
        0 => {}
        10 => return Payload::Hello,
        _ => return Payload::Control,
    }
    if head.t.as_deref() == Some("RESUMED") {
        return Payload::Resumed;
    }
    match serde_json::from_str::<GatewayEvent>(text) {
        Ok(GatewayEvent::Dispatch(seq, Event::Unknown(event))) => match parse_error(&event) {
            Some(why) => Payload::Unreadable { kind: event.kind, why, seq: Some(seq) },
            None => Payload::Dispatch { event: Box::new(Event::Unknown(event)), seq },
        },
        Ok(GatewayEvent::Dispatch(seq, event)) => Payload::Dispatch { event: Box::new(event), seq },
        Ok(_) => Payload::Control,
        Err(e) => Payload::Unreadable {
            kind: head.t.unwrap_or_else(|| "?".into()),
            why: rest::describe_json_error(&e),
            seq: head.s,
        },
    }
}

/// serenity treats an event that it cannot parse like one that it does not know. Returns the parse error, or `None` if
/// the event is unknown.
fn parse_error(event: &UnknownEvent) -> Option<String> {
    fn check<T: DeserializeOwned>(event: &UnknownEvent) -> Option<String> {
        serde_json::from_value::<T>(event.value.clone()).err().map(|e| rest::describe_json_error(&e))
    }
    match event.kind.as_str() {
        "READY" => check::<ReadyEvent>(event),
        "GUILD_CREATE" => check::<GuildCreateEvent>(event),
        "GUILD_UPDATE" => check::<GuildUpdateEvent>(event),
        "GUILD_DELETE" => check::<GuildDeleteEvent>(event),
        "GUILD_ROLE_CREATE" => check::<GuildRoleCreateEvent>(event),
        "GUILD_ROLE_UPDATE" => check::<GuildRoleUpdateEvent>(event),
        "GUILD_ROLE_DELETE" => check::<GuildRoleDeleteEvent>(event),
        "CHANNEL_CREATE" => check::<ChannelCreateEvent>(event),
        "CHANNEL_UPDATE" => check::<ChannelUpdateEvent>(event),
        "CHANNEL_DELETE" => check::<ChannelDeleteEvent>(event),
        "MESSAGE_CREATE" => check::<MessageCreateEvent>(event),
        "MESSAGE_UPDATE" => check::<MessageUpdateEvent>(event),
        "MESSAGE_DELETE" => check::<MessageDeleteEvent>(event),
        "MESSAGE_DELETE_BULK" => check::<MessageDeleteBulkEvent>(event),
        "INTERACTION_CREATE" => check::<InteractionCreateEvent>(event),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_those_that_cannot_be_are_named_without_what_they_say() {
        assert!(matches!(parse_payload(r#"{"op":11,"d":null,"s":null,"t":null}"#), Payload::Control));
        assert!(matches!(parse_payload(r#"{"op":0,"s":9,"t":"RESUMED","d":null}"#), Payload::Resumed));
        let unknown = parse_payload(r#"{"op":0,"s":4,"t":"SOMETHING_NEW","d":{"a":1}}"#);
        assert!(
            matches!(&unknown, Payload::Dispatch { event, seq: 4 } if matches!(**event, Event::Unknown(_))),
            "{unknown:?}"
        );
        let deleted =
            parse_payload(r#"{"op":0,"s":5,"t":"MESSAGE_DELETE","d":{"id":"1","channel_id":"2","guild_id":"3"}}"#);
        assert!(
            matches!(&deleted, Payload::Dispatch { event, seq: 5 } if matches!(**event, Event::MessageDelete(_))),
            "{deleted:?}"
        );
        for (broken, kind) in [
            (r#"{"op":0,"s":6,"t":"MESSAGE_CREATE","d":{"id":"a secret"}}"#, "MESSAGE_CREATE"),
            (r#"{"op":0,"s":6,"t":"MESSAGE_CREATE","d":"a secret"}"#, "MESSAGE_CREATE"),
            ("a secret", "?"),
        ] {
            let Payload::Unreadable { kind: named, why, .. } = parse_payload(broken) else {
                panic!("{broken} was read")
            };
            assert!(named == kind && !why.contains("secret"), "{named} {why}");
        }
    }
}
