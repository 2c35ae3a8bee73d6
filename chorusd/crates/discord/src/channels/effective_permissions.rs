//! What a member may do in a channel, computed as Discord documents it.

use serenity::model::Permissions;
use serenity::model::channel::{GuildChannel, PermissionOverwrite, PermissionOverwriteType};
use serenity::model::guild::{Guild, Member};
use serenity::model::id::{GuildId, RoleId, UserId};

/// Returns the permissions of `member` in `channel`: those of all their roles, changed by the channel's overwrites for
/// everybody, then for roles, then for the member.
pub(super) fn member_permissions_in(guild: &Guild, channel: &GuildChannel, member: &Member) -> Permissions {
    permissions_in(guild, channel, member.user.id, &member.roles)
}

/// As [`member_permissions_in`], for the member `user` with these roles.
pub(super) fn permissions_in(guild: &Guild, channel: &GuildChannel, user: UserId, roles: &[RoleId]) -> Permissions {
    if user == guild.owner_id {
        return Permissions::all();
    }
    let everyone = RoleId::new(guild.id.get());
    let held = roles.iter().chain([&everyone]).filter_map(|id| guild.roles.get(id));
    let base = held.fold(Permissions::empty(), |all, role| all | role.permissions);
    overwritten_permissions(base, guild.id, &channel.permission_overwrites, user, roles)
}

/// Returns the permissions of the member `user` with these roles, which grant `base` in the whole guild, in a channel with these
/// overwrites. Not for the owner of the guild.
pub(super) fn overwritten_permissions(
    base: Permissions,
    guild: GuildId,
    overwrites: &[PermissionOverwrite],
    user: UserId,
    roles: &[RoleId],
) -> Permissions {
    let everyone = RoleId::new(guild.get());
    if base.contains(Permissions::ADMINISTRATOR) {
        return Permissions::all();
    }
    let overwritten = |before: Permissions, applies: &dyn Fn(PermissionOverwriteType) -> bool| {
        let fitting = overwrites.iter().filter(|overwrite| applies(overwrite.kind));
        let (allow, deny) = fitting.fold((Permissions::empty(), Permissions::empty()), |(allow, deny), overwrite| {
            (allow | overwrite.allow, deny | overwrite.deny)
        });
        (before - deny) | allow
    };
    let for_everyone = overwritten(base, &|kind| kind == PermissionOverwriteType::Role(everyone));
    let for_roles = overwritten(
        for_everyone,
        &|kind| matches!(kind, PermissionOverwriteType::Role(role) if role != everyone && roles.contains(&role)),
    );
    let own = overwritten(for_roles, &|kind| kind == PermissionOverwriteType::Member(user));
    // Who cannot see a channel can do nothing in it.
    if own.contains(Permissions::VIEW_CHANNEL) { own } else { Permissions::empty() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const VIEW: u64 = 1 << 10;
    const SEND: u64 = 1 << 11;
    const FILES: u64 = 1 << 15;
    const ADMINISTRATOR: u64 = 1 << 3;

    /// A guild 1 with the roles 1 (everybody), 2 and 3, and a channel 5 with `overwrites` (type, id, allow, deny).
    fn permissions(roles: [u64; 3], own: &[u64], overwrites: &[(u8, u64, u64, u64)]) -> u64 {
        let role = |(at, bits): (usize, &u64)| {
            json!({"id": (at + 1).to_string(), "name": "r", "color": 0, "colors": {"primary_color": 0}, "hoist": false, "managed": false,
                "mentionable": false, "position": at, "permissions": bits.to_string(), "guild_id": "1"})
        };
        let overwrite = |(kind, id, allow, deny): &(u8, u64, u64, u64)| json!({"type": kind, "id": id.to_string(), "allow": allow.to_string(), "deny": deny.to_string()});
        let channel = json!({"id": "5", "guild_id": "1", "type": 0, "name": "c", "position": 0,
            "permission_overwrites": overwrites.iter().map(overwrite).collect::<Vec<Value>>()});
        let guild = json!({"id": "1", "name": "g", "owner_id": "9", "afk_timeout": 0, "verification_level": 0,
            "default_message_notifications": 0, "explicit_content_filter": 0, "features": [], "mfa_level": 0,
            "system_channel_flags": 0, "premium_tier": 0, "nsfw_level": 0, "preferred_locale": "en-US", "emojis": [],
            "stickers": [], "joined_at": "2026-01-01T00:00:00Z", "large": false, "member_count": 3, "voice_states": [],
            "members": [], "presences": [], "threads": [], "stage_instances": [], "guild_scheduled_events": [],
            "premium_progress_bar_enabled": false,
            "roles": roles.iter().enumerate().map(role).collect::<Vec<Value>>(), "channels": [channel]});
        let guild: Guild = serde_json::from_value(guild).expect("a guild");
        let member = json!({"user": {"id": "7", "username": "u", "discriminator": "0", "global_name": null, "avatar": null},
            "roles": own.iter().map(u64::to_string).collect::<Vec<_>>(), "joined_at": "2026-01-01T00:00:00Z",
            "deaf": false, "mute": false, "flags": 0, "guild_id": "1"});
        let member: Member = serde_json::from_value(member).expect("a member");
        member_permissions_in(&guild, &guild.channels[&5.into()], &member).bits()
    }

    #[test]
    fn roles_add_up_and_overwrites_change_them_in_the_documented_order() {
        assert_eq!(permissions([VIEW, SEND, FILES], &[2], &[]), VIEW | SEND);
        // Everybody's overwrite comes first, the member's last.
        assert_eq!(permissions([VIEW | SEND, 0, 0], &[2], &[(0, 1, 0, SEND), (0, 2, SEND, 0)]), VIEW | SEND);
        assert_eq!(permissions([VIEW | SEND, 0, 0], &[2], &[(0, 2, 0, SEND), (1, 7, SEND, 0)]), VIEW | SEND);
        assert_eq!(permissions([VIEW | SEND, 0, 0], &[2], &[(0, 2, SEND, 0), (1, 7, 0, SEND)]), VIEW);
        // Of two roles, the one that allows wins.
        assert_eq!(permissions([VIEW, 0, 0], &[2, 3], &[(0, 2, 0, SEND), (0, 3, SEND, 0)]), VIEW | SEND);
        // A role that the member does not have changes nothing.
        assert_eq!(permissions([VIEW | SEND, 0, 0], &[2], &[(0, 3, 0, SEND)]), VIEW | SEND);
        assert_eq!(permissions([VIEW | SEND, 0, 0], &[], &[(0, 1, 0, VIEW)]), 0, "who cannot see it can do nothing");
        assert_eq!(permissions([VIEW, ADMINISTRATOR, 0], &[2], &[(1, 7, 0, VIEW)]), Permissions::all().bits());
    }
}
