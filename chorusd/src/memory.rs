//! Memory that is free again goes back to the system: the allocator keeps it otherwise, in every thread's arena. So do
//! the pages in SQLite's own caches: the kernel's has them, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::store::Store;

/// What was freed in this time goes back in one go.
const SOON: Duration = Duration::from_millis(500);

static ASKED: AtomicBool = AtomicBool::new(false);

/// Gives it back in a moment, once for all who ask until then.
pub fn give_back(store: &Arc<Store>) {
    if ASKED.swap(true, Ordering::Relaxed) {
        return;
    }
    let store = store.clone();
    tokio::spawn(async move {
        tokio::time::sleep(SOON).await;
        ASKED.store(false, Ordering::Relaxed);
        store.release_memory().await;
        let _ = tokio::task::spawn_blocking(trim).await;
    });
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the allocator of glibc is told so by a call that no safe wrapper has")]
fn trim() {
    // SAFETY: takes no pointer; it looks for whole pages among what is free, under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim() {}
