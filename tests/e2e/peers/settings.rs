//! Faults in the settings of a node's connections.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::SystemTime;

use chorus_peers::{CheckState, ClusterCredentials, ClusterSettings, check_settings};
use chorus_tests::certificates::Authority;

use super::{Certificates, Result, VALID, names_of, sign};

/// The checks of a node's settings that did not succeed, each with its hint.
fn problems(settings: &ClusterSettings) -> Vec<String> {
    let failed = check_settings(settings, "a", SystemTime::now());
    let failed = failed.into_iter().filter(|check| check.state != CheckState::Ok);
    failed.map(|check| format!("{}: {} / {}", check.setting, check.text, check.hint.unwrap_or_default())).collect()
}

#[test]
fn good_settings_have_no_problem() -> Result {
    let certificates = Certificates::create()?;
    let settings = certificates.settings("a");
    assert_eq!(problems(&settings), Vec::<String>::new());
    let checked = check_settings(&settings, "a", SystemTime::now());
    let settings_checked: Vec<_> = checked.iter().map(|check| check.setting).collect();
    assert_eq!(settings_checked, ["listen", "advertise", "ca", "key", "cert"]);
    ClusterCredentials::load(&settings, "a")?;
    Ok(())
}

#[test]
fn each_wrong_setting_is_named_with_what_to_do() -> Result {
    let certificates = Certificates::create()?;
    let good = certificates.settings("a");
    let other = Authority::create(&certificates.path("other"), "cluster");
    let empty = certificates.path("empty");
    std::fs::write(&empty, "nothing\n")?;
    std::fs::set_permissions(&empty, std::fs::Permissions::from_mode(0o600))?;
    let with = |file: &str, names: &str, days| {
        let (cert, key) = certificates.sign_names(file, names, days);
        ClusterSettings { cert, key, ..good.clone() }
    };
    let (foreign, foreign_key) = sign(&other, certificates.dir.path(), "foreign", &names_of("a"), VALID);
    let readable = certificates.path("readable.key");
    std::fs::copy(&good.key, &readable)?;
    std::fs::set_permissions(&readable, std::fs::Permissions::from_mode(0o640))?;
    let encrypted = certificates.path("encrypted.key");
    let mut encrypt = Command::new("openssl");
    encrypt.args(["pkey", "-aes256", "-passout", "pass:x", "-in"]).arg(&good.key).arg("-out").arg(&encrypted);
    assert!(encrypt.status()?.success());
    let wrong_use = format!("{}\nextendedKeyUsage=serverAuth", names_of("a"));
    let table = [
        (ClusterSettings { listen: "a:7700".into(), ..good.clone() }, "listen: \"a:7700\" is not", "0.0.0.0:7700"),
        (
            ClusterSettings { advertise: "a".into(), ..good.clone() },
            "advertise: \"a\" is not a host and a port to connect to: the port is missing",
            "example",
        ),
        (
            ClusterSettings { advertise: "0.0.0.0:7700".into(), ..good.clone() },
            "advertise: \"0.0.0.0:7700\" is not a host and a port to connect to: it stands for all addresses",
            "example",
        ),
        (ClusterSettings { ca: "/missing".into(), ..good.clone() }, "ca: /missing: the file does not exist", "path"),
        (ClusterSettings { ca: empty.clone(), ..good.clone() }, "no certificate is in it", "PEM"),
        (ClusterSettings { cert: empty.clone(), ..good.clone() }, "no certificate is in it", "PEM"),
        (ClusterSettings { cert: certificates.dir.path().into(), ..good.clone() }, "it is not a file", "file"),
        (ClusterSettings { key: empty, ..good.clone() }, "no private key is in it", "PEM"),
        (ClusterSettings { key: readable, ..good.clone() }, "its mode is 0640", "chmod 600"),
        (ClusterSettings { key: encrypted, ..good.clone() }, "encrypted with a password", "openssl pkey"),
        (ClusterSettings { key: foreign_key.clone(), ..good.clone() }, "not that of the certificate", "together"),
        (ClusterSettings { cert: foreign, key: foreign_key, ..good.clone() }, "authority that is not trusted", "`ca`"),
        (with("expired", &names_of("a"), -9..-1), "it expired on", "renew"),
        (with("future", &names_of("a"), 3..9), "it is not valid before", "clock"),
        (with("soon", &names_of("a"), -1..9), "cert: the certificate expires on", "renew"),
        (with("b", &names_of("b"), VALID), "no URI chorus:node:a", "URI:chorus:node:a"),
        (
            with("host", "DNS:b,URI:chorus:node:a", VALID),
            "it does not name 127.0.0.1, only b",
            "subjectAltName = IP:127.0.0.1",
        ),
        (with("use", &wrong_use, VALID), "has no clientAuth", "extendedKeyUsage = serverAuth, clientAuth"),
    ];
    for (settings, wanted, hint) in &table {
        let found = problems(settings);
        assert!(matches!(&found[..], [one] if one.contains(wanted) && one.contains(hint)), "{wanted}: {found:?}");
        let loaded = ClusterCredentials::load(settings, "a");
        match loaded {
            Ok(_) => assert!(wanted.contains("expires on"), "{wanted}: it was accepted"),
            Err(failure) => {
                assert!(failure.message.contains("of [cluster]") && failure.hint.is_some(), "{failure:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_wildcard_names_a_host_and_no_node() -> Result {
    let certificates = Certificates::create()?;
    let names = "DNS:*.example.org,IP:127.0.0.1,URI:chorus:node:*";
    let (cert, key) = certificates.sign_names("wild", names, VALID);
    let found = problems(&ClusterSettings { cert, key, ..certificates.settings("a") });
    assert!(matches!(&found[..], [one] if one.contains("no URI chorus:node:a")), "{found:?}");
    Ok(())
}
