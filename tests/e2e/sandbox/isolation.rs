//! What is out of reach.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use chorus_proto::methods::agent::InitParams;
use chorus_tests::{Need, skip_without};
use serde_json::json;

use super::{WAYS, each_sandbox, run_command, sandbox_info, start_fixture, start_sandbox};

/// Tells `open`, or the error, for a socket by path or, with `@`, by abstract name.
fn connect(name: &str) -> String {
    let at = name.strip_prefix('@').map_or_else(|| name.to_owned(), |name| format!("\\0{name}"));
    format!(
        "python3 -c \"\nimport socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n  s.connect('{at}'); print('open')\n\
         except OSError as e: print(e.strerror)\""
    )
}

fn mode_of(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}

#[test]
fn sockets_keys_and_other_agents_are_not_there() {
    let agent = tempfile::Builder::new().prefix("agent").tempdir_in("/var/lib").or_else(|_| tempfile::tempdir());
    let agent = agent.expect("a directory");
    let ssh = agent.path().join("ssh.sock");
    let _ssh = UnixListener::bind(&ssh).expect("an agent that listens");
    let bus = agent.path().join("bus");
    let _bus = UnixListener::bind(&bus).expect("a bus that listens");
    for way in WAYS {
        let shown = ssh.to_str().expect("a path");
        let address = format!("unix:path={}", bus.display());
        let environment = [
            ("SSH_AUTH_SOCK", shown),
            ("DBUS_SESSION_BUS_ADDRESS", address.as_str()),
            ("XDG_RUNTIME_DIR", "/run/user/0"),
            ("MY_API_KEY", "sk-secret-123456"),
        ];
        let Some(fixture) = start_sandbox(way, &environment) else { continue };
        fixture.create_agent("other", Some("any"));
        let home = fixture.home.path.display();
        fs::write(fixture.home.agent_dir("other").join("workspace/note"), "private").expect("a note");
        let user = &fixture.home.user_home;
        for file in [".ssh/id_ed25519", ".aws/credentials", ".cargo/credentials.toml", ".netrc", ".cargo/bin/tool"] {
            let path = user.join(file);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, "sk-key-of-mine").expect("a key");
        }
        assert_eq!(
            run_command(&fixture, &connect(fixture.home.socket().to_str().expect("a path"))).ok().trim(),
            "No such file or directory"
        );
        for socket in [&ssh, &bus] {
            assert_eq!(
                run_command(&fixture, &connect(socket.to_str().expect("a path"))).ok().trim(),
                "No such file or directory"
            );
        }
        let environment = run_command(&fixture, "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'").text;
        for secret in ["SSH_AUTH_SOCK", "DBUS_SESSION", "sk-secret", "XDG_RUNTIME", "CHORUS"] {
            assert!(!environment.contains(secret), "{way}: {environment}");
        }
        assert!(environment.contains("GIT_CONFIG_VALUE_0=explicit"), "{environment}");
        // Of Chorus's home only the way to the workspace is left.
        let found = run_command(
            &fixture,
            &format!("cd {home} && find . -path './agents/a/workspace/*' -prune -o -print | sort"),
        )
        .ok();
        assert_eq!(found.lines().collect::<Vec<_>>(), [".", "./agents", "./agents/a", "./agents/a/workspace"], "{way}");
        // Of the user's home only the toolchains are.
        let found = run_command(&fixture, &format!("find {} -type f; ls -A ~", user.display())).ok();
        let tool = format!("{}/.cargo/bin/tool", user.display());
        assert_eq!(found.lines().collect::<Vec<_>>(), [tool.as_str(), ".cargo"], "{way}");
        for gone in ["/root/.ssh", "/run", "/home/*", "/mnt", "/srv", "/boot", "/var/lib/postgresql", "/sys/kernel"] {
            assert!(run_command(&fixture, &format!("ls -d {gone}")).is_error, "{way}: {gone}");
        }
        assert!(
            run_command(&fixture, "cat /etc/shadow").is_error
                && run_command(&fixture, "cat /dev/sda /dev/vda /dev/mem /proc/kcore").is_error
        );
    }
}

#[test]
fn what_only_root_could_read_is_not_there() {
    if !rustix::process::geteuid().is_root() {
        skip_without(Need::Root, "the daemon is not root");
        return;
    }
    let place = tempfile::Builder::new().prefix("chorus").tempdir_in("/opt").expect("a directory of /opt");
    let at = |name: &str| place.path().join(name);
    for dir in ["", "shut", "open"] {
        fs::create_dir_all(at(dir)).expect("a directory");
        mode_of(&at(dir), if dir == "shut" { 0o750 } else { 0o755 });
        fs::write(at(dir).join("key"), "of root alone").expect("a key");
        mode_of(&at(dir).join("key"), if dir == "shut" { 0o644 } else { 0o640 });
        fs::write(at(dir).join("note"), "for all").expect("a note");
    }
    for fixture in each_sandbox() {
        let shown = place.path().display();
        let found =
            run_command(&fixture, &format!("cd {shown}; cat note open/note; cat key shut/* open/key; ls -A shut"));
        assert!(found.text.starts_with("for allfor all") && !found.text.contains("of root"), "{found:?}");
        let left = "-type f ! -perm -004 -o -type d ! -perm -001 -readable ! -empty";
        assert_eq!(run_command(&fixture, &format!("find /etc /usr/local {shown} {left}")).text, "[exit status 0]");
    }
}

