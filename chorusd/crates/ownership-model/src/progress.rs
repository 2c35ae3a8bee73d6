//! An agent that is wanted gets an owner once nothing fails any more, if at least one node runs and reaches the database.
//!
//! The property `SERVED` is about the states in which nothing more can happen. The checker of stateright does not see cycles,
//! so a search of our own shows that every path without faults ends in such a state.

use std::collections::HashMap;

use crate::action::{Action, list_actions};
use crate::checks::{is_long, two_nodes};
use crate::properties::SERVED;
use crate::report::shortest_violation;
use crate::setting::{Heartbeats, Rule, Setting};
use crate::state::State;
use crate::step::apply_action;

/// Visits every state. Panics if a path without faults has a cycle, or ends in a state in which an agent is not served.
fn search(name: &str, setting: &Setting) {
    let mut search = Search { setting, seen: HashMap::new(), path: Vec::new() };
    let found = search.run();
    println!("{name}: {} states", search.seen.len());
    if let Err(path) = found {
        panic!("{name}: not always: {}\n{path}", SERVED.0);
    }
}

fn steps(setting: &Setting, state: &State) -> Vec<(Action, State)> {
    let mut actions = Vec::new();
    list_actions(setting, state, &mut actions);
    actions.into_iter().filter_map(|action| Some((action, apply_action(setting, state, action)?))).collect()
}

/// A search of all states, depth first, that remembers how it came to each.
struct Search<'a> {
    setting: &'a Setting,
    /// Each state that was seen, with true as long as the search is below it.
    seen: HashMap<State, bool>,
    path: Vec<(State, Action)>,
}

impl Search<'_> {
    /// Returns the path to a state that violates the property, or to a cycle without faults.
    fn run(&mut self) -> Result<(), String> {
        let first = State::initial(self.setting.nodes);
        let mut open = vec![(first, steps(self.setting, &first))];
        self.seen.insert(first, true);
        while let Some((state, rest)) = open.last_mut() {
            let state = *state;
            let Some((action, next)) = rest.pop() else {
                self.seen.insert(state, false);
                self.path.pop();
                open.pop();
                continue;
            };
            match self.seen.get(&next) {
                // A cycle before the calm is one of faults.
                Some(true) if next.calm => return Err(self.describe(action)),
                Some(_) => continue,
                None if !(SERVED.1)(self.setting, &next) => return Err(self.describe(action)),
                None => {}
            }
            let further = steps(self.setting, &next);
            self.seen.insert(next, true);
            self.path.push((state, action));
            open.push((next, further));
        }
        Ok(())
    }

    fn describe(&self, last: Action) -> String {
        let actions = self.path.iter().map(|(_, action)| *action).chain([last]);
        actions.zip(1..).map(|(action, number)| format!("{number:>4}. {action}\n")).collect()
    }
}

/// Two nodes of which one may crash, and either may be paused or cut off.
fn two_nodes_that_fail() -> Setting {
    Setting {
        epochs: 2,
        claims: 2,
        messages: if is_long() { 2 } else { 1 },
        crashes: 1,
        in_flight: 2,
        heartbeats: Heartbeats::OnTime,
        calm: true,
        ..two_nodes()
    }
}

/// Three nodes of which one may crash or be stopped.
fn three_nodes_that_stop() -> Setting {
    Setting { nodes: 3, silences: false, stops: true, ..two_nodes_that_fail() }
}

#[test]
fn an_agent_that_is_wanted_gets_an_owner() {
    search("2 nodes that fail", &two_nodes_that_fail());
    search("3 nodes that stop", &three_nodes_that_stop());
}

#[test]
fn not_if_an_owner_that_lost_its_answer_may_not_claim() {
    violated_without(Rule::ClaimMayRepeat);
}

#[test]
fn not_if_a_transaction_may_stay_open() {
    violated_without(Rule::IdleTransactionsEnd);
}

fn violated_without(rule: Rule) {
    let setting = Setting { crashes: 0, symmetric: false, ..two_nodes_that_fail() };
    shortest_violation(&setting.without(rule), SERVED);
}
