//! The operation `schedule.run`.

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::schedule::{RunParams, RunResult};

use super::Schedules;

/// Runs a schedule now, besides its times; also one that is paused or done.
///
/// # Errors
/// `agent_not_found`, `not_found`; `model_unavailable` if the agent has no model; `conflict` if a run of it is under way.
pub async fn run(schedules: &Schedules, params: RunParams) -> Result<RunResult> {
    let (agent, row) = schedules.find(params.agent.as_deref(), &params.name).await?;
    if let Some(failure) = schedules.missing_model(&agent) {
        return Err(failure);
    }
    let (name, now) = (&agent.settings.name, schedules.clock.now());
    let claimed = schedules
        .change(row.id, |row| {
            if row.progress.pending_at.is_some() {
                let what = format!("a run of the schedule {} is running already", row.name);
                return Err(Error::new(ErrorKind::Conflict, what)
                    .hint(format!("see it: chorusctl --agent {name} conversations")));
            }
            row.progress.pending_at = Some(now);
            Ok(true)
        })
        .await?;
    let Some((row, _)) = claimed else { return Err(schedules.unknown_error(&agent, &params.name).await) };
    schedules.changed.notify_one();
    Ok(RunResult { schedule: schedules.describe(row, name) })
}
