//! The registry of all tools, and the selection offered to a model.

use std::sync::{Arc, LazyLock};

use chorus_llm::ToolSpec;
use chorus_mcp_client::McpTool;
use chorus_permissions::Profile;
use chorus_proto::ToolsShown;

use super::bash::Bash;
use super::files::append_file::AppendFile;
use super::files::create_file::CreateFile;
use super::files::str_replace::StrReplace;
use super::files::view::View;
use super::git::{GitBranch, GitCheckout, GitCommit, GitDiff, GitInit, GitLog, GitMergeRequest, GitPush};
use super::list_agents::ListAgents;
use super::list_models::ListModels;
use super::mcp;
use super::remember::Remember;
use super::schedules::{ScheduleAdd, ScheduleList, ScheduleRemove};
use super::search_sessions::SearchSessions;
use super::self_edit::{SelfEditDocs, SelfEditModel, SelfEditPermissions, SelfEditSystemPrompt};
use super::send_to_agent::SendToAgent;
use super::tool::ToolDescriptor;

const TOOLS: &[ToolDescriptor] = &[
    ToolDescriptor::of::<View>(),
    ToolDescriptor::of::<CreateFile>(),
    ToolDescriptor::of::<AppendFile>(),
    ToolDescriptor::of::<StrReplace>(),
    ToolDescriptor::of::<Bash>(),
    ToolDescriptor::of::<GitInit>(),
    ToolDescriptor::of::<GitCommit>(),
    ToolDescriptor::of::<GitBranch>(),
    ToolDescriptor::of::<GitCheckout>(),
    ToolDescriptor::of::<GitDiff>(),
    ToolDescriptor::of::<GitLog>(),
    ToolDescriptor::of::<GitPush>(),
    ToolDescriptor::of::<GitMergeRequest>(),
    ToolDescriptor::of::<ListModels>(),
    ToolDescriptor::of::<ListAgents>(),
    ToolDescriptor::of::<SearchSessions>(),
    ToolDescriptor::of::<Remember>(),
    ToolDescriptor::of::<SendToAgent>(),
    ToolDescriptor::of::<ScheduleAdd>(),
    ToolDescriptor::of::<ScheduleList>(),
    ToolDescriptor::of::<ScheduleRemove>(),
    ToolDescriptor::of::<SelfEditSystemPrompt>(),
    ToolDescriptor::of::<SelfEditDocs>(),
    ToolDescriptor::of::<SelfEditPermissions>(),
    ToolDescriptor::of::<SelfEditModel>(),
];

/// The spec of each tool with its size in tokens; computed once.
static TOOL_SPECS: LazyLock<Vec<(Arc<ToolSpec>, u64)>> = LazyLock::new(|| {
    let shown = |tool: &ToolDescriptor| {
        let spec = (tool.spec)();
        let tokens = chorus_llm::tokens_of_tool(&spec);
        (Arc::new(spec), tokens)
    };
    TOOLS.iter().map(shown).collect()
});

/// Finds a tool by its name.
pub(super) fn find_tool(name: &str) -> Option<&'static ToolDescriptor> {
    TOOLS.iter().find(|tool| tool.name == name)
}

fn visible_tools(profile: &Profile) -> impl Iterator<Item = &'static (Arc<ToolSpec>, u64)> {
    let offered = |tool: &&'static ToolDescriptor| profile.may_use_tool(tool.name);
    TOOLS.iter().zip(&*TOOL_SPECS).filter(move |(tool, _)| offered(tool)).map(|(_, shown)| shown)
}

/// Returns the names of the tools that a model is offered.
pub(super) fn visible_names(profile: &Profile) -> Vec<&'static str> {
    visible_tools(profile).map(|(spec, _)| &*spec.name).collect()
}

/// Returns the tools that a profile may allow or ask about.
#[must_use]
pub fn visible_specs(profile: &Profile) -> Vec<Arc<ToolSpec>> {
    visible_tools(profile).map(|(spec, _)| spec.clone()).collect()
}

