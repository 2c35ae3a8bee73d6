//! What a message of a channel comes to.

use serde::{Deserialize, Serialize};
use serenity::model::channel::{Attachment, ChannelMention, Message, MessageType};
use serenity::model::event::MessageUpdateEvent;
use serenity::model::id::{GuildId, RoleId};
use serenity::model::user::User;

use super::text::{Names, one_line, readable};
use crate::discord::bridge::Bridge;
use crate::discord::person;
use crate::who::Requester;

/// What somebody asks, as it is kept until it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    pub by: Requester,
}

/// A file that came with it, where Discord has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub name: String,
    /// In bytes.
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub url: String,
}

/// What a message is to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Not for it: another program's, Discord's own, its own.
    Nothing,
    /// Somebody wrote, and what is kept from the application.
    Unread,
    Asked(Asked),
}

/// Whether a person wrote this themselves.
fn is_said(message: &Message) -> bool {
    let said = matches!(message.kind, MessageType::Regular | MessageType::InlineReply);
    said && !message.author.bot && !message.author.system && message.webhook_id.is_none()
}

/// What a message comes to. `guild`: where its channel is.
#[must_use]
pub fn heard(bridge: &Bridge, guild: GuildId, message: &Message) -> Heard {
    if !is_said(message) {
        return Heard::Nothing;
    }
    let names = names(bridge, guild, &message.mentions, &message.mention_roles, &message.mention_channels);
    let mut parts: Vec<String> = Vec::new();
    parts.extend(Some(readable(&message.content, &names)).filter(|text| !text.trim().is_empty()));
    let mut files: Vec<File> = message.attachments.iter().map(file).collect();
    for forwarded in &message.message_snapshots {
        let quoted = readable(&forwarded.content, &names).lines().map(|line| format!("> {line}\n")).collect::<String>();
        parts.push(format!("[forwarded]\n{}", quoted.trim_end()));
        files.extend(forwarded.attachments.iter().map(file));
    }
    parts.extend(message.sticker_items.iter().map(|sticker| format!("[sticker: {}]", one_line(&sticker.name))));
    let question = message.poll.as_ref().and_then(|poll| poll.question.text.as_deref());
    parts.extend(question.map(|question| format!("[poll: {}]", one_line(question))));
    if parts.is_empty() && files.is_empty() {
        return Heard::Unread;
    }
    let member = message.member.as_deref();
    let nick = member.and_then(|member| member.nick.as_deref());
    let roles = member.map(|member| member.roles.as_slice()).unwrap_or_default();
    let by = person::requester(bridge, guild, &message.author, nick, roles);
    Heard::Asked(Asked { text: parts.join("\n\n"), files, by })
}

/// What a message that was `before` asks after a change; `None`: the same.
#[must_use]
pub fn changed(bridge: &Bridge, guild: GuildId, before: &Asked, event: &MessageUpdateEvent) -> Option<Asked> {
    let empty = Vec::new();
    let mut after = before.clone();
    if let Some(content) = &event.content {
        let names = names(
            bridge,
            guild,
            event.mentions.as_ref().unwrap_or(&empty),
            event.mention_roles.as_deref().unwrap_or_default(),
            event.mention_channels.as_deref().unwrap_or_default(),
        );
        after.text = readable(content, &names);
    }
    if let Some(attachments) = &event.attachments {
        after.files = attachments.iter().map(file).collect();
    }
    let something = !after.text.trim().is_empty() || !after.files.is_empty();
    (something && after != *before).then_some(after)
}

fn names(bridge: &Bridge, guild: GuildId, people: &[User], roles: &[RoleId], channels: &[ChannelMention]) -> Names {
    Names {
        people: people.iter().map(|user| (user.id.get(), called(user).to_owned())).collect(),
        roles: roles
            .iter()
            .filter_map(|role| Some((role.get(), bridge.guilds.ids_and_names(guild, &[*role]).into_iter().nth(1)?)))
            .collect(),
        channels: channels.iter().map(|channel| (channel.id.get(), channel.name.clone())).collect(),
    }
}

/// What others call somebody whose name in the server is not known.
fn called(user: &User) -> &str {
    user.global_name.as_deref().unwrap_or(&user.name)
}

fn file(attachment: &Attachment) -> File {
    File {
        name: one_line(&attachment.filename),
        size: attachment.size.into(),
        kind: attachment.content_type.clone(),
        url: attachment.url.clone(),
    }
}
