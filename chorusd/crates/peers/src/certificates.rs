//! Names in certificates, and what is wrong with a certificate, in words.

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{AlertDescription, CertificateError, ExtendedKeyPurpose};

/// Start of the URI in `subjectAltName` that names a node. A certificate without one belongs to no node, so that an
/// authority may sign for other purposes, too.
pub(crate) const NODE_URI: &str = "chorus:node:";

/// True if the certificate names the node.
pub(crate) fn names_node(certificate: &CertificateDer<'_>, id: &str) -> bool {
    node_names(certificate).iter().any(|name| name == id)
}

/// The nodes that a certificate names.
pub(crate) fn node_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else { return Vec::new() };
    parsed.valid_uri_names().filter_map(|uri| uri.strip_prefix(NODE_URI)).map(str::to_owned).collect()
}

/// A sentence about a certificate that was refused, without its subject.
pub(crate) fn describe(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired => "it has expired".to_owned(),
        CertificateError::ExpiredContext { not_after, .. } => format!("it expired on {}", date(*not_after)),
        CertificateError::NotValidYet => "it is not valid yet".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("it is not valid before {}", date(*not_before))
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is signed by an authority that is not trusted".to_owned()
        }
        CertificateError::NotValidForName => "it names another host".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let hosts: Vec<&str> = presented.iter().filter_map(|name| host_in(name)).collect();
            let named = if hosts.is_empty() { "no host".to_owned() } else { format!("only {}", hosts.join(", ")) };
            format!("it does not name {}, {named}", expected.to_str())
        }
        CertificateError::InvalidPurposeContext { required, .. } => match required {
            ExtendedKeyPurpose::ClientAuth => "its extendedKeyUsage has no clientAuth".to_owned(),
            ExtendedKeyPurpose::ServerAuth => "its extendedKeyUsage has no serverAuth".to_owned(),
            ExtendedKeyPurpose::Other(_) => "its extendedKeyUsage does not allow it".to_owned(),
        },
        CertificateError::InvalidPurpose => "its extendedKeyUsage does not allow it".to_owned(),
        other => other.to_string(),
    }
}

/// The host in a name as rustls writes it, such as `DnsName("a.example.org")`; `None` for the URI of a node.
fn host_in(name: &str) -> Option<&str> {
    let inside = name.strip_prefix("DnsName(").or_else(|| name.strip_prefix("IpAddress("))?;
    Some(inside.strip_suffix(')')?.trim_matches('"'))
}

/// A sentence about the alert with which the other side ended a handshake.
pub(crate) fn describe_alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateExpired => "it says that this node's certificate is not valid now".to_owned(),
        AlertDescription::UnknownCA => "it does not trust the authority of this node's certificate".to_owned(),
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRequired
        | AlertDescription::UnsupportedCertificate => "it refused this node's certificate".to_owned(),
        AlertDescription::NoApplicationProtocol => "it is not a node of Chorus, or of another version".to_owned(),
        other => format!("it ended the handshake: {other:?}"),
    }
}

/// The day of a time, in UTC.
pub(crate) fn date(time: UnixTime) -> String {
    let second = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(second)
        .map_or_else(|_| "an unknown day".to_owned(), |at| at.strftime("%F %R UTC").to_string())
}
