//! Permission bits, with Discord's names.

pub const ADMINISTRATOR: u64 = 1 << 3;
pub const MANAGE_CHANNELS: u64 = 1 << 4;
pub const MANAGE_GUILD: u64 = 1 << 5;
pub const VIEW_CHANNEL: u64 = 1 << 10;
pub const SEND_MESSAGES: u64 = 1 << 11;
pub const MANAGE_MESSAGES: u64 = 1 << 13;
pub const EMBED_LINKS: u64 = 1 << 14;
pub const ATTACH_FILES: u64 = 1 << 15;
pub const READ_MESSAGE_HISTORY: u64 = 1 << 16;
pub const MENTION_EVERYONE: u64 = 1 << 17;
pub const USE_APPLICATION_COMMANDS: u64 = 1 << 31;
pub const MANAGE_THREADS: u64 = 1 << 34;
pub const CREATE_PUBLIC_THREADS: u64 = 1 << 35;
pub const SEND_MESSAGES_IN_THREADS: u64 = 1 << 38;

/// The permissions of `@everyone` in a new guild.
pub const EVERYONE_DEFAULT: u64 = VIEW_CHANNEL
    | SEND_MESSAGES
    | EMBED_LINKS
    | ATTACH_FILES
    | READ_MESSAGE_HISTORY
    | USE_APPLICATION_COMMANDS
    | SEND_MESSAGES_IN_THREADS;

/// The permissions that the application is invited with.
pub const APPLICATION_DEFAULT: u64 = EVERYONE_DEFAULT | MANAGE_CHANNELS | MANAGE_MESSAGES | CREATE_PUBLIC_THREADS;

/// Every permission bit.
pub const ALL: u64 = (1 << 53) - 1;

/// Applies a channel overwrite to the permissions `base`.
#[must_use]
pub fn apply_overwrite(base: u64, allow: u64, deny: u64) -> u64 {
    if base & ADMINISTRATOR != 0 { ALL } else { base & !deny | allow }
}