#[test]
fn what_is_to_be_hidden_may_go_while_a_command_is_started() {
    if !rustix::process::geteuid().is_root() {
        skip_without(Need::Root, "the daemon is not root");
        return;
    }
    let place = tempfile::Builder::new().prefix("chorus").tempdir_in("/opt").expect("a directory of /opt");
    mode_of(place.path(), 0o755);
    let key = place.path().join("key");
    fs::write(&key, "of root alone").expect("a key");
    mode_of(&key, 0o600);
    // A bubblewrap that takes the key away once it has been told to hide it, where the gate says so.
    let tools = tempfile::tempdir().expect("a directory");
    let (gate, program) = (tools.path().join("gate"), tools.path().join("bwrap"));
    let path = std::env::var("PATH").expect("a path");
    let real = std::env::split_paths(&path).map(|dir| dir.join("bwrap")).find(|file| file.is_file());
    let script = "[ -e '{gate}' ] && rm -f '{key}'\nexec '{real}' \"$@\"\n"
        .replace("{gate}", &gate.to_string_lossy())
        .replace("{key}", &key.to_string_lossy())
        .replace("{real}", &real.unwrap_or_default().to_string_lossy());
    fs::write(&program, format!("#!/bin/sh\n{script}")).expect("a program");
    mode_of(&program, 0o755);
    let path = format!("{}:{path}", tools.path().display());
    let Some(fixture) = start_sandbox("bubblewrap", &[("PATH", &path)]) else { return };
    let try_to = format!("cat '{}'; echo ran", key.display());
    let told = run_command(&fixture, &try_to).ok();
    assert!(told.ends_with("ran\n") && !told.contains("of root"), "{told}");
    fs::write(&gate, "").expect("a gate");
    let told = run_command(&fixture, &try_to).ok();
    assert!(told.ends_with("ran\n") && !key.exists(), "{told}");
}

#[test]
fn what_git_is_told_to_run_reaches_no_more_than_bash() {
    for fixture in each_sandbox() {
        let key = fixture.home.user_home.join(".ssh/id_ed25519");
        fs::create_dir_all(key.parent().expect("a directory")).expect("made");
        fs::write(&key, "sk-key-of-mine").expect("a key");
        let theft = format!("cat {} {}/agent.json; ls /run", key.display(), fixture.home.agent_dir("a").display());
        let dir = fixture.workspace("a");
        let program = format!("#!/bin/sh\n{{ {theft}; }} > '{}'/$1 2>&1; cat\n", dir.display());
        fs::write(dir.join("thief"), program).expect("a program");
        mode_of(&dir.join("thief"), 0o755);
        let git = format!(
            "thief={}/thief; git init -q r && cd r && echo '* filter=x' > .gitattributes && \
             git config filter.x.clean \"$thief filtered\" && printf '#!/bin/sh\n%s hooked </dev/null\n' $thief > .git/hooks/pre-commit && \
             chmod +x .git/hooks/pre-commit && git add . && \
             git -c core.hooksPath=.git/hooks -c user.name=a -c user.email=a@b commit -qm x",
            dir.display()
        );
        run_command(&fixture, &git).ok();
        for ran in ["filtered", "hooked"] {
            let said = fs::read_to_string(dir.join(ran)).expect("it ran");
            assert_eq!(said.matches("No such file or directory").count(), 3, "{ran}: {said}");
        }
    }
}

#[test]
fn the_socket_is_out_of_reach_wherever_it_lies() {
    for mut fixture in each_sandbox() {
        // In the one place that every command sees.
        let socket = fixture.workspace("a").join("daemon.sock");
        let other = fixture.home.temp_dir().join("other");
        let mut command = fixture.home.command(fixture.home.bins.chorusd);
        command
            .env("CHORUS_SANDBOX", sandbox_info(&fixture).way)
            .env("CHORUS_SOCKET", &socket)
            .env("CHORUS_HOME", &fixture.home.path);
        fixture.stop();
        let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("chorusd");
        let mut client = chorus_tests::wait_until("the daemon", chorus_tests::DEADLINE, || {
            chorus_proto::Client::connect(&socket).ok()
        });
        client.set_timeout(Some(chorus_tests::DEADLINE)).expect("a time-out");
        use chorus_proto::methods::send::{Send, SendParams};
        use chorus_tests::client_ext::ClientExt as _;
        use chorus_tests::model_server::Response;
        let call = json!({"command": connect(socket.to_str().expect("a path"))});
        fixture.models().anthropic().queue(Response::tool_call("c", "bash", &call));
        fixture.models().anthropic().queue(Response::text(["Done."]));
        let params = SendParams { agent: Some("a".into()), text: "Go.".into(), ..Default::default() };
        client.call::<Send>(&params).expect("a turn");
        let told = client.messages("a").into_iter().rfind(|message| message.role == chorus_proto::Role::ToolResult);
        let told = told.expect("a result").content;
        assert!(!told.contains("open") && told.contains("[exit status 0]"), "{told}");
        chorus_tests::process::kill(child.id());
        child.wait().expect("its end");
        drop((other, InitParams::default()));
    }
}

