//! Returns free memory to the system. Otherwise glibc's allocator keeps it in the arenas of the threads, and SQLite
//! keeps pages in its own caches although the kernel caches them too. When the daemon has become calm, the pages of its
//! program are released as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chorus_store::Store;
use rustix::time::{ClockId, clock_gettime};

use super::program_pages;

/// Frees within this time are returned together.
const TRIM_DELAY: Duration = Duration::from_millis(500);

static TRIM_SCHEDULED: AtomicBool = AtomicBool::new(false);

/// The daemon is calm if it has used little processor time for this long.
const CALM_TIME: Duration = Duration::from_secs(5);
/// Processor time within [`CALM_TIME`] that is little: a hundredth of a core.
const CALM_CPU_TIME: Duration = Duration::from_millis(50);

static RELEASE_SCHEDULED: AtomicBool = AtomicBool::new(false);

/// Blocks of at least this many bytes are mapped separately, so that freeing one returns it to the system.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD_BYTES: core::ffi::c_int = 1 << 20;

/// Makes the allocator return large blocks as soon as they are freed. By default, freeing the first one makes it keep
/// up to twice as much of such blocks in every arena: 32 MiB per thread after a frame of 16 MiB. Call it when the
/// process starts.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the allocator of glibc is told so by a call that no safe wrapper has")]
pub fn set_malloc_thresholds() {
    // SAFETY: passes no pointers and sets two numbers. If a call is refused, the default stays.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, MMAP_THRESHOLD_BYTES);
    }
}

/// Does nothing: the allocator is not glibc's.
#[cfg(not(target_env = "gnu"))]
pub fn set_malloc_thresholds() {}

/// Returns free memory to the system in a moment, once for all calls until then.
pub fn schedule_trim(store: &Arc<Store>) {
    if TRIM_SCHEDULED.swap(true, Ordering::Relaxed) {
        return;
    }
    let store = store.clone();
    chorus_runtime::spawn(async move {
        tokio::time::sleep(TRIM_DELAY).await;
        TRIM_SCHEDULED.store(false, Ordering::Relaxed);
        store.release_memory().await;
        let _ = chorus_runtime::spawn_blocking(trim_heap).await;
        release_program_when_calm();
    });
}

/// Releases the pages of the program as soon as the daemon is calm, once for all calls until then; and once more if it
/// stays calm, because what ends a burst of work comes later.
fn release_program_when_calm() {
    if RELEASE_SCHEDULED.swap(true, Ordering::Relaxed) {
        return;
    }
    chorus_runtime::spawn(async move {
        let (mut used, mut calm_periods) = (cpu_time(), 0);
        while calm_periods < 2 {
            tokio::time::sleep(CALM_TIME).await;
            let now = cpu_time();
            if now.saturating_sub(used) < CALM_CPU_TIME {
                calm_periods += 1;
                program_pages::release();
            } else {
                calm_periods = 0;
            }
            used = now;
        }
        RELEASE_SCHEDULED.store(false, Ordering::Relaxed);
    });
}

/// Returns the processor time that this process has used.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

/// Returns free memory to the system now.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the allocator of glibc is told so by a call that no safe wrapper has")]
pub(crate) fn trim_heap() {
    // SAFETY: passes no pointers. It releases whole free pages, under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: the allocator is not glibc's.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn trim_heap() {}
