//! The operation `schedule.show`.

use chorus_base::error::Result;
use chorus_proto::methods::schedule::{ShowParams, ShowResult};

use super::add::SHOWN_TIMES;
use super::{Schedules, timetable};

/// Returns a schedule with its next times.
///
/// # Errors
/// `agent_not_found`, `not_found`.
pub async fn show(schedules: &Schedules, params: ShowParams) -> Result<ShowResult> {
    let (agent, row) = schedules.find(params.agent.as_deref(), &params.name).await?;
    let mut next: Vec<_> = row.progress.next_at.into_iter().collect();
    if let (Some(first), Ok(times)) = (row.progress.next_at, timetable(&row)) {
        next.extend(times.next_times(first, SHOWN_TIMES - 1));
    }
    Ok(ShowResult { schedule: schedules.describe(row, &agent.settings.name), next })
}
