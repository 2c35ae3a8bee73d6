//! What models used, as bars by day on a terminal, and as charts on a web page.

use std::fs;

use ::chorusctl::ui::text::width;
use chorus_tests::browser::Browser;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home, InteractiveCommand};
use serde_json::json;

use super::imported::{FIRST, PRICES, SECOND, Talk};
use crate::home;

/// Starts a daemon with two conversations over five days, one of them in a directory whose name is markup.
fn start() -> (Home, Daemon) {
    let home = home();
    let daemon = Daemon::start_with(&home, PRICES);
    let turns = ["one", "two", "three", "four", "five", "six"];
    turns.iter().fold(Talk::new(FIRST, "/home/mara/shop"), |talk, turn| talk.turn(turn)).import(&home);
    Talk::new(SECOND, "/home/mara/<script>x<b>").turn("seven").import(&home);
    (home, daemon)
}

/// Returns what `usage --by day` shows on a terminal.
fn on_terminal(home: &Home, columns: u16, locale: &str, more: &[&str]) -> Vec<String> {
    let mut command = home.command(home.bins.chorusctl);
    command.env("NO_COLOR", "1").env("LC_ALL", locale).args(["usage", "--by", "day"]).args(more);
    let (status, shown, _) = InteractiveCommand::on_terminal_of(&command, columns, 40).wait_for_exit();
    assert_eq!(status.code(), Some(0), "{shown}");
    shown.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
}

#[test]
fn a_terminal_shows_bars_by_day() {
    let (home, _daemon) = start();
    for columns in [80, 40] {
        let shown = on_terminal(&home, columns, "C.UTF-8", &[]);
        assert!(shown[0].starts_with("cost by day, 2026-01-01 to 2026"), "{shown:?}");
        assert!(shown.iter().all(|line| width(line) <= usize::from(columns)), "{shown:?}");
        // The day with most of them is the first: its bar is the highest, and the scale says how much it is.
        assert!(shown[1].starts_with("$0.0") && shown[1].trim_end().ends_with('█'), "{shown:?}");
        assert!(shown[6].trim_start().starts_with("0  ███") && shown[7].is_empty(), "{shown:?}");
        assert!(shown[8].starts_with("DAY"), "{shown:?}");
    }
    let plain = on_terminal(&home, 80, "C", &[]).join("\n");
    assert!(plain.contains("  ###") && !plain.contains('█'), "{plain}");
    // Neither a pipe nor a table that was arranged has them.
    assert!(chorusctl(&home, ["usage", "--by", "day"]).expect_success().starts_with("DAY"));
    assert!(on_terminal(&home, 80, "C.UTF-8", &["--sort", "cost"])[0].starts_with("DAY"));
}

#[test]
fn a_page_has_charts_and_needs_nothing_else() {
    let (home, _daemon) = start();
    let file = home.temp_dir().join("pages/usage.html");
    let path = file.to_str().expect("a path");
    let said = chorusctl(&home, ["usage", "--html", "--output", path]).expect_success();
    assert_eq!(said, format!("wrote {path}\n"));
    let page = fs::read_to_string(&file).expect("a page");
    assert_eq!(chorusctl(&home, ["usage", "--html"]).expect_success(), page);
    let again = chorusctl(&home, ["usage", "--html", "--output", path]).expect_success();
    assert_eq!(again, format!("already up to date: {path}\n"));
    for part in ["day", "project", "model", "program"] {
        assert!(page.contains(&format!("<h2>cost by {part}</h2>")), "{part}: {page}");
    }
    assert!(page.contains("/home/mara/&lt;script&gt;x&lt;b&gt;") && !page.contains("<script"), "{page}");
    assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("://"), "it loads nothing: {page}");
    let nowhere = chorusctl(&home, ["usage", "--html", "--output", "/proc/nowhere/deep/u.html"]);
    assert_ne!(nowhere.status, 0);
    assert!(nowhere.stderr.contains("cannot create the directory: /proc/nowhere/deep: "), "{}", nowhere.stderr);
    for args in [["usage", "--output", path], ["usage", "--html", "--json"]] {
        chorusctl(&home, args).expect_failure(2);
    }
    let Some(browser) = Browser::find() else { return };
    let script = "const wide = document.documentElement.scrollWidth; const all = s => document.querySelectorAll(s).length; \
        const heights = [...document.querySelectorAll('.days .bar')].map(bar => bar.getBoundingClientRect().height > 0); \
        return {wide, days: heights, pictures: all('svg.picture'), rows: all('table tbody tr'), \
        titles: all('svg title'), color: window.getComputedStyle(document.querySelector('.bar')).fill};";
    let found = browser.evaluate(&home, &page, 390, script);
    assert!(found["wide"].as_u64().is_some_and(|wide| wide <= 390), "no wider than a phone: {found}");
    assert_eq!((&found["days"], &found["pictures"]), (&json!([true, true, true, true, true]), &json!(4)), "{found}");
    assert!(found["color"] != "rgb(0, 0, 0)", "the style applies: {found}");
}
