//! docs/TOOLS.md: its table names every tool, what it is given, and the action that is judged.

use std::fs;
use std::path::Path;

use chorus_engine::tools::visible_specs;
use chorus_permissions::{Profile, ProfileSpec};

use super::generated::offered;

/// What stands between two marks of code in a cell.
fn codes(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn allowing(pattern: &str) -> Profile {
    Profile::new(ProfileSpec { allow: vec![pattern.to_owned()], ..ProfileSpec::default() }).expect("a profile")
}

#[test]
fn every_tool_has_its_row_with_parameters_and_action() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/TOOLS.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, table) = page.split_once("|---|---|---|---|\n").expect("the table");
    let rows: Vec<Vec<&str>> =
        table.lines().take_while(|line| line.starts_with('|')).map(|line| line.split('|').collect()).collect();
    let tools = visible_specs(&allowing(".*"));
    // The tools of MCP servers differ between homes.
    let rows: Vec<Vec<&str>> = rows.into_iter().filter(|row| !row[1].contains("mcp__")).collect();
    let listed: Vec<&str> = rows.iter().map(|row| codes(row[1])[0]).collect();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(listed, names);
    assert_eq!(offered(&crate::home(), &["search", "redis", "--tool", ""]), names, "what `search` completes");
    for (row, tool) in rows.iter().zip(&tools) {
        let (needed, optional) = row[2].split_once('[').unwrap_or((row[2], ""));
        let sorted = |mut names: Vec<&str>| {
            names.sort_unstable();
            names.into_iter().map(str::to_owned).collect::<Vec<String>>()
        };
        let all = tool.parameters["properties"].as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(sorted([codes(needed), codes(optional)].concat()), sorted(all), "{}", tool.name);
        let required = tool.parameters["required"].as_array().into_iter().flatten();
        assert_eq!(sorted(codes(needed)), sorted(required.filter_map(|name| name.as_str()).collect()), "{}", tool.name);
        // A profile that allows just such actions shows just this tool, and where a command can do the same, that.
        let action = codes(row[3])[0].split('<').next().unwrap_or_default();
        let shown = visible_specs(&allowing(&format!("{action}.*")));
        let other = |name: &&str| *name != "bash" || tool.name == "bash";
        let shown: Vec<&str> = shown.iter().map(|tool| &*tool.name).filter(other).collect();
        assert_eq!(shown, [&*tool.name], "{action}");
    }
}
