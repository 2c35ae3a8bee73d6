//! Problems that keep posts from channels despite a connection: Discord does not accept them, or Chorus lacks
//! permissions.

use crate::ops::Ops;

/// The hint about posts that wait.
pub const BLOCKED_POSTS_HINT: &str = "nothing to do: Chorus posts them as soon as Discord accepts them";
/// The hint about channels without permissions.
pub const UNUSABLE_CHANNELS_HINT: &str = "grant Chorus these permissions in Discord; see docs/DISCORD.md";

/// The hint about channels without permissions for threads.
pub const THREADS_HINT: &str = "grant Chorus these permissions in Discord if people use threads; see docs/DISCORD.md";

/// Describes the channels of agents below which Chorus cannot work in threads, except those that [`unusable_channels`]
/// reports.
#[must_use]
pub fn thread_problems(ops: &Ops) -> Vec<String> {
    let Some(face) = ops.discord.channel_api.get() else { return Vec::new() };
    let problem = |channel| face.unusable_reason(channel).is_none().then(|| face.thread_problem(channel)).flatten();
    let agents = ops.agents.all().into_iter();
    agents.filter_map(|agent| Some(format!("{}: {}", agent.settings.name, problem(agent.channel()?)?))).collect()
}

/// Describes the channels of agents that Chorus cannot use.
#[must_use]
pub fn unusable_channels(ops: &Ops) -> Vec<String> {
    let Some(face) = ops.discord.channel_api.get() else { return Vec::new() };
    let agents = ops.agents.all().into_iter();
    agents
        .filter_map(|agent| Some(format!("{}: {}", agent.settings.name, face.unusable_reason(agent.channel()?)?)))
        .collect()
}

/// Describes the channels that posts wait for, except those that [`unusable_channels`] reports.
#[must_use]
pub fn blocked_posts(ops: &Ops) -> Vec<String> {
    let Some(face) = ops.discord.channel_api.get() else { return Vec::new() };
    let waiting =
        ops.discord.blocked_posts().into_iter().filter(|(channel, _)| face.unusable_reason(*channel).is_none());
    let said = waiting.map(|(channel, why)| match ops.agents.by_channel(channel) {
        Some(agent) => format!("pending posts for {}: {why}", agent.settings.name),
        None => format!("pending posts for channel {channel}: {why}"),
    });
    said.collect()
}
