//! Bench: running `true` in the sandbox, compared with running it outside.

use std::path::Path;

use chorus_sandbox::{CommandSpec, Confinement, Exit, ResourceLimits, Sandbox, run};
use chorus_tests::home;
use chorus_tests::measure::{Measurement, median, print_report, time};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 100;

fn main() {
    let home = home!();
    home.create();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let workspace = home.path.join("agents/a/workspace");
    std::fs::create_dir_all(&workspace).expect("a workspace");
    let job = CommandSpec {
        argv: vec!["true".into()],
        env: Vec::new(),
        confinement: Confinement {
            workspace,
            shared: Vec::new(),
            git_author: None,
            network: false,
            limits: ResourceLimits::default(),
        },
    };
    let outside = || time(|| _ = std::process::Command::new("true").status().expect("true"));
    let sandbox = Sandbox::new(Path::new(home.bins.chorusd), &home.path);
    let begun = std::time::Instant::now();
    let level = runtime.block_on(async { sandbox.level_or_probe().await.map(ToString::to_string) });
    print_report(format!("found out in {:?}: {}", begun.elapsed(), level.expect("known")));
    let once = || {
        runtime.block_on(async {
            let begun = std::time::Instant::now();
            let ran = run(&sandbox, &job, &CancellationToken::new()).await.expect("it runs");
            assert_eq!(ran.exit, Exit::Code(0));
            begun.elapsed()
        })
    };
    print_report(Measurement {
        name: "`true`, inside over outside".into(),
        floor: median((0..ROUNDS).map(|_| outside()).collect()),
        ours: median((0..ROUNDS).map(|_| once()).collect()),
        target: f64::INFINITY,
    });
}
