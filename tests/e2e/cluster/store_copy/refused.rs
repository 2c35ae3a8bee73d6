//! Copies that are refused leave the configuration as it is.

use std::path::Path;

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::postgres::Database;

use super::CopiedHome;

/// Counts the tables of a database.
const TABLES: &str = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";

#[test]
fn a_database_that_a_cluster_uses_is_refused_as_one_that_is_not_empty() {
    let Some(first) = CopiedHome::create("") else { return };
    let Some(second) = CopiedHome::create("") else { return };
    first.with_daemon(|client| client.init("a"));
    first.to_postgres().expect_success();
    let daemon = Daemon::start(&first.home);
    let file = first.url_file();
    let file = file.to_str().expect("UTF-8");
    let refused = chorusctl(&second.home, ["store", "copy", "--to", "postgres", "--url-file", file]);
    let text = refused.expect_failure_with_hint(refused.status);
    assert!(text.contains("the database is not empty: it is the store of the node a"), "{text}");
    assert!(text.contains("create an empty database") && !text.contains("stop"), "{text}");
    // Nor does its own daemon have to stop to learn that the store is there.
    let again = first.to_postgres();
    assert!(again.expect_failure(again.status).contains("nothing to copy"), "{}", again.stderr);
    assert!(daemon.terminate().success());
    // What another home has begun there is its own affair.
    let begun = second.url_file();
    let begun = begun.to_str().expect("UTF-8");
    second.execute("CREATE TABLE store_copy (copy uuid NOT NULL, attempt bigint NOT NULL, finished boolean NOT NULL)");
    let again = chorusctl(&first.home, ["store", "copy", "--to", "postgres", "--url-file", begun]);
    assert!(again.expect_failure(again.status).contains("nothing to copy"), "{}", again.stderr);
    assert_eq!(second.query(TABLES), 1);
}

#[test]
fn a_database_without_a_store_is_not_copied_to_sqlite() {
    let Some(home) = CopiedHome::create("") else { return };
    home.with_daemon(|client| client.init("a"));
    let sqlite = home.config();
    home.home.write_config(&format!("{sqlite}[store]\nkind = \"postgres\"\nurl_file = \"url\"\n"));
    let before = home.config();
    let refused = home.to_sqlite();
    assert!(
        refused.expect_failure(refused.status).contains("the database has no store of Chorus"),
        "{}",
        refused.stderr
    );
    assert_eq!((home.config(), home.query(TABLES)), (before, 0));
    home.home.write_config(&sqlite);
    home.with_daemon(|client| assert_eq!(client.agent_status("a").name, "a"));
}

#[test]
fn a_node_is_not_copied_to_a_store_that_no_other_could_share() {
    let Some(home) = CopiedHome::create("") else { return };
    home.with_daemon(|client| client.init("a"));
    home.to_postgres().expect_success();
    let copied = home.config();
    home.home.write_config(&copied.replace("[cluster]\n", "[cluster]\nlisten = \"127.0.0.1:7700\"\n"));
    let before = home.config();
    let refused = home.to_sqlite();
    let text = refused.expect_failure_with_hint(refused.status);
    assert!(text.contains("`listen` of [cluster] is set") && text.contains("remove listen from"), "{text}");
    assert_eq!(home.config(), before);
    home.home.write_config(&copied);
    home.to_sqlite().expect_success();
    home.with_daemon(|client| assert_eq!(client.agent_status("a").name, "a"));
}

#[test]
fn a_running_daemon_is_refused() {
    let Some(home) = CopiedHome::create("") else { return };
    let before = home.config();
    let daemon = Daemon::start(&home.home);
    let refused = home.to_postgres();
    assert!(refused.expect_failure(refused.status).contains("daemon stop"), "{}", refused.stderr);
    assert!(daemon.terminate().success());
    assert_eq!(home.config(), before);
    home.to_postgres().expect_success();
    // Nor while one uses the database.
    let daemon = Daemon::start(&home.home);
    let refused = home.to_sqlite();
    assert!(refused.expect_failure(refused.status).contains("daemon stop"), "{}", refused.stderr);
    assert!(daemon.terminate().success());
    let again = home.to_postgres();
    assert!(again.expect_failure(again.status).contains("nothing to copy"), "{}", again.stderr);
}

#[test]
fn a_database_with_anything_else_is_refused() {
    let Some(first) = CopiedHome::create("") else { return };
    let Some(second) = CopiedHome::create("") else { return };
    first.with_daemon(|client| client.init("a"));
    first.to_postgres().expect_success();
    second.with_daemon(|client| client.init("b"));
    let (before, file) = (second.config(), first.url_file());
    let file = file.to_str().expect("UTF-8");
    let refused = chorusctl(&second.home, ["store", "copy", "--to", "postgres", "--url-file", file]);
    assert!(refused.expect_failure(refused.status).contains("the database is not empty"), "{}", refused.stderr);
    assert_eq!(second.config(), before);
    // What was there is still there.
    first.with_daemon(|client| assert_eq!(client.agent_status("a").name, "a"));
    second.with_daemon(|client| client.append("b", "still in SQLite"));
}

