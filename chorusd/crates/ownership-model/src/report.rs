//! Runs the checker and prints what it found.

use std::num::NonZeroUsize;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Path, Property};

use crate::action::{Action, list_actions};
use crate::properties::{self, ALWAYS, list_reachable};
use crate::setting::Setting;
use crate::state::State;
use crate::step::apply_action;

impl Model for Setting {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::initial(self.nodes)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        list_actions(self, state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        apply_action(self, state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = ALWAYS.map(|(name, holds)| Property::always(name, holds));
        // What is looked for in a model without a rule is a state that must not be.
        let seen = if self.without.is_none() { list_reachable(self) } else { Vec::new() };
        always.into_iter().chain(seen.into_iter().map(|(name, holds)| Property::sometimes(name, holds))).collect()
    }
}

/// Visits every state of a model. Panics if one violates a property, or if something that should be possible is not.
pub(crate) fn check(name: &str, setting: &Setting) {
    let start = Instant::now();
    let found = setting.clone().checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let seconds = start.elapsed().as_secs_f64();
    let (states, steps, depth) = (found.unique_state_count(), found.state_count(), found.max_depth() - 1);
    println!("{name}: {states} states, {steps} steps, the longest path has {depth} steps, {seconds:.1} s");
    let discoveries = found.discoveries();
    for (property, _) in ALWAYS {
        if let Some(path) = discoveries.get(property) {
            panic!("{name}: not always: {property}\n{}", describe(path));
        }
    }
    for (property, _) in list_reachable(setting) {
        assert!(discoveries.contains_key(property), "{name}: never: {property}");
    }
}

/// Finds a shortest path to a state that violates a property and prints it. Panics if there is none.
pub(crate) fn shortest_violation(setting: &Setting, (property, _): properties::Property) {
    let name = setting.without.map_or_else(String::new, |rule| format!("without {rule:?}"));
    // The checker may replace the path that it found first by one that it finds soon after, so its depth is limited.
    for depth in (1..).map_while(NonZeroUsize::new) {
        let limited = setting.clone().checker().target_max_depth(depth.get() + 1);
        let found = limited.finish_when(HasDiscoveries::AnyOf([property].into())).spawn_bfs().join();
        if let Some(path) = found.discoveries().get(property) {
            println!("{name}: not always: {property}\n{}", describe(path));
            return;
        }
        assert!(found.max_depth() >= depth.get(), "{name}: always: {property}");
    }
}

fn describe(path: &Path<State, Action>) -> String {
    let steps = path.clone().into_vec();
    let lines = steps.iter().zip(1..).map(|((state, action), number)| match action {
        Some(action) => format!("{number:>4}. {action}\n"),
        None => format!("      {:?}\n", state.rows.map(|row| (row.owner, row.epoch, row.log))),
    });
    lines.collect()
}
