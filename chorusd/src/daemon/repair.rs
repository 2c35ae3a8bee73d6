//! Repairs of a home that no daemon has: a new index, or what a damaged journal still holds.

use chorus_proto::methods::doctor::{DoctorParams, DoctorResult};
use chorus_proto::paths::Places;

use super::{Daemon, configure, own_program, redactor, runtime};
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::Result;
use crate::lifecycle::{home, lock::InstanceLock, log};
use crate::ops;
use crate::store::damage;

/// Rebuilds the index of `places`, or salvages what its journal has, while no daemon runs, and reports how everything is.
///
/// # Errors
/// Why it could not be done; a daemon that runs is one reason.
pub fn repair(places: &Places, params: DoctorParams) -> Result<DoctorResult> {
    let config = Config { resume_on_start: true, ..configure(places)? };
    home::prepare(&places.home)?;
    let _lock = InstanceLock::take(&places.home)?;
    let redactor = redactor(places, &config);
    log::start(&places.home, config.log_level, false, redactor.clone())?;
    let now = Clock::system().now();
    if params.salvage {
        damage::set_journal_aside(&places.home, now)?;
    }
    let set_aside = if params.rebuild { damage::set_aside(&places.home, now)? } else { None };
    if let Some(aside) = &set_aside {
        tracing::warn!("the catalog is damaged; it was set aside as {}", aside.display());
    }
    let runtime = runtime()?;
    let mut found = runtime.block_on(async {
        let ops = Daemon::start(places, config, Clock::system(), (&own_program()?, redactor)).await?.ops;
        let found = ops::doctor::doctor(&ops, params).await;
        ops.store.close().await?;
        found
    })?;
    if let Some(rebuilt) = &mut found.rebuilt {
        rebuilt.set_aside = set_aside.map(|path| path.to_string_lossy().into_owned());
    }
    Ok(found)
}
