//! Converts a message of a channel to a request to the agent.

use chorus_base::requester::Requester;
use serde::{Deserialize, Serialize};
use serenity::model::channel::{Attachment, ChannelMention, Message, MessageType};
use serenity::model::event::MessageUpdateEvent;
use serenity::model::id::{GuildId, RoleId};
use serenity::model::user::User;

use super::message_text::{MentionNames, one_line, quote, resolve_mentions};
use crate::app::DiscordApp;
use crate::member;

/// Characters of the replied-to message that are quoted.
const MAX_QUOTED_CHARS: usize = 2000;

/// A request as it is stored until it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageRequest {
    pub text: String,
    /// Parts below the text that stay when the text is edited: the replied-to message, forwarded messages, stickers, a
    /// poll.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AttachedFile>,
    pub by: Requester,
}

/// An attachment, which Discord stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttachedFile {
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub url: String,
    /// The file belongs to the replied-to message, and stays when this message is edited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
}

impl MessageRequest {
    /// Returns the text and the parts below it.
    #[must_use]
    pub(crate) fn full_text(&self) -> String {
        let text = Some(self.text.as_str()).filter(|text| !text.trim().is_empty());
        text.into_iter().chain(self.below.iter().map(String::as_str)).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns whether another read of the message found it unchanged.
    #[must_use]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let files =
            self.files.len() == other.files.len() && self.files.iter().zip(&other.files).all(|(a, b)| a.is_same(b));
        self.text == other.text && self.below == other.below && files
    }
}

impl AttachedFile {
    /// Returns whether both are the same file. The query of the URL is ignored: it is a signature that differs each
    /// time.
    fn is_same(&self, other: &Self) -> bool {
        let place = |file: &Self| file.url.split('?').next().unwrap_or_default().to_owned();
        self.name == other.name && self.size == other.size && place(self) == place(other)
    }
}

/// What a message means to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Incoming {
    /// Not a message for it: written by another application, by Discord or by Chorus itself.
    Ignored,
    /// A person wrote it, but Discord withholds its content.
    Unreadable,
    Request(MessageRequest),
}

/// Returns whether a person wrote the message themselves.
#[must_use]
pub(super) fn is_from_person(message: &Message) -> bool {
    let said = matches!(message.kind, MessageType::Regular | MessageType::InlineReply);
    said && !message.author.bot && !message.author.system && message.webhook_id.is_none()
}

/// Returns whether a message without text shows something, for example a game that others may join.
fn has_visible_content(message: &Message) -> bool {
    !message.embeds.is_empty()
        || !message.components.is_empty()
        || message.activity.is_some()
        || message.application.is_some()
}

/// Classifies a message. `guild` is the guild of its channel.
#[must_use]
pub(super) fn classify(app: &DiscordApp, guild: GuildId, message: &Message) -> Incoming {
    if !is_from_person(message) {
        return Incoming::Ignored;
    }
    let names = mention_names(app, guild, &message.mentions, &message.mention_roles, &message.mention_channels);
    let text = resolve_mentions(&message.content, &names);
    let mut below: Vec<String> = Vec::new();
    let mut files: Vec<AttachedFile> = message.attachments.iter().map(attached_file).collect();
    if message.kind == MessageType::InlineReply {
        let (said, with) = quote_replied_message(app, guild, message.referenced_message.as_deref());
        below.push(said);
        files.extend(with);
    }
    for forwarded in &message.message_snapshots {
        below.push(format!("[forwarded]\n{}", quote(&resolve_mentions(&forwarded.content, &names))));
        files.extend(forwarded.attachments.iter().map(attached_file));
    }
    below.extend(message.sticker_items.iter().map(|sticker| format!("[sticker: {}]", one_line(&sticker.name))));
    let question = message.poll.as_ref().and_then(|poll| poll.question.text.as_deref());
    below.extend(question.map(|question| format!("[poll: {}]", one_line(question))));
    // The replied-to message is not content of this one.
    let own = !message.attachments.is_empty() || below.len() > usize::from(message.kind == MessageType::InlineReply);
    if text.trim().is_empty() && !own {
        return if has_visible_content(message) { Incoming::Ignored } else { Incoming::Unreadable };
    }
    let member = message.member.as_deref();
    let nick = member.and_then(|member| member.nick.as_deref());
    let roles = member.map(|member| member.roles.as_slice()).unwrap_or_default();
    let by = member::requester(app, guild, &message.author, nick, roles);
    Incoming::Request(MessageRequest { text, below, files, by })
}