#[test]
fn processes_and_terminals_of_others_are_not_there() {
    for fixture in each_sandbox() {
        let seen =
            run_command(&fixture, "ls /proc | grep -c '^[0-9]'; cat /proc/1/comm; kill -9 1; ls /proc/self/fd; true");
        let lines: Vec<_> = seen.text.lines().collect();
        assert!(lines[0].parse::<u32>().expect("a number") < 8, "{seen:?}");
        // The helper: under bubblewrap it has the name of its mount.
        assert!(["exe", ".chorus-inside"].contains(&lines[1]), "{seen:?}");
        // None but the streams and the one that lists.
        assert_eq!(lines[lines.len() - 5..], ["0", "1", "2", "3", "[exit status 0]"], "{seen:?}");
        assert!(run_command(&fixture, "echo x > /dev/tty").is_error);
        // The first process holds the line to the daemon.
        assert!(run_command(&fixture, "cat /proc/1/mem || cat /proc/1/environ || readlink /proc/1/fd/0").is_error);
        // To root these are files of its own.
        for file in ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname"] {
            assert!(run_command(&fixture, &format!("echo x > {file}")).is_error, "{file}");
        }
    }
}

#[test]
fn the_network_is_out_of_reach_unless_the_profile_has_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    let name = format!("chorus-test-{port}");
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("an abstract socket");
    let knock = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo through");
    for way in WAYS {
        let Some(fixture) = start_sandbox(way, &[]) else { continue };
        assert!(!run_command(&fixture, &knock).text.contains("through"), "{way}");
        // What talks to itself works.
        let itself = "python3 -c \"\nimport socket\nl = socket.create_server(('127.0.0.1', 0))\n\
                      socket.create_connection(l.getsockname()); print('through')\"";
        assert_eq!(run_command(&fixture, itself).ok(), "through\n", "{way}");
        assert!(!run_command(&fixture, &connect(&format!("@{name}"))).text.contains("open"));
        let fixture = start_fixture(way, "net", &[]);
        assert!(run_command(&fixture, &knock).ok().contains("through"), "{way}");
        assert!(!run_command(&fixture, "cat /etc/resolv.conf").is_error || !Path::new("/etc/resolv.conf").exists());
        let reached = sandbox_info(&fixture);
        let told = run_command(&fixture, &connect(&format!("@{name}")));
        let scoped = reached.landlock.is_some_and(|version| version >= 6);
        assert_eq!(told.text.contains("open"), !scoped, "{way}: {told:?} {reached:?}");
        assert!(scoped || reached.missing.iter().any(|missing| missing.contains("abstract")), "{reached:?}");
    }
}

#[test]
fn calls_that_open_sandboxes_are_refused_and_programs_go_on() {
    for fixture in each_sandbox() {
        for refused in ["unshare -U true", "unshare -m true", "mount -t tmpfs x /tmp", "chroot / true", "dmesg"] {
            assert!(run_command(&fixture, refused).is_error, "{refused}");
        }
        let families = "python3 -c \"\nimport socket\nfor f, p in ((17, 0), (38, 0), (16, 9), (40, 0)):\n  \
                        try:\n    socket.socket(f, 3 if f == 16 else 1, p); print('open')\n  except OSError: print('shut')\"";
        assert_eq!(run_command(&fixture, families).ok(), "shut\n".repeat(4));
        let caps =
            run_command(&fixture, "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status").ok();
        let zeros = caps.lines().filter(|line| line.starts_with("Cap")).all(|line| line.ends_with("0000000000000000"));
        assert!(zeros && caps.contains("NoNewPrivs:\t1") && caps.contains("Seccomp:\t2"), "{caps}");
        // Threads and processes of all kinds can be had.
        let threads = "python3 -c \"import threading, subprocess\nt = threading.Thread(target=print, args=('t',)); t.start(); \
                       t.join(); subprocess.run(['true'], check=True)\"";
        assert_eq!(run_command(&fixture, threads).ok(), "t\n");
    }
}
