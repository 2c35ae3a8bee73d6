//! A conversation in which people and agents decide things and leave things to do in their own words
//! (`tests/fixtures/statements.txt`), through thirty compactions without a model's notes.

use std::path::Path;

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::continuation::{Compact, CompactParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;

use super::Long;

const ROUNDS: usize = 30;
const TURNS_PER_ROUND: usize = 40;

/// The decisions and to-dos, and sentences that are neither.
struct Statements {
    planted: Vec<String>,
    neutral: Vec<String>,
}

impl Statements {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/statements.txt");
        let file = std::fs::read_to_string(path).expect("the statements");
        let of = |kinds: &[&str]| {
            let lines = file.lines().filter_map(|line| line.split_once(' '));
            lines.filter(|(kind, _)| kinds.contains(kind)).map(|(_, text)| text.to_owned()).collect()
        };
        Self { planted: of(&["D", "T"]), neutral: of(&["N"]) }
    }

    /// The messages of a round, with its part of the planted statements, one in every twelve turns.
    fn round(&self, round: usize) -> Vec<NewMessage> {
        let neutral = |n: usize| &*self.neutral[n % self.neutral.len()];
        let turns = round * TURNS_PER_ROUND..(round + 1) * TURNS_PER_ROUND;
        let turn = |turn: usize| {
            let planted = turn.is_multiple_of(12).then(|| self.planted.get(turn / 12)).flatten();
            let planted = planted.map_or("", String::as_str);
            let said = format!("{} {planted} {}", neutral(turn), neutral(turn * 7 + 3));
            let filler = format!("{} {}", neutral(turn + 5), "It is shown in the table below. ".repeat(8));
            let (question, answer) = if turn.is_multiple_of(24) { (&filler, &said) } else { (&said, &filler) };
            [NewMessage::text(Role::User, question), NewMessage::text(Role::Assistant, answer)]
        };
        turns.flat_map(turn).collect()
    }

    /// Asserts that at least 85 of 100 stand in the window word for word, and returns how many do.
    fn assert_they_stand(&self, client: &mut Client) -> String {
        let params = ShowParams { agent: Some("a".into()), window: true, ..Default::default() };
        let window = client.call::<Show>(&params).expect("context.show").window.expect("a window");
        let pieces = window.system.iter().map(|piece| piece.text.as_str());
        let messages = window.messages.iter().map(|message| message.message.content.as_str());
        let text: Vec<&str> = pieces.chain(messages).collect();
        let stands = |said: &&String| text.iter().any(|text| text.contains(without_marker(said)));
        let (standing, missing): (Vec<_>, Vec<_>) = self.planted.iter().partition(stands);
        let standing = standing.len();
        assert!(standing * 100 >= self.planted.len() * 85, "{standing}; missing: {missing:#?}");
        format!("{standing} of {} in people's own words stand, {:?}", self.planted.len(), window.budget)
    }
}

/// Returns a statement without its marker, which the list that holds the statement makes superfluous.
fn without_marker(said: &str) -> &str {
    let markers = ["Decision: ", "Agreed: ", "TODO: ", "FIXME: ", "Action item: "];
    markers.iter().find_map(|marker| said.strip_prefix(marker)).unwrap_or(said)
}

#[test]
fn in_place_by_rules() {
    let statements = Statements::read();
    let long = Long::new(Some("anthropic/claude-test"));
    long.server.anthropic().set_fallback(Response::text(["Noted."]));
    let mut client = long.client();
    for round in 0..ROUNDS {
        client.append_all("a", statements.round(round));
        let text = format!("Go on, round {round}.");
        let params = SendParams { agent: Some("a".into()), text, ..Default::default() };
        client.call::<Send>(&params).unwrap_or_else(|e| panic!("round {round}: {e}"));
    }
    println!("30 compactions in place by rules: {}", statements.assert_they_stand(&mut client));
}

#[test]
fn by_hand_without_a_model() {
    let statements = Statements::read();
    let long = Long::new(None);
    let mut client = long.client();
    for round in 0..ROUNDS {
        client.append_all("a", statements.round(round));
        client
            .call::<Compact>(&CompactParams { conversation: None, agent: Some("a".into()), undo: false })
            .expect("context.compact");
    }
    println!("30 compactions by hand without a model: {}", statements.assert_they_stand(&mut client));
}
