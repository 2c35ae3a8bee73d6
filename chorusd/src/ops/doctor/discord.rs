//! Discord: whether there is a token, how the connection stands, and how often there may be a new one today.

use chorus_proto::methods::doctor::{Check, Verdict};

use super::{check, check_with};
use crate::config::Key;
use crate::failure::Result;
use crate::ops::discord::{State, identifies, outbox, servers, troubles};
use crate::ops::{Ops, blocking};

const NAME: &str = "Discord";
/// So few are soon used up.
const FEW: u32 = 10;

/// The token, the connection, and the budget of new connections.
///
/// # Errors
/// A database that cannot be read.
pub async fn checks(ops: &Ops) -> Result<Vec<Check>> {
    let config = ops.config.discord.clone();
    let place = match &config.token {
        Key::None => String::new(),
        Key::Env { variable, .. } => format!("token in {variable}"),
        Key::File(path) => format!("token in {}", path.display()),
        Key::Credential { name, .. } => format!("token in the credential {name}"),
    };
    let own = config.is_discord();
    let found = blocking(move || Ok(config.read_token())).await?;
    if matches!(found, Ok(None)) {
        let hint = if own {
            "make an application in Discord's developer portal, set DISCORD_TOKEN where chorusd starts, then restart it"
        } else {
            "DISCORD_TOKEN is sent to Discord only: name the token of this server by `token_env` in [discord]"
        };
        return Ok(vec![check_with(NAME, Verdict::Info, "off: there is no token", hint)]);
    }
    let mut checks = vec![match ops.discord.state() {
        State::Connected => {
            let servers = match ops.discord.guilds() {
                0 => None,
                1 => Some("1 server".to_owned()),
                count => Some(format!("{count} servers")),
            };
            match servers {
                Some(servers) => check(NAME, Verdict::Ok, format!("connected, {servers}; {place}")),
                None => {
                    let hint = "invite the application: docs/DISCORD.md says how";
                    check_with(NAME, Verdict::Warn, "connected, but in no server", hint)
                }
            }
        }
        State::Off => check(NAME, Verdict::Info, format!("not started; {place}")),
        State::Connecting => check(NAME, Verdict::Info, format!("connecting; {place}")),
        State::Waiting { until, why } => {
            let until = until.strftime("%Y-%m-%d %H:%M:%S UTC");
            check_with(NAME, Verdict::Warn, format!("{why}; the next try is at {until}"), "nothing has to be done")
        }
        State::Stopped { why, hint } => check_with(NAME, Verdict::Fail, why, hint),
    }];
    for (name, what, hint) in [
        ("Discord channels", troubles::channels(ops), troubles::CHANNELS),
        ("Discord posts", troubles::posts(ops), troubles::POSTS),
    ] {
        if !what.is_empty() {
            checks.push(check_with(name, Verdict::Warn, what.join("; "), hint));
        }
    }
    let strangers = ops.discord.strangers();
    if !strangers.is_empty() {
        checks.push(check_with("Discord servers", Verdict::Warn, strangers.join("; "), servers::HINT));
    }
    let dropped = outbox::notices_dropped(ops).await?;
    if let Some(last) = dropped.last {
        let notices = if dropped.count == 1 { "notice was" } else { "notices were" };
        let last = last.strftime("%Y-%m-%d %H:%M UTC");
        let text = format!("{} {notices} dropped unposted after 24 hours, the last at {last}", dropped.count);
        checks.push(check_with("Discord notices", Verdict::Info, text, "`chorusctl events` shows what is new"));
    }
    let budget = identifies::budget(ops).await?;
    let text = format!("{} of {} left within 24 hours", budget.left, identifies::MOST);
    checks.push(match budget.left {
        0 => check_with(
            "Discord sessions",
            Verdict::Warn,
            text,
            "look why it is started so often: `chorusctl daemon logs`",
        ),
        1..FEW => check("Discord sessions", Verdict::Warn, text),
        _ => check("Discord sessions", Verdict::Ok, text),
    });
    Ok(checks)
}
