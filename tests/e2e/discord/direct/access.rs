//! Who may write direct messages.

use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::SEND_MESSAGES;

use super::{DirectFixture, answer_to, answers};

#[test]
fn whoever_can_write_in_the_channel_of_the_agent_can_write_direct_messages() {
    let dms = DirectFixture::new();
    dms.room.deny_user(&dms.otto, SEND_MESSAGES);
    let his = dms.direct(&dms.otto);
    let asked = his.say(&dms.otto, "Our colour?");
    let refusal = his.wait_for_post("You may not write to this agent.");
    assert_eq!(refusal.reply_to, Some(asked));
    dms.talk_direct(&dms.mara, "Our colour?", "Blue.");
    dms.talk_direct(&dms.fixture.guild.owner(), "Our colour?", "Red.");
    // Whoever goes on gets no flood of answers, and nothing is kept of what they write.
    his.say(&dms.otto, "Please?");
    dms.settle();
    assert_eq!(his.application_posts().len(), 1);
    assert!(dms.conversation(&dms.otto).is_none());
}

#[test]
fn people_and_roles_can_be_listed_instead() {
    let mut dms = DirectFixture::with("", "dm_allow = [\"crew\", \"7\"]\n");
    let his = dms.direct(&dms.otto);
    his.say(&dms.otto, "Our colour?");
    his.wait_for_post("Ask the owner of Chorus");
    dms.talk_direct(&dms.mara, "Our colour?", "Blue.");
    // What is listed, and who has which role, is looked up again.
    dms.fixture.stop();
    dms.fixture.guild.set_roles(&dms.mara, &[]);
    let config = std::fs::read_to_string(dms.fixture.home.path.join("config.toml")).expect("config.toml");
    let config = config.replace("\"7\"", &format!("\"{}\"", dms.otto.id));
    dms.fixture.home.write_config(&config);
    let hers = dms.direct(&dms.mara);
    let lost = hers.say(&dms.mara, "And now?");
    dms.fixture.start();
    dms.talk_direct(&dms.otto, "Our colour?", "Red.");
    assert_eq!(answer_to(&hers, lost).content.split('.').next(), Some("You may not write to this agent"));
    assert_eq!((answers(&hers).len(), dms.texts(&dms.mara).len()), (2, 2));
}

#[test]
fn an_agent_that_cannot_answer_is_reported() {
    let dms = DirectFixture::with("", "");
    let doctor = || chorusctl(&dms.fixture.home, ["doctor"]).stdout;
    assert!(!doctor().contains("direct messages"), "{}", doctor());
    dms.fixture.set("maps", "channel_id", "").expect("agent.config");
    assert!(doctor().contains("maps has no channel, so nobody may write direct messages"), "{}", doctor());
    chorusctl(&dms.fixture.home, ["agent", "destroy", "maps", "--yes"]);
    assert!(doctor().contains("no agent maps, so direct messages are not answered"), "{}", doctor());
    dms.direct(&dms.mara).say(&dms.mara, "Anybody?");
    dms.direct(&dms.mara).wait_for_post("Chorus does not answer direct messages.");
}

#[test]
fn what_was_written_while_no_agent_answered_stays_unanswered() {
    let mut dms = DirectFixture::new();
    let hers = dms.direct(&dms.mara);
    dms.talk_direct(&dms.mara, "Our colour?", "Blue.");
    let config = std::fs::read_to_string(dms.fixture.home.path.join("config.toml")).expect("config.toml");
    dms.fixture.stop();
    dms.fixture.home.write_config(&config.replace("dm_agent", "# dm_agent"));
    hers.say(&dms.mara, "Are you there?");
    dms.fixture.start();
    hers.wait_for_post("Chorus does not answer direct messages.");
    hers.say(&dms.mara, "Hello?");
    dms.settle();
    // After a kill the gateway sends again what the daemon received.
    dms.fixture.kill();
    dms.fixture.home.write_config(&config);
    dms.fixture.start();
    dms.talk_direct(&dms.mara, "Back?", "Back.");
    assert_eq!(dms.texts(&dms.mara), ["Our colour?", "Blue.", "Back?", "Back."]);
}
