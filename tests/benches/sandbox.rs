//! What a `true` costs inside the sandbox, by each way that the machine has, over one outside.

use std::path::Path;
use std::time::Duration;

use chorus_tests::home;
use chorus_tests::measure::time;
use chorusd::sandbox::{Confinement, Exit, Job, Limits, Sandbox, run};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 100;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[expect(clippy::print_stdout, reason = "the figures are what a bench is for")]
fn main() {
    let home = home!();
    home.make();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let workspace = home.path.join("agents/a/workspace");
    std::fs::create_dir_all(&workspace).expect("a workspace");
    let job = Job {
        argv: vec!["true".into()],
        env: Vec::new(),
        confinement: Confinement { workspace, network: false, limits: Limits::default() },
    };
    let outside = || time(|| _ = std::process::Command::new("true").status().expect("true"));
    println!("outside: {:?}", median((0..ROUNDS).map(|_| outside()).collect()));
    let sandbox = Sandbox::new(Path::new(home.bins.chorusd), &home.path);
    runtime.block_on(async {
        println!("found out in: {:?}", {
            let begun = std::time::Instant::now();
            println!("{}", sandbox.known().await.expect("what is reached"));
            begun.elapsed()
        });
    });
    let once = || {
        runtime.block_on(async {
            let begun = std::time::Instant::now();
            let ran = run(&sandbox, &job, &CancellationToken::new()).await.expect("it runs");
            assert_eq!(ran.exit, Exit::Code(0));
            begun.elapsed()
        })
    };
    println!("inside: {:?}", median((0..ROUNDS).map(|_| once()).collect()));
}
