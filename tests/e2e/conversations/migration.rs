//! The first start of this version on a home that an earlier one wrote.

use std::os::unix::process::ExitStatusExt as _;

use chorus_proto::methods::conversations::{New, NewParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::strace::is_permitted;

use crate::compatibility::{copied, homes};
use crate::home;

/// Calls of a kind at which the start is killed, counted for each thread. All are some hundreds.
const NUMBERS: [u32; 11] = [1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90];

#[test]
fn a_kill_at_a_write_of_the_first_start_breaks_nothing() {
    if !is_permitted(&home()) {
        return;
    }
    let old = homes().into_iter().next().expect("a home of an earlier version");
    let expected = {
        let home = copied(&old);
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        ["plain", "restored"].map(|agent| client.message_texts(agent))
    };
    assert!(expected.iter().all(|texts| !texts.is_empty()));
    let mut killed = 0;
    for call in ["pwrite64", "fdatasync", "ftruncate", "unlink"] {
        for number in NUMBERS {
            let home = copied(&old);
            let mut command = home.command("strace");
            let inject = format!("inject={call}:signal=KILL:when={number}");
            let trace = home.temp_dir().join("strace.out");
            command.args(["-f", "-qq", "-o"]).arg(trace);
            command.args(["-e", &format!("trace={call}"), "-e", &inject]).arg(home.bins.chorusd);
            match Daemon::try_start(&home, command) {
                Err((status, said)) => {
                    assert_eq!(status.signal(), Some(9), "{call} {number}: {said}");
                    killed += 1;
                }
                // Later calls of this kind come after the start.
                Ok(daemon) => daemon.kill9(),
            }
            let daemon = Daemon::start(&home);
            let mut client = daemon.client();
            let found = ["plain", "restored"].map(|agent| client.message_texts(agent));
            assert_eq!(found, expected, "{call} {number}");
            client.append("plain", "goes on");
            let params = NewParams { agent: Some("plain".into()), name: "review".into(), ..Default::default() };
            client.call::<New>(&params).expect("conversations.new");
            assert!(daemon.terminate().success(), "{call} {number}");
        }
    }
    assert!(killed >= 15, "only {killed} starts were killed");
}
