//! Tests the idle timers and the state machine together, under a scheduler that picks adverse random orders.

mod invariants;
mod random_events;
mod rng;
mod simulation;
mod timers;

use rng::Rng;
use simulation::Simulation;

const ORDERS: u64 = 10_000;
const STEPS: u64 = 60;

#[test]
fn in_ten_thousand_random_orders_idle_saves_once_never_while_busy_and_loses_nothing() {
    let mut seen = simulation::Coverage::default();
    for seed in 0..ORDERS {
        let mut world = Simulation::new(Rng::new(seed));
        for _ in 0..STEPS {
            world.step();
        }
        world.drain();
        seen.add(&world.seen);
    }
    // An order in which nothing happens proves nothing.
    assert!(seen.idle_saves > ORDERS / 3, "{seen:?}");
    assert!(seen.idle_without_save > ORDERS / 10, "{seen:?}");
    assert!(seen.lost_races > ORDERS / 10, "{seen:?}");
    assert!(seen.retries > ORDERS / 10, "{seen:?}");
}
