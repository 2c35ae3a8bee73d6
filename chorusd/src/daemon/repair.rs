//! Offline repairs of a home without a running daemon: rebuilds the catalog's index, or salvages what a damaged journal
//! still holds.

use chorus_base::error::Result;
use chorus_clock::Clock;
use chorus_config::Config;
use chorus_engine::lifecycle::instance_lock::InstanceLock;
use chorus_engine::lifecycle::{home_dir, log};
use chorus_engine::ops;
use chorus_engine::ops::session::import::OnProgress;
use chorus_proto::methods::doctor::{DoctorParams, DoctorResult};
use chorus_proto::paths::InstancePaths;
use chorus_store::integrity;

use super::{Daemon, build_redactor, build_runtime, config_reader, current_program, load_config};

/// Rebuilds the index of `places` or salvages its journal, and reports the state of the home. Fails if a daemon is
/// running.
pub fn repair_home(places: &InstancePaths, params: DoctorParams, progress: OnProgress) -> Result<DoctorResult> {
    let config = Config { resume_on_start: true, ..load_config(places)? };
    home_dir::prepare(&places.home)?;
    let _lock = InstanceLock::acquire(&places.home)?;
    let redactor = build_redactor(places, &config);
    log::start(&places.home, config.log_level, false, redactor.clone())?;
    let now = Clock::system().now();
    if params.salvage {
        integrity::set_journal_aside(&places.home, now)?;
    }
    let set_aside = if params.rebuild { integrity::set_catalog_aside(&places.home, now)? } else { None };
    if let Some(aside) = &set_aside {
        tracing::warn!("the catalog is damaged; moved it to {}", aside.display());
    }
    let runtime = build_runtime()?;
    let mut found = runtime.block_on(async {
        let ops =
            Daemon::start(places, (config, config_reader(places)), Clock::system(), (&current_program()?, redactor))
                .await?
                .ops;
        let found = ops::doctor::doctor(&ops, params, progress).await;
        ops.store.close().await?;
        found
    })?;
    if let Some(rebuilt) = &mut found.rebuilt {
        rebuilt.set_aside = set_aside.map(|path| path.to_string_lossy().into_owned());
    }
    Ok(found)
}
