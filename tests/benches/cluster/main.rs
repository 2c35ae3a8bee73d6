//! Bench: daemons that share agents through PostgreSQL, all on this machine: a request to another node, a page of 1,000,000 sessions,
//! an agent that moves, one whose node is killed, 10,000 agents that rest, a restart with them, and their takeover. Arguments name some of these parts.

mod agents;
mod forwarded;
mod history;
mod kills;
mod moves;
mod nodes;

use chorus_tests::measure::use_realtime_scheduler;
use chorus_tests::postgres::Result;

use self::nodes::Nodes;

fn main() -> Result {
    use_realtime_scheduler();
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_asked = |part: &str| asked.is_empty() || asked.iter().any(|name| name == part);
    if is_asked("forwarded") {
        forwarded::measure()?;
    }
    if is_asked("history") {
        history::measure()?;
    }
    if is_asked("moves") {
        moves::measure()?;
    }
    if is_asked("kills") {
        kills::measure()?;
    }
    if is_asked("agents") {
        agents::measure()?;
    }
    Ok(())
}
