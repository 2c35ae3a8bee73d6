//! Questions as buttons in the channel of the agent that asks.

use chorus_proto::Role;
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::ATTACH_FILES;
use chorus_tests::discord::{ChannelHandle, UserHandle, VisibleMessage};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::channels::ChannelFixture;

const ASKING: &str =
    "[permissions.asking]\nask = [\"tool:list_models:.*\", \"tool:bash:.*\"]\nallow = [\".*\"]\nbash = \"whole\"\n";
const ALWAYS: &str = "This exact action (approvers)";
const APPROVERS: &str = "approvers = [\"crew\"]\n";

/// A daemon whose agent `a` is asked about `list_models` in its room; mara talks to it, otto does not, cora approves.
struct Asked {
    fixture: ChannelFixture,
    room: ChannelHandle,
    mara: UserHandle,
    otto: UserHandle,
    cora: UserHandle,
}

impl Asked {
    fn new() -> Self {
        Self::with("")
    }

    fn with(top: &str) -> Self {
        let fixture = ChannelFixture::with(top, ASKING, APPROVERS);
        let room = fixture.agent_with("a", "asking");
        let member = |name: &str, roles: &[&str]| fixture.guild.add_member(name, roles, 0);
        let (mara, otto, cora) = (member("mara", &[]), member("otto", &[]), member("cora", &["crew"]));
        Self { fixture, room, mara, otto, cora }
    }

    /// The model's next answers: a call that is asked about, then a word.
    fn script(&self, name: &str, params: &Value) {
        self.fixture.server.anthropic().queue(Response::empty().then_call("c1", name, params));
        self.fixture.server.anthropic().queue(Response::text(["Done."]));
    }

    /// Mara says something that has the agent ask; the question.
    fn question(&self) -> VisibleMessage {
        self.script("list_models", &json!({}));
        self.room.say(&self.mara, "Which are there?");
        self.room.wait_for_post_with_button("Allow once")
    }

    /// The question as it is when it says this.
    fn becomes(&self, question: &VisibleMessage, text: &str) -> VisibleMessage {
        let found = |messages: &[VisibleMessage]| {
            messages.iter().find(|message| message.id == question.id && message.content.contains(text)).cloned()
        };
        let now = self.room.wait_for(text, found);
        assert!(now.buttons.is_empty(), "{now:?}");
        now
    }

    /// Results in the record: whether each is an error.
    fn results(&self) -> Vec<bool> {
        let shown = self.fixture.client().messages("a");
        shown.into_iter().filter(|message| message.role == Role::ToolResult).map(|message| message.is_error).collect()
    }
}

#[test]
fn who_asked_for_the_turn_allows_it_once_and_nobody_else_does() {
    let asked = Asked::new();
    let question = asked.question();
    assert!(question.content.contains("wants to use a tool"), "{}", question.content);
    assert!(question.content.contains("or an approver can answer; only an approver can allow it from now on"));
    assert!(question.content.contains(&format!("<@{}>", asked.mara.id)) && question.content.contains(":R>"));
    let labels: Vec<&str> = question.buttons.iter().map(|button| &*button.label).collect();
    assert_eq!(labels, ["Allow once", "All of this turn", ALWAYS, "No", "No, because …"]);
    for (label, why) in [("Allow once", "else"), ("All of this turn", "else"), (ALWAYS, "approver"), ("No", "else")] {
        assert!(asked.otto.press_button(&question, label).response_with(why).ephemeral);
    }
    // For ever only an approver.
    let told = asked.mara.press_button(&question, ALWAYS).response_with("approver");
    assert!(told.ephemeral);
    let allow = question.button("Allow once").expect("a button").custom_id.clone();
    let press = asked.mara.press_button(&question, "Allow once");
    let twice = asked.mara.press_stale_button(&asked.room, &question, &allow);
    asked.becomes(&question, &format!("**Allowed** by <@{}>", asked.mara.id));
    asked.room.wait_for_post("Done.");
    assert_eq!(asked.results(), [false]);
    // One of the two was the first.
    let told = wait_until("both to be told", DEADLINE, || {
        let told: Vec<VisibleMessage> = [&press, &twice].iter().filter_map(|press| press.responses().pop()).collect();
        Some(told).filter(|told| told.len() == 2)
    });
    assert!(told.iter().all(|told| told.ephemeral), "{told:?}");
    assert_eq!(told.iter().filter(|told| told.content == "Allowed once.").count(), 1, "{told:?}");
    let late = asked.cora.press_stale_button(&asked.room, &question, &allow);
    assert!(late.response_with("already approved").ephemeral);
    let decisions = chorusctl(&asked.fixture.home, ["audit", "--json"]).expect_success();
    assert!(decisions.contains(&format!("discord:{}", asked.mara.id)), "{decisions}");
}

