//! An agent's channel where Chorus lacks the permissions for threads.

use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::{CREATE_PUBLIC_THREADS, SEND_MESSAGES_IN_THREADS};
use chorus_tests::{DEADLINE, wait_until};

use super::ThreadFixture;

#[test]
fn missing_permissions_for_threads_are_named_where_somebody_looks() {
    let threads = ThreadFixture::new();
    threads.mara.grant_permissions(CREATE_PUBLIC_THREADS);
    let doctor = || chorusctl(&threads.fixture.home, ["doctor"]).stdout;
    assert!(!doctor().contains("Discord threads"), "{}", doctor());
    let create = || threads.mara.run_slash_command(&threads.room, "conversation new", &[("name", "trip")]);
    for (denied, missing) in [
        (SEND_MESSAGES_IN_THREADS, "Chorus lacks permissions in #maps: Send Messages in Threads"),
        (CREATE_PUBLIC_THREADS, "Chorus lacks permissions in #maps: Create Public Threads"),
    ] {
        threads.room.deny_application(denied);
        wait_until("the warning", DEADLINE, || doctor().contains(missing).then_some(()));
        assert!(create().response_with(missing).ephemeral);
        // It is no reason not to use the channel.
        threads.settle();
    }
    assert!(threads.fixture.guild.threads(&threads.room).is_empty());
    let hall = threads.fixture.guild.create_channel("hall");
    hall.deny_application(SEND_MESSAGES_IN_THREADS | CREATE_PUBLIC_THREADS);
    threads.fixture.set("maps", "channel_id", hall.id.to_string()).expect("agent.config");
    let welcome = hall.wait_for_post("is ready");
    let missing = "Chorus lacks permissions in #hall: Send Messages in Threads, Create Public Threads";
    assert!(welcome.content.contains(missing), "{welcome:?}");
    hall.clear_denials();
    wait_until("no warning", DEADLINE, || (!doctor().contains("Discord threads")).then_some(()));
}
