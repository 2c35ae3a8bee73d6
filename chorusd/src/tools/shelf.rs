//! All tools there are.

use std::sync::{Arc, LazyLock};

use chorus_proto::ToolsShown;

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

/// The tools that a profile leaves: those that it can neither allow nor ask about are left out.
#[must_use]
pub fn specs(profile: &Profile) -> Vec<Arc<ToolSpec>> {
    shown(profile).map(|(spec, _)| spec.clone()).collect()
}

/// The tools that a model is shown whose window has no room for all: with these it can look, write and run.
const FEW: [&str; 5] = ["view", "create_file", "append_file", "str_replace", "bash"];

/// What a model is shown of the tools.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    pub specs: Vec<Arc<ToolSpec>>,
    /// Of all of them together.
    pub tokens: u64,
    /// Which those are, where they are not all that the profile leaves.
    pub cut: Option<ToolsShown>,
}

/// The tools of `profile` that fit into `room` tokens: all, the few that matter most, or none; without a number all.
#[must_use]
pub fn offer(profile: &Profile, room: Option<u64>) -> Offer {
    let room = room.unwrap_or(u64::MAX);
    let all = Offer::of(shown(profile), None);
    if all.tokens <= room {
        return all;
    }
    let few = shown(profile).filter(|(spec, _)| FEW.contains(&&*spec.name));
    let few = Offer::of(few, Some(ToolsShown::Few));
    if few.tokens <= room && !few.specs.is_empty() {
        return few;
    }
    Offer { cut: Some(ToolsShown::None), ..Offer::default() }
}

impl Offer {
    fn of(tools: impl Iterator<Item = &'static (Arc<ToolSpec>, u64)>, cut: Option<ToolsShown>) -> Self {
        tools.fold(Self { cut, ..Self::default() }, |mut offer, (spec, tokens)| {
            offer.specs.push(spec.clone());
            offer.tokens += tokens;
            offer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Spec;

    fn profile(pattern: &str) -> Profile {
        Profile::new(Spec { allow: vec![pattern.to_owned()], ..Spec::default() }).unwrap()
    }

    #[test]
    fn what_every_request_has_stays_short() {
        let all = offer(&profile(".*"), None);
        assert_eq!((all.specs.len(), all.cut), (TOOLS.len(), None));
        assert!(all.tokens < 2200, "{} tokens", all.tokens);
        for (spec, tokens) in SHOWN.iter() {
            assert!(*tokens < 200, "{}: {tokens}", spec.name);
        }
    }

    #[test]
    fn a_small_window_has_few_tools_or_none() {
        let everything = profile(".*");
        let named =
            |room| offer(&everything, Some(room)).specs.iter().map(|spec| spec.name.clone()).collect::<Vec<_>>();
        let all = offer(&everything, None).tokens;
        assert_eq!(named(all).len(), TOOLS.len());
        assert_eq!(named(all - 1), FEW);
        let few = offer(&everything, Some(all - 1));
        assert_eq!((few.cut, offer(&everything, Some(few.tokens)).specs.len()), (Some(ToolsShown::Few), FEW.len()));
        let none = offer(&everything, Some(few.tokens - 1));
        assert_eq!((none.cut, none.tokens, none.specs.len()), (Some(ToolsShown::None), 0, 0));
        assert!(few.tokens < 2048 / 3, "a window of 2,048 has the few: {}", few.tokens);
        // A profile that leaves a few only has them all.
        let view = offer(&profile("tool:view:.*"), Some(500));
        assert_eq!((view.specs.len(), view.cut), (1, None));
    }
}
