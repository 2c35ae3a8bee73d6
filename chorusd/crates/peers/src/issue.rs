//! An authority of a cluster and certificates that it signs for nodes, as files.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use chorus_base::private_fs::{create_private, write_private};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType, date_time_ymd,
};
use rustls::pki_types::ServerName;

use crate::certificates::NODE_URI;
use crate::pem_files::FileProblem;
use crate::settings::ClusterSettings;
use crate::settings_checks::{CheckState, check_settings};

/// Years for which an authority is valid.
const AUTHORITY_YEARS: i32 = 10;
/// Days for which the certificate of a node is valid.
const NODE_DAYS: i64 = 730;
/// Common name of the authority. The key tells two of them apart.
const AUTHORITY_NAME: &str = "Chorus cluster authority";

/// A node that is to have a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNode {
    /// Its name, the `node` of `[cluster]`.
    pub name: String,
    /// Hosts at which others reach it: names or IP addresses, at least one.
    pub hosts: Vec<String>,
}

/// The result of [`issue_certificates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    /// True if the authority was created; false if it was there.
    pub new_authority: bool,
    /// The last day on which the certificates are valid.
    pub valid_until: Date,
}

/// A reason why no certificate was issued, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct IssueError {
    /// A sentence.
    pub text: String,
    /// The thing to do about it.
    pub hint: String,
}

impl IssueError {
    fn new(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { text: text.into(), hint: hint.into() }
    }

    fn io(path: &Path, error: &io::Error) -> Self {
        Self::new(format!("{}: {error}", path.display()), "choose a directory that you may write to: --dir DIR")
    }

    fn signing(error: &rcgen::Error) -> Self {
        Self::new(format!("cannot sign a certificate: {error}"), "report this: it is a defect")
    }
}

impl From<FileProblem> for IssueError {
    fn from(problem: FileProblem) -> Self {
        Self { text: problem.text, hint: problem.hint }
    }
}

/// Signs a certificate for each node, at this time. Writes `ca.pem`, `cert.pem` and `key.pem` into the directory `NAME` of `dir`, and
/// `ca.pem` with `ca-key.pem` into `dir` if they are not there. Files of an earlier certificate of a node are replaced.
///
/// # Errors
/// If a name or host is wrong, an authority is there that was made in another way, or certificates are there without theirs,
/// before anything is written; if a file cannot be read or written.
pub fn issue_certificates(dir: &Path, nodes: &[NewNode], now: Timestamp) -> Result<Issued, IssueError> {
    for (place, node) in nodes.iter().enumerate() {
        check_node(node)?;
        if nodes[..place].iter().any(|other| other.name == node.name) {
            let hint = format!("name all of its hosts at once: {}=HOST,HOST", node.name);
            return Err(IssueError::new(format!("node {} is there twice", node.name), hint));
        }
    }
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let (authority_file, authority_key) = (dir.join("ca.pem"), dir.join("ca-key.pem"));
    let new_authority = !exists(&authority_file)?;
    if new_authority && !exists(&authority_key)? {
        refuse_certificates(dir)?;
    }
    let params = authority_params(today)?;
    let key = match new_authority && !exists(&authority_key)? {
        true => KeyPair::generate().map_err(|e| IssueError::signing(&e))?,
        false => read_authority_key(&authority_key)?,
    };
    let authority = match new_authority {
        true => params.self_signed(&key).map_err(|e| IssueError::signing(&e))?.pem(),
        false => std::fs::read_to_string(&authority_file).map_err(|e| IssueError::io(&authority_file, &e))?,
    };
    let key_pem = key.serialize_pem();
    let issuer = Issuer::new(params, key);
    let valid_until = today + NODE_DAYS.days();
    create_private(dir).map_err(|e| IssueError::io(dir, &e))?;
    // The key first: an authority without one could sign nothing more.
    if new_authority {
        for (file, text) in [(&authority_key, &key_pem), (&authority_file, &authority)] {
            write_private(file, text.as_bytes()).map_err(|e| IssueError::io(file, &e))?;
        }
    }
    for node in nodes {
        let (certificate, key) = sign(node, &issuer, today, valid_until).map_err(|e| IssueError::signing(&e))?;
        write_node(dir, node, &authority, &certificate, &key, now)?;
    }
    Ok(Issued { new_authority, valid_until })
}