#[test]
fn an_approver_allows_it_for_ever_and_then_it_is_not_asked() {
    let asked = Asked::new();
    let question = asked.question();
    asked.cora.press_button(&question, ALWAYS);
    asked.becomes(&question, "**Allowed** by");
    asked.room.wait_for_post("Done.");
    let rules = asked.fixture.said("a", "permission_rules");
    assert_eq!((&rules[0]["kind"], &rules[0]["rule"]), (&json!("action"), &json!("tool:list_models:")), "{rules}");
    assert_eq!(rules[0]["created_by"], format!("discord:{}", asked.cora.id));
    assert_eq!(asked.fixture.said("a", "permissions"), "asking");
    asked.script("list_models", &json!({}));
    asked.room.say(&asked.mara, "And now?");
    wait_until("the second result", DEADLINE, || (asked.results() == [false, false]).then_some(()));
    assert_eq!(
        asked.room.application_posts().iter().filter(|post| post.content.contains("wanted to use a tool")).count(),
        1
    );
}

#[test]
fn a_denial_is_told_to_the_model_and_the_channel() {
    let asked = Asked::new();
    let question = asked.question();
    asked.mara.press_button(&question, "No");
    asked.becomes(&question, "**Denied** by <@");
    asked.room.wait_for_post("Done.");
    assert_eq!(asked.results(), [true]);
}

#[test]
fn the_reason_of_a_no_is_typed_into_a_form_and_told_to_the_model() {
    let asked = Asked::new();
    let question = asked.question();
    assert!(asked.otto.press_button(&question, "No, because …").response_with("for someone else").ephemeral);
    let pressed = asked.mara.press_button(&question, "No, because …");
    let sent = asked.mara.submit_form(&pressed, "ask cora first");
    assert!(sent.response_with("The agent gets the reason.").ephemeral);
    asked.becomes(&question, "**Denied** by <@");
    asked.room.wait_for_post("Done.");
    let told = asked.fixture.client().messages("a");
    let result = told.iter().find(|message| message.role == Role::ToolResult).expect("a result");
    assert!(result.is_error && result.content.contains("ask cora first"), "{}", result.content);
}

#[test]
fn all_of_a_turn_is_approved_once_and_the_next_turn_asks_again() {
    let asked = Asked::new();
    let call = |id: &str| Response::empty().then_call(id, "list_models", &json!({}));
    let twice = Response::empty().then_call("c1", "list_models", &json!({})).then_call("c2", "list_models", &json!({}));
    asked.fixture.server.anthropic().queue(twice);
    asked.fixture.server.anthropic().queue(call("c3"));
    asked.fixture.server.anthropic().queue(Response::text(["Done."]));
    asked.room.say(&asked.mara, "Which are there?");
    let question = asked.room.wait_for_post_with_button("Allow once");
    asked.mara.press_button(&question, "All of this turn").response_with("does not ask again in this turn");
    asked.room.wait_for_post("Done.");
    assert_eq!(asked.results(), [false; 3]);
    asked.script("list_models", &json!({}));
    asked.room.say(&asked.mara, "Once more.");
    let again = asked.room.wait_for_post_with_button("Allow once");
    assert_ne!(again.id, question.id);
    asked.mara.press_button(&again, "No").response_with("Denied.");
}

#[test]
fn a_turn_from_the_terminal_asks_in_the_channel_too() {
    let asked = Asked::new();
    asked.script("list_models", &json!({}));
    let mut client = asked.fixture.client();
    let turn = std::thread::spawn(move || {
        client.call::<Send>(&SendParams { agent: Some("a".into()), text: "Which?".into(), ..SendParams::default() })
    });
    let question = asked.room.wait_for_post_with_button("Allow once");
    assert!(question.content.contains("for the owner"), "{}", question.content);
    assert!(question.content.contains("Only an approver can answer."), "{}", question.content);
    assert!(asked.mara.press_button(&question, "Allow once").response_with("else").ephemeral);
    let id = question.buttons[0].custom_id.split(':').nth(1).expect("an id").to_owned();
    chorusctl(&asked.fixture.home, ["approvals", "approve", &id]).expect_success();
    asked.becomes(&question, "**Allowed** by the owner");
    turn.join().expect("the client").expect("a turn");
    // The channel shows what was said in it, and nothing of that turn.
    assert!(asked.room.application_posts().iter().all(|post| !post.content.contains("Done.")));
}

