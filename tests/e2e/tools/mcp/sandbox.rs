//! A server that is a program runs in the sandbox.

use super::*;

#[test]
fn it_sees_what_its_table_names_and_not_the_rest() {
    let place = Place::new();
    let outside = TempDir::new().expect("a directory");
    fs::write(outside.path().join("secret"), "x").expect("written");
    let table = place.table("env = [\"SHOWN_4711\"]");
    let fixture = builder(home()).tables(&table).env("SHOWN_4711", "seen").env("HIDDEN_4711", "x").start();
    create_agent(&fixture, "a", "open");
    let sandbox = fixture.client().call::<chorus_proto::methods::daemon::Status>(&Default::default()).expect("status");
    if sandbox.daemon.sandbox.is_none_or(|sandbox| sandbox.way == "none") {
        return chorus_tests::skip_without(chorus_tests::Need::Sandbox, "nothing is confined here");
    }
    let look = |expression: &str| body(&call(&fixture, "look", expression)).to_owned();
    assert_eq!(look("os.environ.get('SHOWN_4711'), os.environ.get('HIDDEN_4711')"), "('seen', None)");
    let exists = |path: &Path| look(&format!("os.path.exists({:?})", path.display().to_string()));
    assert_eq!(exists(&outside.path().join("secret")), "False");
    assert_eq!(exists(&fixture.home.agent_dir("a").join("agent.json")), "False");
    assert_eq!(exists(&place.path().join("starts")), "True");
    // Its own directory stays.
    assert!(look("os.getcwd()").ends_with("/mcp/test/workspace'"));
    assert_eq!(look("open('kept', 'w').write('yes')"), "3");
    let interfaces = look("sorted(os.listdir('/sys/class/net')) if os.path.exists('/sys/class/net') else []");
    assert!(["[]", "['lo']"].contains(&&*interfaces), "{interfaces}");
}

#[test]
fn without_a_sandbox_each_call_is_asked_about() {
    let place = Place::new();
    let fixture = builder(home()).tables(&place.table("")).env("CHORUS_SANDBOX", "none").start();
    create_agent(&fixture, "a", "open");
    assert_eq!(decision(&fixture, "echo"), Decision::Ask);
    let http = "[mcp.web]\nurl = \"http://127.0.0.1:9/mcp\"\n";
    let fixture = builder(home()).tables(http).env("CHORUS_SANDBOX", "none").start();
    fixture.create_agent("a", Some("open"));
    let params = CheckParams { agent: Some("a".into()), action: "tool:mcp:web.echo".into() };
    assert_eq!(fixture.client().call::<Check>(&params).expect("a verdict").decision, Decision::Allow);
}
