//! Backups of homes with schedules.

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;

use crate::home;

#[test]
fn a_backup_has_the_schedules() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    chorusctl(&home, ["schedule", "add", "standup", "Summarize.", "--every", "4h"]).expect_success();
    let backup = home.temp_dir().join("backup");
    let restored = home.temp_dir().join("restored");
    let [backup, target] = [&backup, &restored].map(|path| path.to_str().expect("UTF-8").to_owned());
    chorusctl(&home, ["backup", &backup]).expect_success();
    chorusctl(&home, ["backup", "restore", &backup, "--home", &target]).expect_success();
    let database = rusqlite::Connection::open(restored.join("db/chorus.db")).expect("the catalog");
    let found: (String, i64) = database
        .query_row("SELECT name, every_seconds FROM schedules", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("the schedule");
    assert_eq!(found, ("standup".to_owned(), 14_400));
}
