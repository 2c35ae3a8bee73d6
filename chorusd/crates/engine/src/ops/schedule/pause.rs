//! The operation `schedule.pause`.

use chorus_base::error::{Error, Result};
use chorus_catalog::ScheduleState;
use chorus_proto::ErrorKind;
use chorus_proto::methods::schedule::{PauseParams, PauseResult};

use super::Schedules;

/// Lets a schedule be due no more. A run that is under way continues, and none comes after it.
///
/// # Errors
/// `agent_not_found`, `not_found`; `conflict` if the schedule is done.
pub async fn pause(schedules: &Schedules, params: PauseParams) -> Result<PauseResult> {
    let (agent, row) = schedules.find(params.agent.as_deref(), &params.name).await?;
    let name = &agent.settings.name;
    let paused = schedules
        .change(row.id, |row| {
            if row.progress.state == ScheduleState::Done {
                let what = format!("the schedule {} is done, so it cannot be paused", row.name);
                return Err(Error::new(ErrorKind::Conflict, what)
                    .hint(format!("remove it: chorusctl --agent {name} schedule remove {}", row.name)));
            }
            let is_active = row.progress.state == ScheduleState::Active;
            (row.progress.state, row.progress.next_at) = (ScheduleState::Paused, None);
            row.progress.overdue_at = None;
            Ok(is_active)
        })
        .await?;
    let Some((row, changed)) = paused else { return Err(schedules.unknown_error(&agent, &params.name).await) };
    Ok(PauseResult { schedule: schedules.describe(row, name), changed })
}
