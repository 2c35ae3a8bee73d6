//! Reads certificates and keys from PEM files, and says what is wrong with a file.

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::settings::ClusterSettings;

/// Limit of bytes of a file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Bits of a mode with which others may read or write a file.
const OTHERS: u32 = 0o077;

/// A file that cannot be used: what is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileProblem {
    pub(crate) text: String,
    pub(crate) hint: String,
}

impl FileProblem {
    pub(crate) fn new(path: &Path, what: impl std::fmt::Display, hint: impl Into<String>) -> Self {
        Self { text: format!("{}: {what}", path.display()), hint: hint.into() }
    }
}

/// Reads the certificates of the authorities: blocks.
pub(crate) fn read_authorities(path: &Path) -> Result<RootCertStore, FileProblem> {
    let bytes = read(path, false)?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, &bytes)? {
        roots.add(certificate).map_err(|e| FileProblem::new(path, e, "write the authority's certificate again"))?;
    }
    Ok(roots)
}

/// Reads the certificate of the node, and those between it and the authority: blocks.
pub(crate) fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileProblem> {
    certificates(path, &read(path, false)?)
}

/// Reads the private key: blocks. Nobody but its owner may read it.
pub(crate) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, FileProblem> {
    let bytes = read(path, true)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|e| {
        if String::from_utf8_lossy(&bytes).contains("ENCRYPTED") {
            let hint = "write the key without a password: openssl pkey -in KEY -out NEW";
            return FileProblem::new(path, "the key is encrypted with a password", hint);
        }
        let hint = "the file must have a private key in PEM";
        match e {
            pem::Error::NoItemsFound => FileProblem::new(path, "no private key is in it", hint),
            other => FileProblem::new(path, other, hint),
        }
    })
}

fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, FileProblem> {
    let hint = "the file must have certificates in PEM";
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let found = found.map_err(|e| FileProblem::new(path, e, hint))?;
    if found.is_empty() { Err(FileProblem::new(path, "no certificate is in it", hint)) } else { Ok(found) }
}

fn read(path: &Path, is_secret: bool) -> Result<Vec<u8>, FileProblem> {
    let unreadable = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => FileProblem::new(path, "the file does not exist", "check the path"),
        io::ErrorKind::PermissionDenied => {
            FileProblem::new(path, "the user of the daemon may not read it", "check the owner and the mode")
        }
        _ => FileProblem::new(path, e, "check the path"),
    };
    // Opening a pipe could block.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(FileProblem::new(path, "it is not a file", "name a file"));
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if is_secret {
        check_secret(path, &metadata)?;
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn check_secret(path: &Path, metadata: &std::fs::Metadata) -> Result<(), FileProblem> {
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own && metadata.uid() != 0 {
        let what = format!("it belongs to the user {}, not to {own}", metadata.uid());
        return Err(FileProblem::new(path, what, format!("chown {own} {}", path.display())));
    }
    if metadata.mode() & OTHERS != 0 {
        let what = format!("its mode is {:04o}: other users may have access", metadata.mode() & 0o7777);
        return Err(FileProblem::new(path, what, format!("chmod 600 {}", path.display())));
    }
    Ok(())
}

/// Identity of the contents of the three files, without reading them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilesStamp([Option<FileStamp>; 3]);

type FileStamp = (u64, u64, u64, Option<SystemTime>, i64, i64);

impl FilesStamp {
    /// Looks at the files: blocks.
    pub(crate) fn read(settings: &ClusterSettings) -> Self {
        Self([&settings.ca, &settings.cert, &settings.key].map(|path| {
            let found = std::fs::metadata(path).ok()?;
            let modified = found.modified().ok();
            Some((found.dev(), found.ino(), found.len(), modified, found.ctime(), found.ctime_nsec()))
        }))
    }
}
