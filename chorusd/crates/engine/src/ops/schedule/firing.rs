//! The claim of a schedule that is due.

use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_catalog::{ScheduleProgress, ScheduleRow, ScheduleState};
use chorus_proto::methods::schedule::{MissedRuns, RunOutcome, RunRecord};
use chorus_schedule::Timetable;
use jiff::Timestamp;
use uuid::Uuid;

use super::{Schedules, timetable};

/// Number of runs that are recorded with a schedule.
pub(super) const MAX_RUNS: usize = 20;

/// How late a run may begin without counting as missed.
const GRACE: Duration = Duration::from_secs(60);

/// The outcome of a schedule that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fired {
    /// A run is under way, or there is none: in any case the schedule is not due any more.
    Moved { runs: bool },
    /// It was not due.
    Unchanged,
}

impl Schedules {
    /// Gives a schedule that is due its next time, and claims a run unless it was missed and is not made up for.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn fire(&self, id: Uuid, has_agent: bool) -> Result<Fired> {
        let now = self.clock.now();
        let moved = self
            .change(id, |row| match row.progress.next_at.filter(|due| *due <= now) {
                None => Ok(false),
                // It comes back with its agent.
                Some(_) if !has_agent => {
                    row.progress.next_at = None;
                    Ok(true)
                }
                Some(due) => {
                    match timetable(row) {
                        Ok(times) => claim(row, &times, due, now),
                        Err(problem) => give_up(row, due, now, &problem),
                    }
                    Ok(true)
                }
            })
            .await?;
        Ok(match moved {
            Some((row, true)) => Fired::Moved { runs: row.progress.pending_at.is_some() },
            _ => Fired::Unchanged,
        })
    }
}

/// Moves a schedule that was due at `due` on to its next time.
fn claim(row: &mut ScheduleRow, times: &Timetable, due: Timestamp, now: Timestamp) {
    let missed = row.missed;
    let progress = &mut row.progress;
    progress.next_at = times.next_after(now.max(due));
    if progress.next_at.is_none() {
        progress.state = ScheduleState::Done;
    }
    // Of several times that have passed, one within the grace period is not missed.
    let current = now.checked_sub(GRACE).ok().and_then(|begin| times.next_after(begin)).filter(|time| *time <= now);
    let is_late = current.is_none() && now.duration_since(due).unsigned_abs() > GRACE;
    if missed == MissedRuns::Skip && current.is_some_and(|current| due < current) {
        skip(progress, due, now);
    }
    let due = current.unwrap_or(due);
    match (progress.pending_at, missed) {
        (None, MissedRuns::Skip) if is_late => skip(progress, due, now),
        (None, _) => progress.pending_at = Some(due),
        // One run comes after the one that is under way, however often the schedule is due until then.
        (Some(_), MissedRuns::Run) => progress.overdue_at = Some(due),
        (Some(_), MissedRuns::Skip) => skip(progress, due, now),
    }
}

/// Records that a run was missed. Of several in a row only the last one is recorded.
fn skip(progress: &mut ScheduleProgress, due_at: Timestamp, now: Timestamp) {
    progress.runs.retain({
        let mut is_newest = true;
        move |run| !std::mem::take(&mut is_newest) || run.outcome != RunOutcome::Skipped
    });
    let outcome = RunOutcome::Skipped;
    record(progress, RunRecord { due_at, ended_at: now, outcome, turn_id: None, error: None });
}

/// Ends a schedule whose times cannot be computed, for example because the system has lost its time zone.
fn give_up(row: &mut ScheduleRow, due_at: Timestamp, now: Timestamp, problem: &Error) {
    (row.progress.state, row.progress.next_at) = (ScheduleState::Paused, None);
    let (outcome, error) = (RunOutcome::Failed, Some(problem.message.clone()));
    record(&mut row.progress, RunRecord { due_at, ended_at: now, outcome, turn_id: None, error });
}

/// Adds a run to those that are recorded.
pub(super) fn record(progress: &mut ScheduleProgress, run: RunRecord) {
    progress.runs.insert(0, run);
    progress.runs.truncate(MAX_RUNS);
}

#[cfg(test)]
mod tests {
    use chorus_catalog::ScheduleRule;

    use super::*;

    fn time(text: &str) -> Timestamp {
        format!("2026-03-02T{text}Z").parse().unwrap()
    }

    fn hourly(missed: MissedRuns, pending_at: Option<Timestamp>) -> ScheduleRow {
        ScheduleRow {
            id: Uuid::nil(),
            agent: Uuid::nil(),
            name: "s".into(),
            rule: ScheduleRule::EverySeconds(3600),
            time_zone: "UTC".into(),
            message: "m".into(),
            missed,
            created_at: time("00:00:00"),
            created_by: "owner".into(),
            progress: ScheduleProgress {
                state: ScheduleState::Active,
                next_at: Some(time("07:00:00")),
                pending_at,
                overdue_at: None,
                runs: Vec::new(),
            },
            version: 0,
        }
    }

    /// The next time, the pending run, the one after it, and the number of skipped ones.
    fn claimed(mut row: ScheduleRow, now: &str) -> (String, Option<Timestamp>, Option<Timestamp>, usize) {
        let times = timetable(&row).unwrap();
        claim(&mut row, &times, time("07:00:00"), time(now));
        let ScheduleProgress { next_at, pending_at, overdue_at, runs, .. } = row.progress;
        (next_at.unwrap().strftime("%H:%M").to_string(), pending_at, overdue_at, runs.len())
    }

    #[test]
    fn a_run_that_is_on_time_is_claimed() {
        for missed in [MissedRuns::Run, MissedRuns::Skip] {
            let due = Some(time("07:00:00"));
            assert_eq!(claimed(hourly(missed, None), "07:00:00"), ("08:00".into(), due, None, 0));
            assert_eq!(claimed(hourly(missed, None), "07:00:59"), ("08:00".into(), due, None, 0));
        }
    }

    #[test]
    fn missed_runs_are_one_run_or_none() {
        let due = Some(time("07:00:00"));
        assert_eq!(claimed(hourly(MissedRuns::Run, None), "09:30:00"), ("10:00".into(), due, None, 0));
        assert_eq!(claimed(hourly(MissedRuns::Skip, None), "09:30:00"), ("10:00".into(), None, None, 1));
        // The last one that has passed is on time.
        let due = Some(time("09:00:00"));
        assert_eq!(claimed(hourly(MissedRuns::Run, None), "09:00:20"), ("10:00".into(), due, None, 0));
        assert_eq!(
            claimed(hourly(MissedRuns::Skip, None), "09:00:20"),
            ("10:00".into(), due, None, 1),
            "the earlier ones"
        );
    }

    #[test]
    fn one_run_comes_after_the_one_under_way_or_none() {
        let (pending, due) = (Some(time("06:00:00")), Some(time("07:00:00")));
        assert_eq!(claimed(hourly(MissedRuns::Run, pending), "07:00:00"), ("08:00".into(), pending, due, 0));
        assert_eq!(claimed(hourly(MissedRuns::Skip, pending), "07:00:00"), ("08:00".into(), pending, None, 1));
    }

    #[test]
    fn skipped_runs_in_a_row_are_one_record() {
        let mut row = hourly(MissedRuns::Skip, Some(time("06:00:00")));
        let times = timetable(&row).unwrap();
        for hour in 7..17 {
            let due = time(&format!("{hour:02}:00:00"));
            claim(&mut row, &times, due, due);
        }
        assert_eq!(row.progress.runs.iter().map(|run| run.due_at).collect::<Vec<_>>(), [time("16:00:00")]);
    }
}
