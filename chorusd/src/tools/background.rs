//! Starting a command in the background, for `bash`.

use std::ffi::OsString;

use super::Scene;
use super::tool::Outcome;
use crate::sandbox::{Confinement, Job, Limits};
use crate::tasks::Start;

/// Starts `command`, which was judged and allowed, and answers at once.
pub async fn start(command: String, scene: &Scene) -> Outcome {
    tokio::select! {
        biased;
        () = scene.cancel.cancelled() => return Outcome::error("it was not started: the turn was cancelled"),
        _ = scene.world.sandbox.prepared() => {}
    }
    let argv = ["bash", "--noprofile", "--norc", "-c", &command].map(OsString::from);
    let confinement = Confinement {
        workspace: scene.workspace(),
        network: scene.network(),
        // It may take as long as it takes.
        limits: Limits { time: None, ..Limits::default() },
    };
    let job = Job { argv: argv.to_vec(), env: Vec::new(), confinement };
    let (agent, agent_name, dir) = (scene.agent, scene.agent_name.clone(), scene.dir.clone());
    let (command, redactor) = (scene.kept(command).text, scene.redactor.clone());
    let start = Start { agent, agent_name, dir, command, job, redactor };
    let started = scene.world.tasks.start(&scene.world.sandbox, start).await;
    match started {
        Ok(row) => Outcome::done(format!(
            "task {} runs in the background (pid {}). When it ends, a message tells you its exit status and its last lines; \
             do not wait for it. To look at its output before that, let the command write into a file of the workspace.",
            row.id, row.pid
        )),
        Err(why) => Outcome::error(why),
    }
}
