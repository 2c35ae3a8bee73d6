//! What keeps posts from channels though there is a connection: Discord takes none, or Chorus may not write there.

use crate::ops::Ops;

/// What is to be done about posts that wait.
pub const POSTS: &str = "nothing has to be done: they are posted as soon as Discord takes them";
/// What is to be done about channels without rights.
pub const CHANNELS: &str = "give Chorus these permissions there; docs/DISCORD.md lists them";

/// Channels of agents that Chorus may not use, each as a person reads it.
#[must_use]
pub fn channels(ops: &Ops) -> Vec<String> {
    let Some(face) = ops.discord.face.get() else { return Vec::new() };
    let agents = ops.directory.all().into_iter();
    agents.filter_map(|agent| Some(format!("{}: {}", agent.facts.name, face.unfit(agent.channel()?)?))).collect()
}

/// Channels that posts wait for, each as a person reads it; those of [`channels`] have their reason there.
#[must_use]
pub fn posts(ops: &Ops) -> Vec<String> {
    let Some(face) = ops.discord.face.get() else { return Vec::new() };
    let waiting = ops.discord.waiting().into_iter().filter(|(channel, _)| face.unfit(*channel).is_none());
    let said = waiting.map(|(channel, why)| match ops.directory.by_channel(channel) {
        Some(agent) => format!("posts for {} wait: {why}", agent.facts.name),
        None => format!("posts for the channel {channel} wait: {why}"),
    });
    said.collect()
}
