//! Tests of the order of the walk and of stamps.

use super::*;

#[test]
fn what_is_of_a_running_daemon_stays_out_and_workspaces_come_last() {
    for (path, is_dir, due) in [
        ("run", true, PathRule::Skip),
        ("log", true, PathRule::Skip),
        ("db", true, PathRule::Include),
        ("db/live.db-wal", false, PathRule::Skip),
        ("db/fingerprint.key", false, PathRule::Include),
        ("db/home.id", false, PathRule::Include),
        ("agents/a/workspace", true, PathRule::Workspace),
        ("agents/a/workspace", false, PathRule::Include),
        ("agents/a/docs/workspace", true, PathRule::Include),
        ("agents/a/sessions/.new-1", false, PathRule::Skip),
        ("trash/x/content/workspace", true, PathRule::Workspace),
        ("trash/x/content", true, PathRule::Include),
        ("config.toml", false, PathRule::Include),
    ] {
        assert_eq!(path_rule(Path::new(path), is_dir), due, "{path}");
    }
}

#[test]
fn the_second_of_a_stamp_is_read_back() {
    assert_eq!(ctime_second("1:2:3:4.000000005:678.000000009"), Some(678));
}
