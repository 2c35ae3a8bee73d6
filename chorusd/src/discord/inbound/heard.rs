//! What a message of a channel comes to.

use serde::{Deserialize, Serialize};
use serenity::model::channel::{Attachment, ChannelMention, Message, MessageType};
use serenity::model::event::MessageUpdateEvent;
use serenity::model::id::{GuildId, RoleId};
use serenity::model::user::User;

use super::text::{Names, one_line, quoted, readable};
use crate::discord::bridge::Bridge;
use crate::discord::person;
use crate::who::Requester;

/// Characters of a message that another one answers.
const ANSWERED: usize = 2000;

/// What somebody asks, as it is kept until it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub text: String,
    /// What stands below the text, and stays when that is changed: what it answers, what was forwarded, stickers, a poll.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<String>,
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
    /// It came with the message that this one answers, and stays when this one is changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
}

impl Asked {
    /// The text with what stands below it.
    #[must_use]
    pub fn whole(&self) -> String {
        let text = Some(self.text.as_str()).filter(|text| !text.trim().is_empty());
        text.into_iter().chain(self.below.iter().map(String::as_str)).collect::<Vec<_>>().join("\n\n")
    }

    /// Whether another look at the message found it unchanged.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let files = self.files.len() == other.files.len() && self.files.iter().zip(&other.files).all(|(a, b)| a.is(b));
        self.text == other.text && self.below == other.below && files
    }
}

impl File {
    /// Whether it is the same file. Each time it is told of its address is signed anew.
    fn is(&self, other: &Self) -> bool {
        let place = |file: &Self| file.url.split('?').next().unwrap_or_default().to_owned();
        self.name == other.name && self.size == other.size && place(self) == place(other)
    }
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
#[must_use]
pub fn is_said(message: &Message) -> bool {
    let said = matches!(message.kind, MessageType::Regular | MessageType::InlineReply);
    said && !message.author.bot && !message.author.system && message.webhook_id.is_none()
}

/// Whether there is something to see in a message without a word, a game that others may join, say.
fn is_shown(message: &Message) -> bool {
    !message.embeds.is_empty()
        || !message.components.is_empty()
        || message.activity.is_some()
        || message.application.is_some()
}

/// What a message comes to. `guild`: where its channel is.
#[must_use]
pub fn heard(bridge: &Bridge, guild: GuildId, message: &Message) -> Heard {
    if !is_said(message) {
        return Heard::Nothing;
    }
    let names = names(bridge, guild, &message.mentions, &message.mention_roles, &message.mention_channels);
    let text = readable(&message.content, &names);
    let mut below: Vec<String> = Vec::new();
    let mut files: Vec<File> = message.attachments.iter().map(file).collect();
    if message.kind == MessageType::InlineReply {
        let (said, with) = answered(bridge, guild, message.referenced_message.as_deref());
        below.push(said);
        files.extend(with);
    }
    for forwarded in &message.message_snapshots {
        below.push(format!("[forwarded]\n{}", quoted(&readable(&forwarded.content, &names))));
        files.extend(forwarded.attachments.iter().map(file));
    }
    below.extend(message.sticker_items.iter().map(|sticker| format!("[sticker: {}]", one_line(&sticker.name))));
    let question = message.poll.as_ref().and_then(|poll| poll.question.text.as_deref());
    below.extend(question.map(|question| format!("[poll: {}]", one_line(question))));
    // What it answers says nothing of its own.
    let own = !message.attachments.is_empty() || below.len() > usize::from(message.kind == MessageType::InlineReply);
    if text.trim().is_empty() && !own {
        return if is_shown(message) { Heard::Nothing } else { Heard::Unread };
    }
    let member = message.member.as_deref();
    let nick = member.and_then(|member| member.nick.as_deref());
    let roles = member.map(|member| member.roles.as_slice()).unwrap_or_default();
    let by = person::requester(bridge, guild, &message.author, nick, roles);
    Heard::Asked(Asked { text, below, files, by })
}

/// The message that another one answers, as its reader sees it, and what came with it. An agent has its own files already.
fn answered(bridge: &Bridge, guild: GuildId, message: Option<&Message>) -> (String, Vec<File>) {
    // Discord sends `null` for one that was deleted: https://discord.com/developers/docs/resources/message, `referenced_message`.
    let Some(message) = message else { return ("[in reply to a message that cannot be seen]".to_owned(), Vec::new()) };
    let own = bridge.rooms.me() == Some(message.author.id);
    let of = if own { "your message".to_owned() } else { one_line(called(&message.author)) };
    let names = names(bridge, guild, &message.mentions, &message.mention_roles, &message.mention_channels);
    let mut said = readable(&message.content, &names);
    if said.chars().count() > ANSWERED {
        said = said.chars().take(ANSWERED).chain(['…']).collect();
    }
    let files = message.attachments.iter().map(|attachment| File { answered: true, ..file(attachment) });
    let files: Vec<File> = if own { Vec::new() } else { files.collect() };
    let head = format!("[in reply to {of}]");
    (if said.trim().is_empty() { head } else { format!("{head}\n{}", quoted(&said)) }, files)
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
        let answered = before.files.iter().filter(|file| file.answered).cloned();
        after.files = attachments.iter().map(file).chain(answered).collect();
    }
    let something = !after.whole().is_empty() || !after.files.is_empty();
    (something && !after.says_the_same(before)).then_some(after)
}

/// Names of what a message mentions. Of channels Discord names those of other servers only, in messages that were published from there:
/// those of this one are known.
fn names<'b>(
    bridge: &'b Bridge,
    guild: GuildId,
    people: &[User],
    roles: &[RoleId],
    channels: &[ChannelMention],
) -> Names<'b> {
    Names {
        known: Some(&bridge.rooms),
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
        answered: false,
    }
}
