//! The code of a new verb. What other code calls its types is read from files beside the new ones.

use super::names::Names;

/// What the code around a new file calls its types.
#[derive(Debug, Clone)]
pub struct Idiom {
    /// The imports of the types below.
    pub imports: Vec<String>,
    /// The error type of commands.
    pub error: String,
}

pub fn wire_method(names: &Names) -> String {
    let Names { noun, verb, verb_type, .. } = names;
    format!(
        "method!(\n    /// TODO: say what it does.\n    {verb_type} = \"{noun}.{verb}\", {verb_type}Params => {verb_type}Result\n);"
    )
}

pub fn wire_types(names: &Names) -> String {
    let Names { verb_type, .. } = names;
    format!(
        "
#[wire(params)]
pub struct {verb_type}Params {{}}

#[wire(PartialEq)]
pub struct {verb_type}Result {{}}
"
    )
}

pub fn wire_file(names: &Names) -> String {
    let (noun, method, types) = (&names.noun, wire_method(names), wire_types(names));
    format!("//! `{noun}.*`.\n\nuse super::{{method, wire}};\n\n{method}\n{types}")
}

pub fn op(names: &Names, idiom: &Idiom) -> String {
    let Names { noun, verb, verb_type, .. } = names;
    let imports = idiom.imports.join("\n");
    format!(
        "//! `{noun}.{verb}`.

use std::path::Path;

{imports}
use chorus_proto::methods::{noun}::{{{verb_type}Params, {verb_type}Result}};

/// TODO: say what it does. Take the services that it needs instead of the home, and list them in the table of routes.
pub async fn {verb}(_home: &Path, _params: {verb_type}Params) -> Result<{verb_type}Result> {{
    Ok({verb_type}Result {{}})
}}
"
    )
}

pub fn command(names: &Names, idiom: &Idiom) -> String {
    let Names { noun, verb, verb_type, .. } = names;
    let (imports, error) = (idiom.imports.join("\n"), &idiom.error);
    format!(
        "//! `chorusctl {noun} {verb}`.

use chorus_proto::methods::{noun}::{{{verb_type}, {verb_type}Params}};

{imports}

/// TODO: say what it does
#[derive(Debug, clap::Args)]
pub struct Args {{}}

/// Calls the daemon and prints the result.
pub fn run(_: Args, app: &mut App) -> Result<(), {error}> {{
    app.call_and_print::<{verb_type}>(&{verb_type}Params {{}}, |app, _| app.stdout.status_line(\"{noun} {verb}: done\"))
}}
"
    )
}

pub fn variant(names: &Names) -> String {
    let Names { verb, verb_type, .. } = names;
    format!("/// TODO: say what it does\n{verb_type}({verb}::Args),")
}

pub fn group(names: &Names) -> String {
    let Names { noun, verb, .. } = names;
    let variant = variant(names).replace('\n', "\n        ");
    format!(
        "//! `chorusctl {noun}`: one module per subcommand.

pub mod {verb};

group! {{
    /// TODO: say what the group is for
    enum Verb {{
        {variant}
    }}
}}
"
    )
}

pub fn test(names: &Names) -> String {
    let Names { noun, verb, .. } = names;
    format!(
        "//! `{noun} {verb}`.

use chorus_tests::Daemon;
use chorus_tests::ctl::chorusctl;

use crate::home;

#[test]
fn the_command_reaches_the_daemon() {{
    let home = home();
    let _daemon = Daemon::start(&home);
    assert_eq!(chorusctl(&home, [\"{noun}\", \"{verb}\"]).expect_success(), \"{noun} {verb}: done\\n\");
}}
"
    )
}

pub fn golden(names: &Names) -> (String, String) {
    let Names { noun, verb, .. } = names;
    let request = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{noun}.{verb}\",\"params\":{{}}}}\n");
    (request, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n".to_owned())
}

pub fn page_row(names: &Names) -> String {
    let Names { noun, verb, .. } = names;
    format!("| `{noun}.{verb}` | | `{{}}` |")
}

pub fn next_steps(names: &Names) -> String {
    let Names { noun, verb, .. } = names;
    format!(
        "next:
  1. cargo check --workspace --all-targets
  2. fill in the parameters, the result and every TODO; add golden files that use each field
  3. a verb that changes something must finish without its client: run it as a task of its own, as `agent.init` in the
     dispatch table, and record it in the audit log
  4. cargo xtask bless; describe `{noun}.{verb}` in docs/PROTOCOL.md; add a line to CHANGELOG.md and, for users, README.md
  5. cargo test -p chorus-proto && cargo test -p chorus-tests --test e2e -- {noun}::{verb} docs:: tidy::"
    )
}
