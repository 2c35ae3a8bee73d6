//! The path that all pages are below. Browsers send a cookie to every port of a host, so also to a listener of another user of this
//! machine: the cookie is only for this path, which nobody else knows. It stays the same for a home, so that addresses of messages do.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use chorus_base::hex;
use chorus_base::private_fs::{create_private, write_private};
use sha2::{Digest as _, Sha256};

use crate::login::new_token;

/// The file with the key, in the directory `run` of the home.
const KEY_FILE: &str = "web.key";
/// The length of the key, and of the name that is made of it.
const KEY_LENGTH: usize = 64;
const NAME_LENGTH: usize = 32;

static PREFIX: OnceLock<String> = OnceLock::new();

/// Reads or creates the key of a home, and makes the path of it.
pub(crate) fn set_up(home: &Path) -> io::Result<()> {
    let key = read_key(home)?;
    let name = hex(&Sha256::digest(format!("chorus web: path of the pages: {key}")));
    // A process serves one home.
    let _ = PREFIX.set(format!("/{}", &name[..NAME_LENGTH]));
    Ok(())
}

fn read_key(home: &Path) -> io::Result<String> {
    let dir = home.join("run");
    let file = dir.join(KEY_FILE);
    match fs::read_to_string(&file) {
        Ok(key) if key.len() == KEY_LENGTH => return Ok(key),
        Err(error) if error.kind() != io::ErrorKind::NotFound && error.kind() != io::ErrorKind::InvalidData => {
            return Err(error);
        }
        Ok(_) | Err(_) => {}
    }
    let key = new_token()?;
    create_private(&dir)?;
    write_private(&file, key.as_bytes())?;
    Ok(key)
}

/// Returns the address of a page, whose path below the prefix is `path`.
pub(crate) fn at(path: &str) -> String {
    format!("{}{path}", prefix())
}

pub(crate) fn prefix() -> &'static str {
    PREFIX.get().map_or("", String::as_str)
}

/// Returns what follows the prefix in a path; `None` without the prefix.
pub(crate) fn strip(path: &str) -> Option<&str> {
    let (given, rest) = path.split_at_checked(prefix().len())?;
    // How long it takes to compare hashes says nothing about the prefix.
    let is_ours = Sha256::digest(given) == Sha256::digest(prefix());
    (is_ours && rest.starts_with('/')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_key_of_a_home_stays() {
        let home = std::env::temp_dir().join(format!("chorus-web-{}", chorus_base::new_id()));
        let key = read_key(&home).expect("a key");
        assert_eq!((key.len(), read_key(&home).expect("a key")), (KEY_LENGTH, key.clone()));
        let file = home.join("run").join(KEY_FILE);
        assert_eq!(fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o600);
        fs::write(&file, "x").expect("the file");
        assert_ne!(read_key(&home).expect("a key"), key);
        fs::remove_dir_all(&home).expect("the directory");
    }
}
