//! The operation `schedule.resume`.

use chorus_base::error::{Error, Result};
use chorus_catalog::ScheduleState;
use chorus_proto::ErrorKind;
use chorus_proto::methods::schedule::{ResumeParams, ResumeResult};

use super::Schedules;

/// Lets a paused schedule be due again, at its next time from now on. Times that have passed are not made up for, except a single
/// one.
///
/// # Errors
/// `agent_not_found`, `not_found`; `conflict` if the schedule is done.
pub async fn resume(schedules: &Schedules, params: ResumeParams) -> Result<ResumeResult> {
    let (agent, row) = schedules.find(params.agent.as_deref(), &params.name).await?;
    let name = &agent.settings.name;
    let resumed = schedules
        .change(row.id, |row| match row.progress.state {
            ScheduleState::Active if row.progress.next_at.is_some() => Ok(false),
            ScheduleState::Active | ScheduleState::Paused => schedules.set_next(row),
            ScheduleState::Done => {
                let what = format!("the schedule {} is done, so it cannot be resumed", row.name);
                Err(Error::new(ErrorKind::Conflict, what).hint("add it again: chorusctl schedule add"))
            }
        })
        .await?;
    let Some((row, changed)) = resumed else { return Err(schedules.unknown_error(&agent, &params.name).await) };
    schedules.changed.notify_one();
    Ok(ResumeResult { schedule: schedules.describe(row, name), changed })
}