#[test]
fn a_bucket_of_another_cluster_is_refused_before_anything_is_written_to_it() {
    let bucket = tempfile::tempdir().expect("a directory");
    let config = format!("[store.sessions]\nkind = \"dir\"\npath = \"{}\"\n", bucket.path().display());
    let Some(first) = CopiedHome::create(&config) else { return };
    let Some(second) = CopiedHome::create(&config) else { return };
    for home in [&first, &second] {
        home.with_daemon(|client| {
            client.init("a");
            client.append("a", "a message");
            client.save("a", "kept");
        });
    }
    first.to_postgres().expect_success();
    let (before, objects) = (second.config(), super::super::sessions::objects(bucket.path()));
    let refused = second.to_postgres();
    assert!(refused.expect_failure(refused.status).contains("belongs to another cluster"), "{}", refused.stderr);
    assert_eq!((second.config(), super::super::sessions::objects(bucket.path())), (before, objects));
    assert_eq!(second.query(TABLES), 0, "tables were made before the refusal");
    // Attempts with other buckets continue, and the first cluster has its own as before.
    let others = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let use_bucket = |from: &Path, to: &Path| {
        let config = second.config().replace(&*from.to_string_lossy(), &to.to_string_lossy());
        second.home.write_config(&config);
    };
    use_bucket(bucket.path(), others[0].path());
    let file = second.with_daemon(|client| {
        let file = client.history("a")[0].file_path.clone();
        client.append("a", "one more");
        client.save("a", "sound");
        file
    });
    let text = std::fs::read_to_string(&file).expect("the file");
    std::fs::write(&file, text.replace("a message", "another")).expect("damage");
    let refused = second.to_postgres();
    assert!(refused.expect_failure(refused.status).contains("damaged"), "{}", refused.stderr);
    std::fs::write(&file, text).expect("the file as it was");
    use_bucket(others[0].path(), others[1].path());
    second.to_postgres().expect_success();
    second.to_sqlite().expect_success();
    first.to_sqlite().expect_success();
}

#[test]
fn a_damaged_session_is_named_and_the_configuration_stays() {
    let Some(home) = CopiedHome::create("") else { return };
    let saved = home.with_daemon(|client| {
        client.init("a");
        client.append("a", "a fine message");
        let saved = client.save("a", "kept");
        client.append("a", "another one");
        client.save("a", "sound");
        saved
    });
    let before = home.config();
    let text = std::fs::read_to_string(&saved.file_path).expect("the file");
    std::fs::write(&saved.file_path, text.replace("fine", "bad ")).expect("damage");
    let refused = home.to_postgres();
    assert!(refused.expect_failure(refused.status).contains(&saved.header.session_id), "{}", refused.stderr);
    assert!(!refused.stderr.contains("sound"), "{}", refused.stderr);
    assert_eq!(home.config(), before);
    // No daemon starts with a part of the home.
    home.home.write_config(&format!("{before}[store]\nkind = \"postgres\"\nurl_file = \"url\"\n"));
    let command = home.home.command(home.home.bins.chorusd);
    let (_, why) = Daemon::try_start(&home.home, command).expect_err("a start");
    assert!(why.contains("not finished"), "{why}");
    home.home.write_config(&before);
    std::fs::write(&saved.file_path, text).expect("the file as it was");
    home.to_postgres().expect_success();
}

#[test]
fn an_unusable_url_or_configuration_is_refused_before_anything_is_copied() {
    let Some(home) = CopiedHome::create("") else { return };
    home.with_daemon(|client| client.init("a"));
    let run = |args: &[&str]| {
        let refused = chorusctl(&home.home, [&["store", "copy", "--to"], args].concat());
        refused.expect_failure(refused.status).to_owned()
    };
    assert!(run(&["postgres"]).contains("no URL"));
    assert!(run(&["postgres", "--url-env", "NOWHERE"]).contains("NOWHERE"));
    assert!(run(&["sqlite", "--url-env", "NOWHERE"]).contains("leave --url-file"));
    let mut command = home.home.command(home.home.bins.chorusctl);
    command.args(["store", "copy", "--to", "postgres"]).env("CHORUS_STORE_KIND", "sqlite");
    let refused = chorus_tests::ctl::run_command(command, b"");
    assert!(refused.expect_failure(refused.status).contains("CHORUS_STORE_KIND"));
    home.home.write_config("store = { kind = \"sqlite\" }\n");
    let file = home.url_file();
    assert!(run(&["postgres", "--url-file", file.to_str().expect("UTF-8")]).contains("cannot change the table"));
}

#[tokio::test]
async fn each_table_of_postgresql_is_copied_or_left_out_on_purpose() -> chorus_tests::postgres::Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let journal = super::super::open(&database, "a").await?;
    journal.close().await?;
    let client = database.connect().await?;
    let tables = client.query("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'", &[]).await?;
    let tables: Vec<String> = tables.iter().map(|row| row.get(0)).collect();
    let known: Vec<&str> = chorus_store_copy::known_tables().collect();
    let unknown: Vec<_> = tables.iter().filter(|table| !known.contains(&&***table)).collect();
    assert!(unknown.is_empty() && tables.len() > 20, "{unknown:?}: chorusd/crates/store-copy/src/tables");
    Ok(())
}
