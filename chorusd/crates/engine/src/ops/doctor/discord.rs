//! Checks Discord: the token, the state of the connection, and the budget of new gateway sessions.

use chorus_base::error::Result;
use chorus_config::KeySource;
use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_runtime::run_blocking;

use super::{check, check_with};
use crate::ops::Ops;
use crate::ops::discord::{ConnectionState, connected_elsewhere, delivery_problems, guild_allowlist, identify_budget};

const CHECK_NAME: &str = "Discord";
/// With fewer sessions left than this, the budget is reported as low.
const LOW_BUDGET: u32 = 10;

/// Returns why the agent of `dm_agent` answers nobody.
async fn unanswered_direct_messages(ops: &Ops) -> Option<String> {
    let config = &ops.config.discord;
    let name = config.dm_agent.as_deref()?;
    let is_of_other = async || {
        let others = ops.agent_resolver.claims.others().await.unwrap_or_default();
        others.into_iter().find(|agent| agent.settings.name == name)
    };
    let found = match ops.agents.by_name(name) {
        Some(agent) => Some(agent),
        None => is_of_other().await,
    };
    let Some(agent) = found else {
        return Some(format!("no agent {name}, so direct messages are not answered"));
    };
    (config.dm_allow.is_empty() && agent.channel().is_none())
        .then(|| format!("{name} has no channel, so nobody may write direct messages"))
}

/// Runs all checks of Discord.
pub(super) async fn checks(ops: &Ops) -> Result<Vec<Check>> {
    let config = ops.config.discord.clone();
    let place = match &config.token {
        KeySource::None => String::new(),
        KeySource::Env { variable, .. } => format!("token in {variable}"),
        KeySource::File(path) => format!("token in {}", path.display()),
        KeySource::Credential { name, .. } => format!("token in the credential {name}"),
    };
    let own = config.has_official_urls();
    let found = run_blocking(move || Ok(config.read_token())).await?;
    if matches!(found, Ok(None)) {
        let hint = if own {
            "create an application in Discord's developer portal, set DISCORD_TOKEN in the daemon's \
             environment, then restart the daemon"
        } else {
            "DISCORD_TOKEN is only sent to Discord itself: set `token_env` in [discord] for this server"
        };
        return Ok(vec![check_with(CHECK_NAME, Verdict::Info, "off (no token configured)", hint)]);
    }
    let mut checks = vec![match ops.discord.state() {
        ConnectionState::Connected => {
            let servers = match ops.discord.guild_count() {
                0 => None,
                1 => Some("1 server".to_owned()),
                count => Some(format!("{count} servers")),
            };
            match servers {
                Some(servers) => check(CHECK_NAME, Verdict::Ok, format!("connected, {servers}; {place}")),
                None => {
                    let hint = "invite the application; see docs/DISCORD.md";
                    check_with(CHECK_NAME, Verdict::Warn, "connected, but not a member of any server", hint)
                }
            }
        }
        ConnectionState::Off => check(CHECK_NAME, Verdict::Info, format!("not started; {place}")),
        ConnectionState::Connecting => check(CHECK_NAME, Verdict::Info, format!("connecting; {place}")),
        ConnectionState::Elsewhere { node } => {
            check(CHECK_NAME, Verdict::Ok, format!("{}; {place}", connected_elsewhere(&node)))
        }
        ConnectionState::Waiting { until, why } => {
            let until = until.strftime("%Y-%m-%d %H:%M:%S UTC");
            check_with(CHECK_NAME, Verdict::Warn, format!("{why}; next attempt at {until}"), "nothing to do")
        }
        ConnectionState::Stopped { why, hint } => check_with(CHECK_NAME, Verdict::Fail, why, hint),
    }];
    for (name, what, hint) in [
        ("Discord channels", delivery_problems::unusable_channels(ops), delivery_problems::UNUSABLE_CHANNELS_HINT),
        ("Discord threads", delivery_problems::thread_problems(ops), delivery_problems::THREADS_HINT),
        ("Discord posts", delivery_problems::blocked_posts(ops), delivery_problems::BLOCKED_POSTS_HINT),
    ] {
        if !what.is_empty() {
            checks.push(check_with(name, Verdict::Warn, what.join("; "), hint));
        }
    }
    if let Some(why) = unanswered_direct_messages(ops).await {
        let hint = "fix `dm_agent` or `dm_allow` in [discord]; see docs/DISCORD.md";
        checks.push(check_with("Discord direct messages", Verdict::Warn, why, hint));
    }
    let strangers = ops.discord.unserved_guilds();
    if !strangers.is_empty() {
        checks.push(check_with("Discord servers", Verdict::Warn, strangers.join("; "), guild_allowlist::UNSERVED_HINT));
    }
    let dropped = ops.store.catalog.discord.outbox.dropped_notices().await?;
    if let Some(last) = dropped.last {
        let notices = if dropped.count == 1 { "notice" } else { "notices" };
        let last = last.strftime("%Y-%m-%d %H:%M UTC");
        let text = format!("dropped {} unposted {notices} after 24 hours, the last at {last}", dropped.count);
        checks.push(check_with("Discord notices", Verdict::Info, text, "see new events: chorusctl events"));
    }
    let budget = identify_budget::read_budget(ops).await?;
    let text =
        format!("{} of {} session starts left within 24 hours", budget.left, identify_budget::max_identifies(ops));
    checks.push(match budget.left {
        0 => check_with(
            "Discord sessions",
            Verdict::Warn,
            text,
            "check why the daemon restarts so often: chorusctl daemon logs",
        ),
        1..LOW_BUDGET => check("Discord sessions", Verdict::Warn, text),
        _ => check("Discord sessions", Verdict::Ok, text),
    });
    Ok(checks)
}
