//! All tools there are.

use super::git::{GitBranch, GitCheckout, GitCommit, GitDiff, GitInit, GitLog, GitMergeRequest, GitPush};
use super::list_agents::ListAgents;
use super::list_models::ListModels;
use super::remember::Remember;
use super::search_sessions::SearchSessions;
use super::self_edit::{SelfEditDocs, SelfEditModel, SelfEditPermissions, SelfEditSystemPrompt};
use super::send_to_agent::SendToAgent;
use super::tool::Descriptor;
use crate::llm::ToolSpec;
use crate::permissions::Profile;

const TOOLS: &[Descriptor] = &[
    Descriptor::of::<ListModels>(),
    Descriptor::of::<ListAgents>(),
    Descriptor::of::<SearchSessions>(),
    Descriptor::of::<Remember>(),
    Descriptor::of::<SendToAgent>(),
    Descriptor::of::<SelfEditSystemPrompt>(),
    Descriptor::of::<SelfEditDocs>(),
    Descriptor::of::<SelfEditPermissions>(),
    Descriptor::of::<SelfEditModel>(),
    Descriptor::of::<GitInit>(),
    Descriptor::of::<GitCommit>(),
    Descriptor::of::<GitBranch>(),
    Descriptor::of::<GitCheckout>(),
    Descriptor::of::<GitDiff>(),
    Descriptor::of::<GitLog>(),
    Descriptor::of::<GitPush>(),
    Descriptor::of::<GitMergeRequest>(),
];

/// The tool of that name.
pub(super) fn find(name: &str) -> Option<&'static Descriptor> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The names of those that a model is shown.
pub(super) fn names(profile: &Profile) -> Vec<&'static str> {
    let _ = profile;
    TOOLS.iter().map(|tool| tool.name).collect()
}

/// The tools as a model is shown them: those that the profile can never allow are left out.
#[must_use]
pub fn specs(profile: &Profile) -> Vec<ToolSpec> {
    let names = names(profile);
    TOOLS.iter().filter(|tool| names.contains(&tool.name)).map(|tool| (tool.spec)()).collect()
}
