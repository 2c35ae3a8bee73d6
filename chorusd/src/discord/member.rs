//! Who speaks, and what they may have done.

use serenity::model::Permissions;
use serenity::model::guild::Member;
use serenity::model::id::{GuildId, RoleId};
use serenity::model::user::User;

use super::app::DiscordApp;
use crate::requester::{Requester, SERVER_OWNER};

/// Somebody in a server.
#[derive(Debug, Clone)]
pub struct GuildMember {
    pub requester: Requester,
    pub rights: MemberRights,
}

/// What somebody may do, as Discord said when they asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemberRights {
    /// In the whole server: agents are not of one channel.
    pub manage_channels: bool,
    /// In the whole server.
    pub manage_guild: bool,
    /// In the channel.
    pub manage_messages: bool,
    /// Has a role of `approvers`.
    pub approver: bool,
}

impl MemberRights {
    /// `here`: in the channel. `server`: by what their roles are in the whole server, which no channel adds to.
    #[must_use]
    pub fn new(here: Permissions, server: Permissions, roles: &[String], approvers: &[String]) -> Self {
        // No channel can grant this one.
        let all = (here | server).contains(Permissions::ADMINISTRATOR);
        Self {
            manage_channels: all || server.contains(Permissions::MANAGE_CHANNELS),
            manage_guild: all || server.contains(Permissions::MANAGE_GUILD),
            manage_messages: all || here.contains(Permissions::MANAGE_MESSAGES),
            approver: all || roles.iter().any(|role| approvers.contains(role)),
        }
    }

    /// Whether they may change a conversation.
    #[must_use]
    pub fn can_change_context(self) -> bool {
        self.manage_messages || self.approver
    }
}

impl GuildMember {
    /// By what came with an interaction, and what is known of roles by now.
    #[must_use]
    pub fn from_interaction(bridge: &DiscordApp, guild: GuildId, member: &Member) -> Self {
        let requester = requester(bridge, guild, &member.user, member.nick.as_deref(), &member.roles);
        let roles = if let Requester::Person { roles, .. } = &requester { roles.as_slice() } else { &[] };
        let here = member.permissions.unwrap_or(Permissions::empty());
        let server = bridge.roles.permissions(guild, &member.roles);
        let rights = MemberRights::new(here, server, roles, &bridge.ops.config.discord.approvers);
        Self { requester, rights }
    }

    /// What others call them.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.requester {
            Requester::Person { name, .. } => name,
            Requester::Owner | Requester::Nobody => "somebody",
        }
    }
}

/// A member of a server as whoever asks for a turn.
#[must_use]
pub fn requester(bridge: &DiscordApp, guild: GuildId, user: &User, nick: Option<&str>, roles: &[RoleId]) -> Requester {
    let name = nick.or(user.global_name.as_deref()).unwrap_or(&user.name);
    let mut roles = bridge.roles.role_ids_and_names(guild, roles);
    if bridge.channels.owner_of(guild) == Some(user.id) {
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
        let all = MemberRights { manage_channels: true, manage_guild: true, manage_messages: true, approver: true };
        assert_eq!(rights(Permissions::ADMINISTRATOR), all);
        // The owner of a server needs no role.
        assert_eq!(in_both(Permissions::all(), Permissions::empty()), all);
        // What a channel grants holds for its conversation, and not for agents or for settings.
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
