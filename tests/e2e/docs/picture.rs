//! docs/tour.svg, the picture in the README, is the beginning of what `chorusctl tour` shows.

use std::fs;
use std::path::Path;

use chorus_tests::screen::Screen;

use super::screens::normalize;
use crate::home;

const COLUMNS: u16 = 92;
/// The picture ends before the line with this text.
const END: &str = "$ chorusctl context append";

#[test]
fn the_picture_of_the_readme_is_up_to_date() {
    let home = home();
    let mut command = home.command(home.bins.chorusctl);
    command.env_remove("NO_COLOR").arg("tour").env("TMPDIR", home.temp_dir());
    // The directory of the tour has a name by chance.
    let path = regex::Regex::new("/[^ ]*/chorus-tour-[A-Za-z0-9]+").expect("a pattern");
    let screen = Screen::of(&command, COLUMNS, 40, &[], |text| path.replace_all(text, "/tmp/chorus-tour").into_owned());
    let text = screen.text();
    assert_eq!(screen.status, 0, "{text}");
    let end = text.lines().position(|line| line.contains(END)).unwrap_or_else(|| panic!("no {END:?} in {text}"));
    // The first lines tell of the temporary directory.
    let start = text.lines().position(|line| line.starts_with("$ ")).expect("a command");
    let rows = |at: usize| u16::try_from(at).expect("few rows");
    let svg = screen.svg("chorusctl tour", rows(start), rows(end) - 1);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tour.svg");
    let before = fs::read_to_string(&file).unwrap_or_default();
    if normalize(&words_of(&svg)) == normalize(&words_of(&before)) {
        return;
    }
    assert!(std::env::var_os("CHORUS_BLESS").is_some(), "docs/tour.svg is out of date: run `cargo xtask bless`");
    fs::write(file, svg).expect("writes the picture");
}

/// The text of an SVG image, without tags.
fn words_of(svg: &str) -> String {
    svg.split('<').filter_map(|piece| Some(piece.split_once('>')?.1)).collect::<Vec<_>>().join(" ")
}
