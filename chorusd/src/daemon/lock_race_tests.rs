//! Tests of starting beside clients. They are here because no test of this crate starts a process: one that is being started has
//! the locks of its parent for a moment.

use std::io;

use chorus_engine::lifecycle::instance_lock::InstanceLock;

#[test]
fn clients_that_look_do_not_keep_a_daemon_from_starting() -> io::Result<()> {
    let home = tempfile::tempdir()?;
    std::fs::create_dir(home.path().join("run"))?;
    let end = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !end.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = chorus_proto::lock_file::lock_holder(home.path());
                }
            });
        }
        let started = (0..200).filter(|_| InstanceLock::acquire(home.path()).is_ok()).count();
        end.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(started, 200);
    });
    Ok(())
}
