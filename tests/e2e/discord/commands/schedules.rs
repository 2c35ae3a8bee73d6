//! `/schedule`, and what its runs post.

use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::ModelServer;

use super::CommandFixture;

#[test]
fn schedules_are_added_listed_paused_and_removed() {
    let fixture = CommandFixture::new();
    fixture.slash("schedule list", &[]).response_with("has no schedules");
    let cron = [("name", "standup"), ("message", "Summarize."), ("cron", "0 7 * * mon-fri"), ("tz", "Europe/Berlin")];
    super::refused(&fixture.otto.run_slash_command(&fixture.room, "schedule add", &cron), "permission");
    let added = fixture.slash("schedule add", &cron).response_with("Added:");
    assert!(added.content.contains("Europe/Berlin") && !added.ephemeral, "{added:?}");
    super::refused(&fixture.slash("schedule add", &cron), "already has a schedule standup");
    let wrong = [("name", "x"), ("message", "m"), ("every", "30s")];
    super::refused(&fixture.slash("schedule add", &wrong), "from 1 minute");
    let listed = fixture.otto.run_slash_command(&fixture.room, "schedule list", &[]).response_with("standup");
    assert!(listed.ephemeral, "{listed:?}");
    fixture.slash("schedule pause", &[("name", "standup")]).response_with("Paused:");
    fixture.slash("schedule resume", &[("name", "standup")]).response_with("Resumed:");
    let json = chorusctl(&fixture.home, ["--json", "--agent", "scribe", "schedule", "list"]).expect_json();
    assert_eq!(json["schedules"][0]["created_by"], format!("discord:{}", fixture.mara.id), "{json}");
    fixture.slash("schedule remove", &[("name", "standup")]).response_with("Removed:");
    let unknown = super::refused(&fixture.slash("schedule run", &[("name", "standup")]), "has no schedule");
    assert!(!unknown.content.contains("chorusctl"), "{unknown:?}");
    let actions: Vec<String> = fixture.audit().into_iter().map(|row| row.action).collect();
    assert!(actions.contains(&"discord:schedule.pause".to_owned()), "{actions:?}");
}

#[test]
fn the_reply_to_a_schedule_is_posted_in_the_channel_of_its_agent() {
    let server = ModelServer::start();
    server.anthropic().queue_text(["Two issues are new."]);
    let fixture = CommandFixture::with(&server.config_toml());
    let every = [("name", "look"), ("message", "Look."), ("every", "4h")];
    fixture.slash("schedule add", &every).response_with("every 240 min");
    fixture.slash("schedule run", &[("name", "look")]).response_with("Started:");
    let posted = fixture.room.wait_for_post("**Schedule look:**");
    assert_eq!(posted.content, "**Schedule look:**\nTwo issues are new.");
}