/// Refuses a directory with certificates of nodes: another authority than theirs would sign the new ones.
fn refuse_certificates(dir: &Path) -> Result<(), IssueError> {
    let found = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|e| IssueError::io(dir, &e))?,
    };
    match found.flatten().map(|entry| entry.path()).find(|node| node.join("cert.pem").exists()) {
        Some(node) => {
            let what = format!("{} has certificates of nodes, and not their authority", dir.display());
            let hint = format!(
                "put ca.pem and ca-key.pem back that signed {}; for a new authority choose another directory: --dir DIR",
                node.join("cert.pem").display()
            );
            Err(IssueError::new(what, hint))
        }
        None => Ok(()),
    }
}

fn exists(path: &Path) -> Result<bool, IssueError> {
    path.try_exists().map_err(|e| IssueError::io(path, &e))
}

fn check_node(node: &NewNode) -> Result<(), IssueError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_taken = ["ca.pem", "ca-key.pem"].contains(&node.name.as_str());
    if is_taken || node.name.is_empty() || node.name.starts_with('.') || !node.name.chars().all(is_allowed) {
        let text = format!("`{}` is not a name of a node", node.name);
        return Err(IssueError::new(text, "letters, digits, `-`, `_` and `.`, not with a `.` first, nor ca.pem"));
    }
    match node.hosts.iter().find(|host| ServerName::try_from(host.as_str()).is_err()) {
        Some(host) => {
            let hint = "a host name or an IP address, without a port, such as a=a.example.org";
            Err(IssueError::new(format!("`{host}` is not a host"), hint))
        }
        None if node.hosts.is_empty() => {
            let hint = format!("{}=HOST, at which other nodes reach it", node.name);
            Err(IssueError::new(format!("node {} has no host", node.name), hint))
        }
        None => Ok(()),
    }
}

fn read_authority_key(path: &Path) -> Result<KeyPair, IssueError> {
    let hint =
        "put the key of the authority there, or choose another directory to start with a new authority: --dir DIR";
    let text = std::fs::read_to_string(path)
        .map_err(|e| IssueError::new(format!("the key of the authority, {}: {e}", path.display()), hint))?;
    KeyPair::from_pem(&text)
        .map_err(|e| IssueError::new(format!("the key of the authority, {}: {e}", path.display()), hint))
}

/// The name and extensions of the authority, which certificates refer to.
fn authority_params(today: Date) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::new(Vec::new()).map_err(|e| IssueError::signing(&e))?;
    params.distinguished_name.push(DnType::CommonName, AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, today, today + AUTHORITY_YEARS.years());
    Ok(params)
}

/// Valid from the day before on: clocks of machines differ.
fn set_validity(params: &mut CertificateParams, today: Date, until: Date) {
    let date = |date: Date| date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs());
    params.not_before = date(today - SignedDuration::from_hours(24));
    params.not_after = date(until);
}

/// Returns the certificate and its key as PEM.
fn sign(
    node: &NewNode,
    issuer: &Issuer<'_, KeyPair>,
    today: Date,
    until: Date,
) -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, node.name.as_str());
    for host in &node.hosts {
        params.subject_alt_names.push(match host.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(host.as_str().try_into()?),
        });
    }
    params.subject_alt_names.push(SanType::URI(format!("{NODE_URI}{}", node.name).try_into()?));
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, today, until);
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// Writes the files of a node next to their place, checks them as a daemon would, and puts them there.
fn write_node(
    dir: &Path,
    node: &NewNode,
    authority: &str,
    certificate: &str,
    key: &str,
    now: Timestamp,
) -> Result<(), IssueError> {
    let place = dir.join(&node.name);
    create_private(&place).map_err(|e| IssueError::io(&place, &e))?;
    let names = ["ca.pem", "cert.pem", "key.pem"];
    let new = names.map(|name| place.join(format!("{name}.new")));
    for (file, text) in new.iter().zip([authority, certificate, key]) {
        write_private(file, text.as_bytes()).map_err(|e| IssueError::io(file, &e))?;
    }
    let host = &node.hosts[0];
    let [ca, cert, key] = new.clone();
    let advertise = if host.contains(':') { format!("[{host}]:1") } else { format!("{host}:1") };
    let settings = ClusterSettings { listen: "127.0.0.1:1".into(), advertise, ca, cert, key };
    let checks = check_settings(&settings, &node.name, now.into());
    if let Some(failed) = checks.into_iter().find(|check| check.state == CheckState::Failed) {
        new.iter().for_each(|file| drop(std::fs::remove_file(file)));
        let hint = "if ca.pem and ca-key.pem were not made by this command, sign with the program that made them; or choose \
                    another directory: --dir DIR";
        return Err(IssueError::new(failed.text, hint));
    }
    for (from, name) in new.iter().zip(names) {
        let to = place.join(name);
        std::fs::rename(from, &to).map_err(|e| IssueError::io(&to, &e))?;
    }
    Ok(())
}
