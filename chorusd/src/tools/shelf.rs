//! All tools there are.

use std::sync::{Arc, LazyLock};

use super::bash::Bash;
use super::files::append_file::AppendFile;
use super::files::create_file::CreateFile;
use super::files::str_replace::StrReplace;
use super::files::view::View;
use super::git::{GitBranch, GitCheckout, GitCommit, GitDiff, GitInit, GitLog, GitMergeRequest, GitPush};
use super::list_agents::ListAgents;
use super::list_models::ListModels;
use super::remember::Remember;
use super::search_sessions::SearchSessions;
use super::self_edit::{SelfEditDocs, SelfEditModel, SelfEditPermissions, SelfEditSystemPrompt};
use super::send_to_agent::SendToAgent;
use super::tool::Descriptor;
use crate::estimate;
use crate::llm::ToolSpec;
use crate::permissions::Profile;

const TOOLS: &[Descriptor] = &[
    Descriptor::of::<View>(),
    Descriptor::of::<CreateFile>(),
    Descriptor::of::<AppendFile>(),
    Descriptor::of::<StrReplace>(),
    Descriptor::of::<Bash>(),
    Descriptor::of::<GitInit>(),
    Descriptor::of::<GitCommit>(),
    Descriptor::of::<GitBranch>(),
    Descriptor::of::<GitCheckout>(),
    Descriptor::of::<GitDiff>(),
    Descriptor::of::<GitLog>(),
    Descriptor::of::<GitPush>(),
    Descriptor::of::<GitMergeRequest>(),
    Descriptor::of::<ListModels>(),
    Descriptor::of::<ListAgents>(),
    Descriptor::of::<SearchSessions>(),
    Descriptor::of::<Remember>(),
    Descriptor::of::<SendToAgent>(),
    Descriptor::of::<SelfEditSystemPrompt>(),
    Descriptor::of::<SelfEditDocs>(),
    Descriptor::of::<SelfEditPermissions>(),
    Descriptor::of::<SelfEditModel>(),
];

/// How each is shown, and how many tokens that takes; made once.
static SHOWN: LazyLock<Vec<(Arc<ToolSpec>, u64)>> = LazyLock::new(|| {
    let shown = |tool: &Descriptor| {
        let spec = (tool.spec)();
        let tokens = estimate::tool(&spec);
        (Arc::new(spec), tokens)
    };
    TOOLS.iter().map(shown).collect()
});

/// The tool of that name.
pub(super) fn find(name: &str) -> Option<&'static Descriptor> {
    TOOLS.iter().find(|tool| tool.name == name)
}

fn shown(profile: &Profile) -> impl Iterator<Item = &'static (Arc<ToolSpec>, u64)> {
    let offered = |tool: &&'static Descriptor| profile.offers(tool.name);
    TOOLS.iter().zip(&*SHOWN).filter(move |(tool, _)| offered(tool)).map(|(_, shown)| shown)
}

/// The names of those that a model is shown.
pub(super) fn names(profile: &Profile) -> Vec<&'static str> {
    shown(profile).map(|(spec, _)| &*spec.name).collect()
}

/// The tools as a model is shown them: those that the profile can neither allow nor ask about are left out.
#[must_use]
pub fn specs(profile: &Profile) -> Vec<Arc<ToolSpec>> {
    shown(profile).map(|(spec, _)| spec.clone()).collect()
}

/// The tokens of [`specs`].
#[must_use]
pub fn tokens(profile: &Profile) -> u64 {
    shown(profile).map(|(_, tokens)| tokens).sum()
}
