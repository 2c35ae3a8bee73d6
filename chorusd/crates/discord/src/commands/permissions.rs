//! `/permissions`: what the agent of the channel may do.

use chorus_base::error::{Error, Result};
use chorus_engine::ops::permissions::{check, remove_rule, usable_profile};
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::ErrorKind;
use chorus_proto::methods::permissions::{AgentRule, CheckParams, Decision, RemoveRuleParams, Rule};

use super::command_definition::{AGENT_OPTION, Command, OptionKind, Right, Subcommand, Subcommands, required};
use super::context::audited_agent;
use super::invocation::Invocation;
use super::response::Response;
use super::text_format::{code_block, inline_code, inline_text, relative_time};
use crate::approvals::format_requester;

pub(super) const COMMAND: Command = Command {
    name: "permissions",
    description: "Show what the agent may do, test a command, or remove a permanent approval",
    default_permissions: None,
    subcommands: Subcommands::Many(&[
        Subcommand {
            name: "show",
            description: "Show the agent's profile and its permanent approvals",
            run: |call| Box::pin(show(call)),
            right: Right::Read,
            private: true,
            options: &[AGENT_OPTION],
        },
        Subcommand {
            name: "check",
            description: "Show whether the agent may run a command, and why",
            run: |call| Box::pin(check(call)),
            right: Right::Read,
            private: true,
            options: &[required("command", "Command, for example git status", OptionKind::Text(1000)), AGENT_OPTION],
        },
        Subcommand {
            name: "remove",
            description: "Remove a permanent approval",
            run: |call| Box::pin(remove(call)),
            right: Right::Change,
            private: false,
            options: &[required("number", "Number in /permissions show", OptionKind::Number(1)), AGENT_OPTION],
        },
    ]),
};

/// Rules and permanent approvals that are listed.
const MAX_LISTED: usize = 40;

async fn show(call: &Invocation) -> Result<Response> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    let profile = usable_profile(&agent.settings)?;
    let name = inline_text(call, &agent.settings.name, 64);
    let of = match agent.permissions.as_str() {
        Some(of) => format!("the profile {}", inline_code(call, of, 64)),
        None => "a separate profile".to_owned(),
    };
    let spec = profile.spec();
    let lists = [("never", &spec.deny), ("asks", &spec.ask), ("may", &spec.allow)];
    let rules: Vec<String> = lists
        .iter()
        .flat_map(|(word, list)| list.iter().map(move |rule| format!("{word}: {}", plain_pattern(rule))))
        .collect();
    let mut shown: Vec<String> = rules.iter().take(MAX_LISTED).cloned().collect();
    if rules.len() > MAX_LISTED {
        shown.push(format!("and {} more rules", rules.len() - MAX_LISTED));
    }
    shown.push(format!("everything else: {}", if spec.default == Decision::Ask { "asks" } else { "never" }));
    let network = if spec.network { "Commands may use the network." } else { "Commands have no network." };
    let mut text = format!("**{name}** has {of}. {network}\n{}", code_block(call, &shown.join("\n")));
    let approved: Vec<&AgentRule> = profile.agent_rules().collect();
    if !approved.is_empty() {
        text.push_str("\nPermanent approvals (`/permissions remove` removes one):");
        let lines = approved.iter().take(MAX_LISTED).map(|rule| format!("\n{}", rule_line(call, rule)));
        text.extend(lines);
        if approved.len() > MAX_LISTED {
            text.push_str(&format!("\nand {} more", approved.len() - MAX_LISTED));
        }
    }
    Ok(Response::new(text))
}

/// Shows the pattern of a rule without what all patterns have, so that `tool:bash:.*` is `bash`.
fn plain_pattern(pattern: &str) -> &str {
    let action = pattern.strip_prefix("tool:").unwrap_or(pattern);
    action.strip_suffix(":.*").unwrap_or(action)
}

fn rule_line(call: &Invocation, rule: &AgentRule) -> String {
    let text = rule.rule.strip_prefix("tool:bash:").unwrap_or(&rule.rule);
    format!(
        "{}\\. {} · {} by {}",
        rule.number,
        inline_code(call, text, 200),
        relative_time(rule.created_at),
        format_requester(&rule.created_by)
    )
}

async fn check(call: &Invocation) -> Result<Response> {
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    let action = format!("tool:bash:{}", call.args.require_text("command")?);
    let params = CheckParams { agent: Some(agent.settings.name.clone()), action };
    let ops = call.caller.ops();
    let verdict =
        with_expected_agent(agent.settings.id, check::check(&ops.agent_resolver, &ops.sandbox, &ops.mcp, params))
            .await?;
    let name = inline_text(call, &agent.settings.name, 64);
    let what = match verdict.decision {
        Decision::Allow => "may run this without asking",
        Decision::Ask => "asks before it runs this",
        Decision::Deny => "may not run this",
    };
    let why = code_block(call, &verdict_reason(&verdict.rule, verdict.decision));
    Ok(Response::new(format!("**{name}** {what}:\n{why}")))
}

/// Says in plain words which rule decided.
fn verdict_reason(rule: &Rule, decision: Decision) -> String {
    match rule {
        Rule::Pattern { .. } => match decision {
            Decision::Allow => "its permissions allow this kind of action".to_owned(),
            Decision::Ask => "its permissions ask before this kind of action".to_owned(),
            Decision::Deny => "its permissions deny this kind of action".to_owned(),
        },
        Rule::Always { .. } => "exactly this was allowed permanently".to_owned(),
        Rule::Agent { number, rule } => format!("permanent approval {number} allows it: {rule}"),
        Rule::Default => "its permissions have no rule for this".to_owned(),
        Rule::Shell { reason } => reason.clone(),
    }
}

async fn remove(call: &Invocation) -> Result<Response> {
    let number = call.args.number("number").unwrap_or(0);
    let agent = call.caller.resolve_agent(call.args.text("agent"))?;
    let rule = usable_profile(&agent.settings)?.agent_rules().find(|rule| rule.number == number).cloned();
    let rule = rule.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("No permanent approval {number}"))
            .hint("list them: `/permissions show`")
    })?;
    let agent = audited_agent(call, "permissions.remove_rule").await?;
    let params = RemoveRuleParams { agent: Some(agent.settings.name.clone()), number, rule: Some(rule.rule) };
    let ops = call.caller.ops();
    let removed = remove_rule::remove_rule_as(&ops.agent_editor, params, &call.caller.member.requester);
    let removed = with_expected_agent(agent.settings.id, removed).await?.removed;
    Ok(Response::new(format!("Removed: {}", rule_line(call, &removed))))
}