/// Quotes the replied-to message and returns its attachments. An agent's own message comes without attachments, since
/// the agent has the files.
fn quote_replied_message(app: &DiscordApp, guild: GuildId, message: Option<&Message>) -> (String, Vec<AttachedFile>) {
    // Discord sends `null` for one that was deleted: https://discord.com/developers/docs/resources/message, `referenced_message`.
    let Some(message) = message else { return ("[in reply to an unavailable message]".to_owned(), Vec::new()) };
    let own = app.channels.own_user_id() == Some(message.author.id);
    let of = if own { "your message".to_owned() } else { one_line(display_name(&message.author)) };
    let names = mention_names(app, guild, &message.mentions, &message.mention_roles, &message.mention_channels);
    let mut said = resolve_mentions(&message.content, &names);
    if said.chars().count() > MAX_QUOTED_CHARS {
        said = said.chars().take(MAX_QUOTED_CHARS).chain(['…']).collect();
    }
    let files =
        message.attachments.iter().map(|attachment| AttachedFile { answered: true, ..attached_file(attachment) });
    let files: Vec<AttachedFile> = if own { Vec::new() } else { files.collect() };
    let head = format!("[in reply to {of}]");
    (if said.trim().is_empty() { head } else { format!("{head}\n{}", quote(&said)) }, files)
}

/// Applies an update to the request `before`; returns `None` if it stays the same.
#[must_use]
pub(super) fn apply_update(
    app: &DiscordApp,
    guild: GuildId,
    before: &MessageRequest,
    event: &MessageUpdateEvent,
) -> Option<MessageRequest> {
    let empty = Vec::new();
    let mut after = before.clone();
    if let Some(content) = &event.content {
        let names = mention_names(
            app,
            guild,
            event.mentions.as_ref().unwrap_or(&empty),
            event.mention_roles.as_deref().unwrap_or_default(),
            event.mention_channels.as_deref().unwrap_or_default(),
        );
        after.text = resolve_mentions(content, &names);
    }
    if let Some(attachments) = &event.attachments {
        let answered = before.files.iter().filter(|file| file.answered).cloned();
        after.files = attachments.iter().map(attached_file).chain(answered).collect();
    }
    let something = !after.full_text().is_empty() || !after.files.is_empty();
    (something && !after.is_same(before)).then_some(after)
}

/// Collects the names of what a message mentions. For channels Discord sends names only if they are in other guilds, in
/// messages that were published from there; those of this guild are cached.
fn mention_names<'b>(
    app: &'b DiscordApp,
    guild: GuildId,
    people: &[User],
    roles: &[RoleId],
    channels: &[ChannelMention],
) -> MentionNames<'b> {
    MentionNames {
        cached_channels: Some(&app.channels),
        people: people.iter().map(|user| (user.id.get(), display_name(user).to_owned())).collect(),
        roles: roles
            .iter()
            .filter_map(|role| Some((role.get(), app.roles.role_ids_and_names(guild, &[*role]).into_iter().nth(1)?)))
            .collect(),
        channels: channels.iter().map(|channel| (channel.id.get(), channel.name.clone())).collect(),
    }
}

/// Returns the name of a user whose nickname in the guild is not known.
fn display_name(user: &User) -> &str {
    user.global_name.as_deref().unwrap_or(&user.name)
}

fn attached_file(attachment: &Attachment) -> AttachedFile {
    AttachedFile {
        name: one_line(&attachment.filename),
        size: attachment.size.into(),
        kind: attachment.content_type.clone(),
        url: attachment.url.clone(),
        answered: false,
    }
}
