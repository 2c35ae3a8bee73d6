//! The chain: as docs/PERMISSIONS.md has it, and broken by any change.

use chorus_proto::methods::audit::{Verify, VerifyParams, VerifyResult};
use chorus_tests::Daemon;
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use rusqlite::types::ValueRef;
use sha2::{Digest as _, Sha256};

use crate::approvals::{audit, in_catalog, queue_calls, results, start_fixture_of};
use crate::home;

/// So many decisions.
pub fn decided(count: usize) -> Fixture {
    let fixture = start_fixture_of("open");
    queue_calls(&fixture, count);
    fixture.spawn_send("a", "Which are there?").join().expect("the client").expect("a turn");
    fixture
}

pub fn verify(fixture: &Fixture) -> VerifyResult {
    fixture.client().call::<Verify>(&VerifyParams {}).expect("audit.verify")
}

#[test]
fn another_program_can_verify_it_by_the_page() {
    let fixture = decided(3);
    let database = rusqlite::Connection::open(fixture.home.path.join("db/chorus.db")).expect("the catalog");
    let columns = "id, at, agent_id, agent_name, turn_id, action, decision, rule, user, old, new, hash";
    let mut statement = database.prepare(&format!("SELECT {columns} FROM audit_log ORDER BY id")).expect("a query");
    let mut rows = statement.query([]).expect("rows");
    let (mut before, mut count) = (vec![0; 32], 0);
    while let Some(row) = rows.next().expect("a row") {
        let mut bytes = before;
        for (at, name) in columns.split(", ").enumerate().take(11) {
            let field: Option<Vec<u8>> = match row.get_ref(at).expect("a field") {
                ValueRef::Integer(number) => {
                    bytes.extend(number.to_be_bytes());
                    continue;
                }
                ValueRef::Null => None,
                ValueRef::Text(field) | ValueRef::Blob(field) => Some(field.to_vec()),
                ValueRef::Real(_) => panic!("no field is one"),
            };
            if ["turn_id", "old", "new"].contains(&name) {
                bytes.push(u8::from(field.is_some()));
            }
            if let Some(field) = field {
                bytes.extend((field.len() as u64).to_be_bytes());
                bytes.extend(field);
            }
        }
        before = Sha256::digest(&bytes).to_vec();
        assert_eq!(before, row.get::<_, Vec<u8>>(11).expect("a hash"));
        count += 1;
    }
    assert_eq!(count, 3);
    let newest: String = before.iter().map(|byte| format!("{byte:02x}")).collect();
    let verified = verify(&fixture);
    assert_eq!((verified.rows, verified.intact, verified.head), (3, true, Some(newest)));
}

#[test]
fn any_change_is_found_where_it_is() {
    let fixture = decided(4);
    in_catalog(&fixture.home.path, "CREATE TABLE kept AS SELECT * FROM audit_log");
    for (change, at) in [
        ("UPDATE audit_log SET decision = 'deny' WHERE id = 2", Some(2)),
        ("UPDATE audit_log SET action = action || ' ' WHERE id = 1", Some(1)),
        ("UPDATE audit_log SET at = at + 1 WHERE id = 3", Some(3)),
        ("UPDATE audit_log SET user = '' WHERE id = 3", Some(3)),
        ("UPDATE audit_log SET rule = rule || rule WHERE id = 2", Some(2)),
        ("UPDATE audit_log SET agent_name = 'b' WHERE id = 4", Some(4)),
        ("UPDATE audit_log SET turn_id = NULL WHERE id = 4", Some(4)),
        ("UPDATE audit_log SET old = '' WHERE id = 2", Some(2)),
        ("UPDATE audit_log SET hash = zeroblob(32) WHERE id = 2", Some(2)),
        ("UPDATE audit_log SET hash = x'' WHERE id = 4", Some(4)),
        ("DELETE FROM audit_log WHERE id = 2", Some(3)),
        ("DELETE FROM audit_log WHERE id = 1", Some(2)),
        ("UPDATE audit_log SET id = 9 WHERE id = 4", Some(9)),
        ("DELETE FROM audit_log WHERE id > 2", None),
        ("DELETE FROM audit_log", None),
    ] {
        assert!(verify(&fixture).intact);
        in_catalog(&fixture.home.path, change);
        let found = verify(&fixture);
        assert_eq!((found.intact, found.broken_at), (false, at), "{change}: {found:?}");
        in_catalog(&fixture.home.path, "DELETE FROM audit_log; INSERT INTO audit_log SELECT * FROM kept");
    }
}

#[test]
fn what_does_not_fit_is_said_by_verify_and_by_doctor() {
    let fixture = decided(4);
    for change in ["UPDATE audit_log SET user = '' WHERE id = 3", "DELETE FROM audit_log WHERE id > 2"] {
        in_catalog(&fixture.home.path, change);
        let said = chorusctl(&fixture.home, ["audit", "verify"]);
        said.expect_failure_with_hint(1);
        let json = chorusctl(&fixture.home, ["--json", "audit", "verify"]);
        assert!(json.status == 1 && json.stdout.contains("\"intact\":false"), "{}", json.stdout);
        let doctor = chorusctl(&fixture.home, ["doctor"]);
        assert!(doctor.status == 1 && doctor.stdout.contains("audit log"), "{}", doctor.stdout);
    }
}

#[test]
fn rows_that_are_missing_at_a_start_are_told_for_ever() {
    let mut fixture = decided(4);
    assert!(fixture.stop().success());
    in_catalog(&fixture.home.path, "DELETE FROM audit_log WHERE id > 2");
    fixture.start();
    let rows = audit(&mut fixture.client());
    assert_eq!((rows.len(), &*rows[2].decision), (3, "lost"));
    assert!(rows[2].rule.contains("entry 4 (hash ") && rows[2].rule.contains("ends with entry 2"), "{}", rows[2].rule);
    // Once: the start after it has nothing to add.
    fixture.kill();
    fixture.start();
    assert_eq!(audit(&mut fixture.client()).len(), 3);
    assert!(fixture.client().call::<Verify>(&VerifyParams {}).expect("a walk").intact);
}

#[test]
fn an_empty_log_is_whole() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let found = daemon.client().call::<Verify>(&VerifyParams {}).expect("a walk");
    assert_eq!(found, VerifyResult { rows: 0, intact: true, broken_at: None, reason: None, head: None });
    assert_eq!(chorusctl(&home, ["audit", "verify"]).expect_success(), "0 entries, hash chain intact\n");
}

#[test]
fn a_newest_row_without_a_hash_denies_and_says_what_to_do() {
    let fixture = decided(2);
    in_catalog(&fixture.home.path, "UPDATE audit_log SET hash = x'00ff' WHERE id = 2");
    queue_calls(&fixture, 1);
    fixture.spawn_send("a", "And now?").join().expect("the client").expect("the turn goes on");
    let (is_error, said) = results(&mut fixture.client(), "a").pop().expect("a result");
    assert!(is_error, "{said}");
    for part in
        ["in the audit log", "entry 2 of the audit log was changed: its hash has 2 bytes", "chorusctl audit verify"]
    {
        assert!(said.contains(part), "{said}");
    }
    let refused = chorusctl(&fixture.home, ["settings", "set", "idle_timeout", "50m"]);
    assert!(refused.expect_failure_with_hint(1).contains("chorusctl audit verify"), "{}", refused.stderr);
    assert_eq!(verify(&fixture).broken_at, Some(2));
}
