//! The hash of a server's certificate to which SCRAM binds a password (`tls-server-end-point`, RFC 5929): whoever passes the
//! login on to the real server has another certificate, and fails.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// Object identifiers of signatures, and the hash that each one means; MD5 and SHA-1 are replaced by SHA-256.
const SIGNATURES: &[(&[u8], Hash)] = &[
    // RSA with MD5, SHA-1, SHA-256, SHA-384, SHA-512: 1.2.840.113549.1.1.{4,5,11,12,13}
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 4], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 5], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 11], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 12], Hash::Sha384),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 13], Hash::Sha512),
    // ECDSA with SHA-1, SHA-256, SHA-384, SHA-512: 1.2.840.10045.4.1 and 1.2.840.10045.4.3.{2,3,4}
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 1], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 2], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 3], Hash::Sha384),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 4], Hash::Sha512),
];

#[derive(Debug, Clone, Copy)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// Hashes a certificate in DER. `None` if its signature means no single hash, as with Ed25519 and RSA-PSS: then the login is
/// not bound, as with a client that cannot do it.
pub(crate) fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { algorithm, .. }, .. }
    let (outer, _) = element(certificate)?;
    let (_, after_body) = element(outer)?;
    let (algorithm, _) = element(after_body)?;
    let (identifier, _) = element(algorithm)?;
    let (_, hash) = SIGNATURES.iter().find(|(known, _)| *known == identifier)?;
    Some(match hash {
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

/// The contents of the first element of DER, and what follows it.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, mut rest) = bytes.get(1..)?.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        length = digits.iter().try_fold(0_usize, |sum, digit| Some(sum.checked_mul(256)? + usize::from(*digit)))?;
        rest = after;
    }
    rest.split_at_checked(length)
}
