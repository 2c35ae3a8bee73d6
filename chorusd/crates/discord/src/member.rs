//! Members of a guild: who they are to the daemon, and which rights they have.

use chorus_base::requester::{Requester, SERVER_OWNER};
use serenity::model::Permissions;
use serenity::model::guild::Member;
use serenity::model::id::{GuildId, RoleId};
use serenity::model::user::User;

use super::app::DiscordApp;
use super::direct::Membership;

/// A member of a guild.
#[derive(Debug, Clone)]
pub(crate) struct GuildMember {
    pub requester: Requester,
    pub rights: MemberRights,
}

/// Rights of a member, as Discord sent them with an interaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MemberRights {
    /// Permission in the whole guild, since agents do not belong to one channel.
    pub manage_channels: bool,
    /// Permission in the whole guild.
    pub manage_guild: bool,
    /// Permission in the channel.
    pub manage_messages: bool,
    /// Permission to create public threads in the channel.
    pub create_threads: bool,
    /// The member has one of the roles in `approvers`.
    pub approver: bool,
    /// The conversation is that of their direct messages.
    pub own_conversation: bool,
}

impl MemberRights {
    /// `here` are the permissions in the channel. `server` are those that the roles grant in the whole guild, to which
    /// channel overwrites add nothing.
    #[must_use]
    pub(crate) fn new(here: Permissions, server: Permissions, roles: &[String], approvers: &[String]) -> Self {
        // A channel overwrite cannot grant Administrator.
        let all = (here | server).contains(Permissions::ADMINISTRATOR);
        Self {
            manage_channels: all || server.contains(Permissions::MANAGE_CHANNELS),
            manage_guild: all || server.contains(Permissions::MANAGE_GUILD),
            manage_messages: all || here.contains(Permissions::MANAGE_MESSAGES),
            create_threads: all || here.contains(Permissions::CREATE_PUBLIC_THREADS),
            approver: all || roles.iter().any(|role| approvers.contains(role)),
            own_conversation: false,
        }
    }

    /// Returns whether the member may change a conversation.
    #[must_use]
    pub(crate) fn can_change_context(self) -> bool {
        self.manage_messages || self.approver || self.own_conversation
    }
}

impl GuildMember {
    /// Builds the member from what came with an interaction and from the cached roles.
    #[must_use]
    pub(crate) fn from_interaction(app: &DiscordApp, guild: GuildId, member: &Member) -> Self {
        let requester = requester(app, guild, &member.user, member.nick.as_deref(), &member.roles);
        let roles = if let Requester::Person { roles, .. } = &requester { roles.as_slice() } else { &[] };
        let here = member.permissions.unwrap_or(Permissions::empty());
        let server = app.roles.permissions(guild, &member.roles);
        let rights = MemberRights::new(here, server, roles, &app.ops.config.discord.approvers);
        Self { requester, rights }
    }

    /// Builds the person of direct messages, who may change their own conversation. They have no other right but that of
    /// an approver, by their roles in the guild of their membership.
    #[must_use]
    pub(crate) fn from_direct(app: &DiscordApp, user: &User, membership: &Membership) -> Self {
        let Membership { guild, nick, roles } = membership;
        let requester = requester(app, *guild, user, nick.as_deref(), roles);
        let held = if let Requester::Person { roles, .. } = &requester { roles.as_slice() } else { &[] };
        let is_administrator = app.roles.permissions(*guild, roles).contains(Permissions::ADMINISTRATOR)
            || app.channels.owner_of(*guild) == Some(user.id);
        let approvers = &app.ops.config.discord.approvers;
        let approver = is_administrator || held.iter().any(|role| approvers.contains(role));
        Self { requester, rights: MemberRights { approver, own_conversation: true, ..MemberRights::default() } }
    }

    /// The name that is shown to others.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        match &self.requester {
            Requester::Person { name, .. } => name,
            Requester::Owner | Requester::Nobody => "somebody",
        }
    }
}

/// Returns the member as the requester of a turn.
#[must_use]
pub(crate) fn requester(
    app: &DiscordApp,
    guild: GuildId,
    user: &User,
    nick: Option<&str>,
    roles: &[RoleId],
) -> Requester {
    let name = nick.or(user.global_name.as_deref()).unwrap_or(&user.name);
    let mut roles = app.roles.role_ids_and_names(guild, roles);
    if app.channels.owner_of(guild) == Some(user.id) {
        roles.push(SERVER_OWNER.to_owned());
    }
    Requester::Person { id: user.id.to_string(), name: name.to_owned(), roles }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_right_is_its_own_permission_and_administrators_have_all() {
        let in_both =
            |here, server| MemberRights::new(here, server, &["12".into(), "crew".into()], &["helpers".into()]);
        let rights = |permissions| in_both(permissions, permissions);
        let none = MemberRights::default();
        assert_eq!(rights(Permissions::SEND_MESSAGES), none);
        assert_eq!(rights(Permissions::MANAGE_CHANNELS), MemberRights { manage_channels: true, ..none });
        assert_eq!(rights(Permissions::MANAGE_GUILD), MemberRights { manage_guild: true, ..none });
        assert_eq!(rights(Permissions::MANAGE_MESSAGES), MemberRights { manage_messages: true, ..none });
        let all = MemberRights {
            manage_channels: true,
            manage_guild: true,
            manage_messages: true,
            create_threads: true,
            approver: true,
            own_conversation: false,
        };
        assert_eq!(rights(Permissions::CREATE_PUBLIC_THREADS), MemberRights { create_threads: true, ..none });
        assert_eq!(rights(Permissions::ADMINISTRATOR), all);
        // The owner of a guild needs no role.
        assert_eq!(in_both(Permissions::all(), Permissions::empty()), all);
        // Permissions that a channel grants apply to its conversation, not to agents or settings.
        let granted = Permissions::MANAGE_CHANNELS | Permissions::MANAGE_GUILD | Permissions::MANAGE_MESSAGES;
        assert_eq!(in_both(granted, Permissions::empty()), MemberRights { manage_messages: true, ..none });
        assert_eq!(in_both(Permissions::empty(), Permissions::MANAGE_MESSAGES), none);
    }

    #[test]
    fn approvers_are_named_by_id_or_name() {
        for (approvers, is) in [(vec!["crew"], true), (vec!["12"], true), (vec!["Crew", "1"], false), (vec![], false)] {
            let approvers: Vec<String> = approvers.into_iter().map(str::to_owned).collect();
            let rights = MemberRights::new(
                Permissions::empty(),
                Permissions::empty(),
                &["12".into(), "crew".into()],
                &approvers,
            );
            assert_eq!((rights.approver, rights.can_change_context()), (is, is), "{approvers:?}");
        }
    }
}
