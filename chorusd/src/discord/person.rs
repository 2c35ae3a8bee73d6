//! Who speaks, and what they may have done.

use serenity::model::Permissions;
use serenity::model::guild::Member;
use serenity::model::id::{GuildId, RoleId};
use serenity::model::user::User;

use super::bridge::Bridge;
use crate::who::Requester;

/// Somebody in a server.
#[derive(Debug, Clone)]
pub struct Person {
    pub requester: Requester,
    pub rights: Rights,
}

/// What somebody may do in a channel, as Discord said when they asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    pub manage_channels: bool,
    pub manage_guild: bool,
    pub manage_messages: bool,
    /// Has a role of `approvers`.
    pub approver: bool,
}

impl Rights {
    #[must_use]
    pub fn new(permissions: Permissions, roles: &[String], approvers: &[String]) -> Self {
        let has = |one| permissions.contains(one) || permissions.contains(Permissions::ADMINISTRATOR);
        Self {
            manage_channels: has(Permissions::MANAGE_CHANNELS),
            manage_guild: has(Permissions::MANAGE_GUILD),
            manage_messages: has(Permissions::MANAGE_MESSAGES),
            approver: has(Permissions::ADMINISTRATOR) || roles.iter().any(|role| approvers.contains(role)),
        }
    }

    /// Whether they may change a conversation.
    #[must_use]
    pub fn changes(self) -> bool {
        self.manage_messages || self.approver
    }
}

impl Person {
    /// By what came with an interaction, and what is known of roles by now.
    #[must_use]
    pub fn of(bridge: &Bridge, guild: GuildId, member: &Member) -> Self {
        let requester = requester(bridge, guild, &member.user, member.nick.as_deref(), &member.roles);
        let roles = if let Requester::Person { roles, .. } = &requester { roles.as_slice() } else { &[] };
        let permissions = member.permissions.unwrap_or(Permissions::empty());
        let rights = Rights::new(permissions, roles, &bridge.ops.config.discord.approvers);
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
pub fn requester(bridge: &Bridge, guild: GuildId, user: &User, nick: Option<&str>, roles: &[RoleId]) -> Requester {
    let name = nick.or(user.global_name.as_deref()).unwrap_or(&user.name);
    let roles = bridge.guilds.ids_and_names(guild, roles);
    Requester::Person { id: user.id.to_string(), name: name.to_owned(), roles }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_right_is_its_own_permission_and_administrators_have_all() {
        let rights = |permissions| Rights::new(permissions, &["12".into(), "crew".into()], &["helpers".into()]);
        let none = Rights::default();
        assert_eq!(rights(Permissions::SEND_MESSAGES), none);
        assert_eq!(rights(Permissions::MANAGE_CHANNELS), Rights { manage_channels: true, ..none });
        assert_eq!(rights(Permissions::MANAGE_GUILD), Rights { manage_guild: true, ..none });
        assert_eq!(rights(Permissions::MANAGE_MESSAGES), Rights { manage_messages: true, ..none });
        let all = Rights { manage_channels: true, manage_guild: true, manage_messages: true, approver: true };
        assert_eq!(rights(Permissions::ADMINISTRATOR), all);
    }

    #[test]
    fn approvers_are_named_by_id_or_name() {
        for (approvers, is) in [(vec!["crew"], true), (vec!["12"], true), (vec!["Crew", "1"], false), (vec![], false)] {
            let approvers: Vec<String> = approvers.into_iter().map(str::to_owned).collect();
            let rights = Rights::new(Permissions::empty(), &["12".into(), "crew".into()], &approvers);
            assert_eq!((rights.approver, rights.changes()), (is, is), "{approvers:?}");
        }
    }
}