#[test]
fn what_nobody_answers_is_denied_and_shown_so() {
    let asked = Asked::with("approval_timeout = \"1s\"");
    let question = asked.question();
    let allow = question.buttons[0].custom_id.clone();
    asked.becomes(&question, "nobody answered in time");
    let late = asked.mara.press_stale_button(&asked.room, &question, &allow);
    assert!(late.response_with("expired").ephemeral);
    assert_eq!(asked.results(), [true]);
}

#[test]
fn after_a_restart_questions_are_void() {
    let mut asked = Asked::new();
    let question = asked.question();
    let allow = question.buttons[0].custom_id.clone();
    asked.fixture.kill();
    asked.fixture.start();
    asked.becomes(&question, "**Cancelled**");
    let late = asked.mara.press_stale_button(&asked.room, &question, &allow);
    assert!(late.response_with("was denied").ephemeral);
    wait_until("the turn to be closed", DEADLINE, || (asked.results() == [true]).then_some(()));
}

#[test]
fn a_button_of_another_action_does_nothing() {
    let asked = Asked::new();
    let question = asked.question();
    let allow = question.buttons[0].custom_id.clone();
    let (start, _) = allow.rsplit_once(':').expect("a hash");
    let forged = asked.mara.press_stale_button(&asked.room, &question, &format!("{start}:00000000"));
    assert!(forged.response_with("has changed").ephemeral);
    let unknown = asked.mara.press_stale_button(&asked.room, &question, "approve:zzzzzz:00000000");
    assert!(unknown.response_with("no longer exists").ephemeral);
    assert!(asked.results().is_empty(), "it still waits");
    asked.mara.press_button(&question, "No");
    asked.becomes(&question, "**Denied**");
}

#[test]
fn a_long_command_is_a_file_with_nothing_hidden_and_no_secret_in_it() {
    let asked = Asked::new();
    let secret = "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
    let command = format!("echo {secret} \u{202e}``` {}", "x".repeat(5000));
    asked.script("bash", &json!({"command": command}));
    asked.room.say(&asked.mara, "Do it.");
    let question = asked.room.wait_for_post_with_button("No");
    let file = question.files.first().expect("a file");
    assert_eq!(file.name, "action.txt");
    let text = String::from_utf8(file.bytes.clone()).expect("text");
    assert!(text.contains("<U+202E>") && text.ends_with(&"x".repeat(5000)), "{}", &text[..200]);
    assert!(!text.contains("ghp_AbCd") && !question.content.contains("ghp_AbCd"));
    assert_eq!(question.content.matches("```").count(), 2, "{}", question.content);
    asked.mara.press_button(&question, "No");
    let closed = asked.becomes(&question, "**Denied**");
    assert_eq!(closed.files.len(), 1, "the whole action stays");
}

#[test]
fn what_cannot_be_shown_whole_cannot_be_allowed_there() {
    let asked = Asked::new();
    asked.room.deny_application(ATTACH_FILES);
    asked.script("bash", &json!({"command": format!("echo {}", "x".repeat(5000))}));
    asked.room.say(&asked.mara, "Do it.");
    let question = asked.room.wait_for_post_with_button("No");
    let labels: Vec<&str> = question.buttons.iter().map(|button| &*button.label).collect();
    assert_eq!(labels, ["No", "No, because …"]);
    assert!(question.files.is_empty() && question.content.contains("can only be denied here"), "{}", question.content);
    asked.mara.press_button(&question, "No");
    asked.becomes(&question, "**Denied**");
    asked.fixture.discord.take_violations();
}

#[test]
fn what_is_listed_can_be_answered_by_whoever_may() {
    let asked = Asked::new();
    let question = asked.question();
    let listed = |who: &UserHandle| who.run_slash_command(&asked.room, "approvals", &[]).response_with("list_models");
    let labels = |shown: &VisibleMessage| shown.buttons.iter().map(|button| button.label.clone()).collect::<Vec<_>>();
    let mine = listed(&asked.mara);
    assert!(mine.content.contains(&format!("requested by <@{}>", asked.mara.id)), "{mine:?}");
    assert_eq!(labels(&mine), ["Allow once", "All of this turn", "No", "No, because …"]);
    assert!(mine.content.contains("why: rule ask"), "{}", mine.content);
    assert!(labels(&listed(&asked.otto)).is_empty());
    let all = ["Allow once", "All of this turn", "This exact action", "No", "No, because …"];
    assert_eq!(labels(&listed(&asked.cora)), all);
    asked.mara.press_button(&mine, "Allow once").response_with("Allowed once.");
    asked.becomes(&question, "**Allowed**");
    // Who was first is mentioned.
    asked.mara.press_button(&mine, "No").response_with(&format!("already approved (by <@{}>)", asked.mara.id));
}