/// The tools offered if not all fit into the window: enough to look at files, write them and run commands.
const ESSENTIAL_TOOLS: [&str; 5] = ["view", "create_file", "append_file", "str_replace", "bash"];

/// The tools offered to a model.
#[derive(Debug, Clone, Default)]
pub struct OfferedTools {
    pub specs: Vec<Arc<ToolSpec>>,
    /// Tokens of all specs together.
    pub tokens: u64,
    /// The reduced selection, if not all tools of the profile are offered.
    pub reduced_to: Option<ToolsShown>,
}

/// Returns the tools of `profile` that fit into `room` tokens: all, the essential ones, or none. Without a limit, all. Those
/// of MCP servers are the first to be left out, the last ones first.
#[must_use]
pub fn offer_tools(profile: &Profile, servers: &[Arc<McpTool>], room: Option<u64>) -> OfferedTools {
    let room = room.unwrap_or(u64::MAX);
    let mut all = OfferedTools::from_tools(visible_tools(profile), None);
    if all.tokens <= room {
        for (spec, tokens) in mcp::visible_specs(profile, servers) {
            if all.tokens + tokens > room {
                all.reduced_to = Some(ToolsShown::Few);
                break;
            }
            all.specs.push(spec);
            all.tokens += tokens;
        }
        return all;
    }
    let few = visible_tools(profile).filter(|(spec, _)| ESSENTIAL_TOOLS.contains(&&*spec.name));
    let few = OfferedTools::from_tools(few, Some(ToolsShown::Few));
    if few.tokens <= room && !few.specs.is_empty() {
        return few;
    }
    OfferedTools { reduced_to: Some(ToolsShown::None), ..OfferedTools::default() }
}

impl OfferedTools {
    fn from_tools(tools: impl Iterator<Item = &'static (Arc<ToolSpec>, u64)>, cut: Option<ToolsShown>) -> Self {
        tools.fold(Self { reduced_to: cut, ..Self::default() }, |mut offer, (spec, tokens)| {
            offer.specs.push(spec.clone());
            offer.tokens += tokens;
            offer
        })
    }
}

#[cfg(test)]
mod tests {
    use chorus_permissions::ProfileSpec;

    use super::*;

    fn profile(pattern: &str) -> Profile {
        Profile::new(ProfileSpec { allow: vec![pattern.to_owned()], ..ProfileSpec::default() }).unwrap()
    }

    #[test]
    fn what_every_request_has_stays_short() {
        let all = offer_tools(&profile(".*"), &[], None);
        assert_eq!((all.specs.len(), all.reduced_to), (TOOLS.len(), None));
        assert!(all.tokens < 2200, "{} tokens", all.tokens);
        for (spec, tokens) in TOOL_SPECS.iter() {
            assert!(*tokens < 200, "{}: {tokens}", spec.name);
        }
    }

    #[test]
    fn a_small_window_has_few_tools_or_none() {
        let everything = profile(".*");
        let named = |room| {
            offer_tools(&everything, &[], Some(room)).specs.iter().map(|spec| spec.name.clone()).collect::<Vec<_>>()
        };
        let all = offer_tools(&everything, &[], None).tokens;
        assert_eq!(named(all).len(), TOOLS.len());
        assert_eq!(named(all - 1), ESSENTIAL_TOOLS);
        let few = offer_tools(&everything, &[], Some(all - 1));
        assert_eq!(
            (few.reduced_to, offer_tools(&everything, &[], Some(few.tokens)).specs.len()),
            (Some(ToolsShown::Few), ESSENTIAL_TOOLS.len())
        );
        let none = offer_tools(&everything, &[], Some(few.tokens - 1));
        assert_eq!((none.reduced_to, none.tokens, none.specs.len()), (Some(ToolsShown::None), 0, 0));
        assert!(few.tokens < 2048 / 3, "a window of 2,048 has the few: {}", few.tokens);
        // If the profile has only few tools, all of them are offered.
        let view = offer_tools(&profile("tool:view:.*"), &[], Some(500));
        assert_eq!((view.specs.len(), view.reduced_to), (1, None));
    }
}
