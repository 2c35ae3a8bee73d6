//! When conversations ran commands in their workspace, any of which may have changed any file.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_session::conversation::ConversationKey;
use uuid::Uuid;

use super::FileVersions;

/// When the commands of a conversation ran, since the daemon started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CommandTime {
    /// The number of those that run now.
    pub running: usize,
    /// The position at which the last one ended.
    pub last_end: u64,
    /// True if the catalog has that the conversation runs commands.
    pub is_recorded: bool,
}

/// By agent and conversation.
pub(super) type CommandTimes = HashMap<Uuid, HashMap<Uuid, CommandTime>>;

/// Counts a command as running until it is dropped.
#[derive(Debug)]
pub struct CommandGuard {
    versions: Arc<FileVersions>,
    key: ConversationKey,
}

impl FileVersions {
    /// Notes that a command of a conversation begins, foreground or background, and that it ends with the guard.
    ///
    /// # Errors
    /// The reason why it cannot be recorded, for the model; the command must not run.
    pub async fn start_command(self: &Arc<Self>, key: ConversationKey) -> Result<CommandGuard, String> {
        let guard = CommandGuard { versions: self.clone(), key };
        let is_recorded = {
            let mut commands = self.commands.lock();
            let time = commands.entry(key.agent).or_default().entry(key.id).or_default();
            time.running += 1;
            time.is_recorded
        };
        if !is_recorded && self.is_shared(key) {
            let recorded = self.table.record_command(key.agent, key.id).await;
            recorded.map_err(|failure| format!("not run: cannot record that the command runs ({failure})"))?;
            self.update_command_time(key, |time| time.is_recorded = true);
        }
        Ok(guard)
    }

    fn update_command_time(&self, key: ConversationKey, update: impl FnOnce(&mut CommandTime)) {
        if let Some(time) = self.commands.lock().get_mut(&key.agent).and_then(|times| times.get_mut(&key.id)) {
            update(time);
        }
    }

    /// Returns when each conversation of an agent ran commands.
    pub(super) fn command_times(&self, agent: Uuid) -> HashMap<Uuid, CommandTime> {
        self.commands.lock().get(&agent).cloned().unwrap_or_default()
    }
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        let end = self.versions.next_position();
        self.versions.update_command_time(self.key, |time| {
            time.running = time.running.saturating_sub(1);
            time.last_end = time.last_end.max(end);
        });
    }
}
