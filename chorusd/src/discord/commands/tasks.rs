//! `/tasks`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::tasks::{ListParams, ShowParams, StopParams, Task};

use super::call::Call;
use super::definitions::Right;
use super::reply::Reply;
use super::words::{ago, block, code, plain};
use crate::failure::{Failure, Result};
use crate::ops::select::meaning;
use crate::ops::tasks::{list, show, stop};

/// Tasks of a list; the newest of those that have ended.
const MOST: u64 = 20;

pub async fn list(call: &Call) -> Result<Reply> {
    let agent = call.by.agent(call.given.text("agent"))?;
    let name = agent.facts.name.clone();
    let params = ListParams { agent: Some(name.clone()), limit: Some(MOST), ..ListParams::default() };
    let found = meaning(agent.facts.id, list::list(call.by.ops(), params)).await?;
    if found.tasks.is_empty() {
        return Ok(Reply::new(format!("**{}** has run nothing in the background.", plain(call, &name, 64))));
    }
    let mut lines: Vec<String> = found.tasks.iter().map(|task| line(call, task)).collect();
    if found.next.is_some() {
        lines.push("There are more: `chorusctl tasks list` shows them.".to_owned());
    }
    Ok(Reply::new(lines.join("\n")))
}

fn line(call: &Call, task: &Task) -> String {
    let end = match (task.exit_code, task.signal) {
        (Some(code), _) if code != 0 => format!(" with {code}"),
        (None, Some(signal)) => format!(" by signal {signal}"),
        _ => String::new(),
    };
    let (status, when) = (task.status.as_str(), ago(task.ended_at.unwrap_or(task.started_at)));
    format!("{} · {status}{end} {when} · {}", code(call, &task.id, 32), code(call, &task.command, 120))
}

/// The task that is meant, where it is one of an agent that whoever asks may look at.
async fn find(call: &Call) -> Result<Task> {
    let id = call.given.must("id")?;
    let unknown = || {
        let id: String = id.chars().take(40).collect();
        Failure::new(ErrorKind::NotFound, format!("there is no task {id:?} of an agent that you may look at"))
            .hint("`/tasks list` shows them")
    };
    let found = match show::show(call.by.ops(), ShowParams { id: id.trim().to_owned() }).await {
        Err(failure) if failure.kind == ErrorKind::NotFound => return Err(unknown()),
        found => found?,
    };
    // That it is another's is not told: it would say that it is there.
    call.by.agent(Some(&found.task.agent)).map_err(|_| unknown())?;
    Ok(found.task)
}

pub async fn show(call: &Call) -> Result<Reply> {
    let task = find(call).await?;
    let began = ago(task.started_at);
    let log = "`chorusctl tasks logs` has what it printed.";
    Ok(Reply::new(format!("{}\nBegan {began}.\n{}\n{log}", line(call, &task), block(call, &task.command))))
}

pub async fn stop(call: &Call) -> Result<Reply> {
    let task = find(call).await?;
    let agent = call.by.agent(Some(&task.agent))?;
    call.by.note(&agent, &format!("tasks.stop:{}", task.id), Right::Change).await?;
    let done = stop::stop(call.by.ops(), StopParams { id: task.id }).await?;
    let what = if done.stopped { "Stopped" } else { "It had ended already" };
    Ok(Reply::new(format!("{what}: {}", line(call, &done.task))))
}
