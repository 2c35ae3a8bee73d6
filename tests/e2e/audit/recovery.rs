//! The log is in chorus.db alone: what becomes of that must not lose it where it can be read.

use std::fs;

use chorus_proto::methods::audit::{Verify, VerifyParams};
use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_tests::ctl::chorusctl;

use super::chain::decided;
use crate::approvals::{audit, queue_calls};

#[test]
fn a_rebuild_and_a_crash_keep_it() {
    let mut fixture = decided(3);
    let before = audit(&mut fixture.client());
    chorusctl(&fixture.home, ["doctor", "--rebuild"]).expect_success();
    assert_eq!(audit(&mut fixture.client()), before);
    fixture.kill();
    chorusctl(&fixture.home, ["--no-autostart", "doctor", "--rebuild"]).expect_success();
    fixture.start();
    assert_eq!(audit(&mut fixture.client()), before);
}

#[test]
fn out_of_a_damaged_catalog_come_the_rows_that_the_copy_lacks() {
    for keep_copy in [true, false] {
        let mut fixture = decided(2);
        // Nothing to save, and so no summary that a model would be asked for.
        let clear = ClearParams { conversation: None, agent: Some("a".into()), save: false };
        fixture.client().call::<Clear>(&clear).expect("cleared");
        // The copy of this stop has two rows.
        assert!(fixture.stop().success());
        fixture.start();
        queue_calls(&fixture, 3);
        fixture.spawn_send("a", "And now?").join().expect("the client").expect("a turn");
        let before = audit(&mut fixture.client());
        assert_eq!(before.len(), 5);
        fixture.kill();
        if !keep_copy {
            fs::remove_file(fixture.home.path.join("db/chorus.db.bak")).expect("removed");
        }
        damage(&fixture.home.path.join("db/chorus.db"));
        let said = chorusctl(&fixture.home, ["doctor", "--rebuild"]).expect_success();
        assert!(said.contains("kept the damaged database as"), "{said}");
        fixture.start();
        assert_eq!(audit(&mut fixture.client()), before, "with a copy: {keep_copy}");
        assert!(fixture.client().call::<Verify>(&VerifyParams {}).expect("a walk").intact);
    }
}

/// Damages an index of another table: the rows of the log can all be read.
fn damage(path: &std::path::Path) {
    let database = rusqlite::Connection::open(path).expect("the catalog");
    database.pragma_update(None, "journal_mode", "DELETE").expect("one file");
    let root = "SELECT rootpage FROM sqlite_master WHERE name = 'usage_by_time'";
    let root: u64 = database.query_row(root, [], |row| row.get(0)).expect("an index");
    let page: u64 = database.pragma_query_value(None, "page_size", |row| row.get(0)).expect("a size");
    database.close().expect("closed");
    let mut bytes = fs::read(path).expect("the file");
    let start = ((root - 1) * page) as usize;
    bytes[start..start + page as usize].fill(0x55);
    fs::write(path, bytes).expect("written");
}
