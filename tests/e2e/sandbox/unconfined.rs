//! Where the machine gives no sandbox: nothing runs unless somebody said so, and `status` and `doctor` say why.

use chorus_proto::methods::doctor::{Doctor, DoctorParams, Verdict};
use chorus_tests::ctl::chorusctl;

use super::{Rig, WAYS};

#[test]
fn without_a_sandbox_every_command_is_asked_about_whatever_the_profile_allows() {
    let rig = Rig::start("none", "any", &[]);
    assert_eq!(rig.reached().way, "none");
    let told = rig.run("echo ran > ran.txt");
    assert!(told.is_error && told.text.contains("was not approved"), "{told:?}");
    assert!(!rig.workspace().join("ran.txt").exists());
    let shown = chorusctl(&rig.home, ["status"]).ok();
    assert!(shown.contains("sandbox none") && shown.contains("missing: commands see all that you see"), "{shown}");
    let found = rig.client().call::<Doctor>(&DoctorParams { rebuild: false }).expect("doctor");
    let check = found.checks.iter().find(|check| check.name == "sandbox").expect("a check");
    assert!(check.verdict == Verdict::Warn && check.hint.is_some(), "{check:?}");
    assert!(check.text.contains("every command is asked about"), "{check:?}");
}

#[test]
fn the_level_is_shown() {
    for rig in Rig::each() {
        let way = rig.reached().way;
        assert!(WAYS.contains(&&*way));
        let shown = chorusctl(&rig.home, ["status"]).ok();
        assert!(shown.contains(&format!("sandbox {way}")), "{shown}");
        let found = rig.client().call::<Doctor>(&DoctorParams { rebuild: false }).expect("doctor");
        let check = found.checks.iter().find(|check| check.name == "sandbox").expect("a check");
        assert!(check.verdict == Verdict::Ok && check.text.contains("made by"), "{check:?}");
    }
}
