//! Certificates that `openssl` signs for a test.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An authority, whose files are in a directory.
#[derive(Debug)]
pub struct Authority {
    dir: PathBuf,
}

impl Authority {
    /// Creates an authority of this name; its certificate is `ca.crt` in the directory.
    #[must_use]
    pub fn create(dir: &Path, name: &str) -> Self {
        std::fs::create_dir_all(dir).expect("a directory");
        let authority = Self { dir: dir.to_owned() };
        let subject = format!("/CN={name}");
        let named = ["-days", "2", "-subj", &subject, "-keyout", "ca.key", "-out", "ca.crt"];
        authority.run(&[&["req", "-x509", "-newkey", "rsa:2048", "-nodes"], &named[..]].concat());
        authority
    }

    /// The certificate of the authority itself.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    /// Signs a certificate for a host, which is valid for `days`; with 0 it expires at once. Writes it and its key as PEM.
    ///
    /// # Panics
    /// If `openssl` fails or the files cannot be written.
    pub fn sign(&self, host: &str, days: u32, certificate: &Path, key: &Path) {
        let extensions = format!("subjectAltName=DNS:{host}\nbasicConstraints=critical,CA:FALSE\n");
        std::fs::write(self.dir.join("extensions"), extensions).expect("a file");
        self.run(&["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-keyout", "x.key", "-out", "x.csr"]);
        let days = days.to_string();
        let signed = ["-days", &days, "-sha384", "-extfile", "extensions", "-out", "x.crt"];
        let signer = ["x509", "-req", "-in", "x.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"];
        self.run(&[&signer[..], &signed[..]].concat());
        std::fs::copy(self.dir.join("x.crt"), certificate).expect("a certificate");
        std::fs::copy(self.dir.join("x.key"), key).expect("a key");
    }

    /// Signs a certificate with these extensions, such as `subjectAltName=DNS:a`, that is valid in the range of days from now.
    /// Writes it and its key as PEM.
    ///
    /// # Panics
    /// If `openssl` fails or the files cannot be written.
    pub fn sign_extensions(&self, extensions: &str, days: Range<i64>, certificate: &Path, key: &Path) {
        std::fs::write(self.dir.join("extensions"), format!("{extensions}\n")).expect("a file");
        let config = "[ca]\ndefault_ca=x\n[x]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\n\
                      unique_subject=no\npolicy=any\n[any]\ncommonName=optional\n";
        std::fs::write(self.dir.join("ca.cnf"), config).expect("a file");
        std::fs::write(self.dir.join("index"), "").expect("a file");
        let day = |days: i64| {
            let at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * days);
            at.strftime("%Y%m%d%H%M%SZ").to_string()
        };
        let (start, end) = (day(days.start), day(days.end));
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x"];
        self.run(&[&["req", "-keyout", "y.key", "-out", "y.csr"], &curve[..]].concat());
        let signed =
            ["-batch", "-notext", "-config", "ca.cnf", "-cert", "ca.crt", "-keyfile", "ca.key", "-in", "y.csr"];
        let valid = ["-startdate", &start, "-enddate", &end, "-extfile", "extensions", "-out", "y.crt"];
        self.run(&[&["ca"], &signed[..], &valid[..]].concat());
        std::fs::copy(self.dir.join("y.crt"), certificate).expect("a certificate");
        std::fs::copy(self.dir.join("y.key"), key).expect("a key");
    }

    fn run(&self, args: &[&str]) {
        let mut command = Command::new("openssl");
        command.args(args).current_dir(&self.dir).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().expect("openssl").success(), "{command:?}");
    }
}
