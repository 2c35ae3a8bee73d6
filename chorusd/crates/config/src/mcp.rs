//! `[mcp.NAME]`: servers of the Model Context Protocol whose tools agents may use.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_base::Secret;
use serde_json::{Value, json};
use url::Url;

use super::display::duration_value;
use super::keys::set_positive_duration;
use super::provider::{KeySource, NamedTableKey, key_from_env, parse_name};
use super::raw_value::RawConfigValue;

/// Limit on the characters of a server's name, which is a part of the names of its tools.
const MAX_NAME_CHARS: usize = 32;

/// Limit of a token file in bytes.
const MAX_TOKEN_FILE_BYTES: u64 = 16 << 10;

/// Default time limit of a tool call.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// A server of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    pub transport: McpTransport,
    /// Limit of a tool call.
    pub timeout: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    Program(McpProgram),
    Http(McpHttp),
}

/// A server that is a program, which runs in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpProgram {
    /// The program and its arguments; not empty.
    pub command: Vec<String>,
    /// Variables of the daemon's environment that it gets.
    pub env: Vec<EnvVariable>,
    pub network: bool,
    /// Files and directories that it may read, as absolute paths.
    pub read: Vec<PathBuf>,
    /// Files and directories that it may write, too.
    pub write: Vec<PathBuf>,
}

/// A server at an address (streamable HTTP).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpHttp {
    pub url: String,
    /// Sent as `Authorization: Bearer`.
    pub token: KeySource,
    /// Further headers with the variables that hold their values.
    pub headers: Vec<(String, EnvVariable)>,
}

/// A variable of the daemon's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvVariable {
    pub name: String,
    /// `None` if it is not set.
    pub value: Option<Secret>,
}

impl EnvVariable {
    fn look_up(name: String, env: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let value = env(&name).map(|value| Secret::new(value.to_string_lossy().into_owned()));
        Self { name, value }
    }
}

impl McpServer {
    /// Returns true if the server is a program.
    #[must_use]
    pub fn is_program(&self) -> bool {
        matches!(self.transport, McpTransport::Program(_))
    }

    /// Returns the file with its token.
    #[must_use]
    pub fn token_file(&self) -> Option<&Path> {
        match &self.transport {
            McpTransport::Program(_) => None,
            McpTransport::Http(http) => http.token.file(),
        }
    }

    /// Lists the keys of its table with their values, without secrets.
    pub(crate) fn to_entries(&self) -> Vec<(&'static str, Value)> {
        let mut entries = match &self.transport {
            McpTransport::Program(program) => {
                let names: Vec<&str> = program.env.iter().map(|variable| &*variable.name).collect();
                vec![
                    ("command", json!(program.command)),
                    ("env", json!(names)),
                    ("network", json!(program.network)),
                    ("read", json!(program.read)),
                    ("write", json!(program.write)),
                ]
            }
            McpTransport::Http(http) => {
                let token = match &http.token {
                    KeySource::None => None,
                    KeySource::Env { variable, .. } => Some(("token_env", json!(variable))),
                    KeySource::File(path) => Some(("token_file", json!(path))),
                    KeySource::Credential { name, .. } => Some(("credential", json!(name))),
                };
                let header = |(name, variable): &(String, EnvVariable)| format!("{name}={}", variable.name);
                let headers: Vec<String> = http.headers.iter().map(header).collect();
                let entries = [("url", json!(http.url)), ("headers_env", json!(headers))];
                entries.into_iter().chain(token).collect()
            }
        };
        entries.push(("timeout", duration_value(self.timeout)));
        entries
    }
}

impl McpHttp {
    /// Returns the token, if one is configured. Reads a file: blocks.
    ///
    /// # Errors
    /// A message without the token, which follows the server's name.
    pub fn read_token(&self) -> Result<Option<Secret>, String> {
        let text = match &self.token {
            KeySource::None => return Ok(None),
            KeySource::Env { value: Some(value), .. } => value.expose().to_owned(),
            KeySource::Env { variable, value: None } => {
                return Err(format!("{variable} is not set in the daemon's environment"));
            }
            KeySource::Credential { name, path: None } => {
                return Err(format!("the service manager did not pass the credential {name}"));
            }
            KeySource::File(path) | KeySource::Credential { path: Some(path), .. } => {
                read_file(path).map_err(|e| format!("cannot read the token from {}: {e}", path.display()))?
            }
        };
        let text = text.trim();
        if text.is_empty() || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err("the configured token is empty or contains a space or an invalid character".into());
        }
        Ok(Some(Secret::new(text.to_owned())))
    }
}

fn read_file(path: &Path) -> std::io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    // Reading a pipe could block for ever.
    if !metadata.is_file() || metadata.len() > MAX_TOKEN_FILE_BYTES {
        return Err(std::io::Error::other("not a file with a token"));
    }
    std::fs::read_to_string(path)
}

/// Collects the keys of a server's table.
#[derive(Debug)]
pub(crate) struct McpServerBuilder {
    command: Option<Vec<String>>,
    url: Option<String>,
    env: Vec<String>,
    network: bool,
    read: Vec<String>,
    write: Vec<String>,
    token: Option<KeySource>,
    headers: Vec<(String, String)>,
    timeout: Duration,
    /// A key that only one of the two kinds of servers has.
    program_key: Option<&'static str>,
    http_key: Option<&'static str>,
}

impl Default for McpServerBuilder {
    fn default() -> Self {
        Self {
            command: None,
            url: None,
            env: Vec::new(),
            network: false,
            read: Vec::new(),
            write: Vec::new(),
            token: None,
            headers: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            program_key: None,
            http_key: None,
        }
    }
}

/// The keys of `[mcp.NAME]`.
pub(crate) const MCP_KEYS: &[NamedTableKey<McpServerBuilder>] = &[
    (
        "command",
        "Program and arguments of a server on standard input and output, as a list. It runs in the sandbox.",
        |server, value| {
            let RawConfigValue::List(command) = value else {
                return Err("must be a list, such as [\"program\", \"argument\"]".into());
            };
            if command.first().is_none_or(String::is_empty) || command.iter().any(|word| word.contains('\0')) {
                return Err("must start with a program".into());
            }
            server.command = Some(command.clone());
            Ok(())
        },
    ),
    ("url", "Address of a server on streamable HTTP, instead of `command`.", |server, value| {
        server.url = Some(parse_url(&value.text()?)?);
        Ok(())
    }),
    ("env", "Variables of the daemon's environment that the program gets.", |server, value| {
        server.program_key = Some("env");
        server.env = value.list()?;
        let is_wrong = |name: &&String| !is_variable_name(name);
        server.env.iter().find(is_wrong).map_or(Ok(()), |_| Err("must be a list of names of variables".into()))
    }),
    ("network", "`true`: the program may use the network.", |server, value| {
        server.program_key = Some("network");
        server.network = value.boolean()?;
        Ok(())
    }),
    ("read", "Files and directories that the program may read, as absolute paths without links.", |server, value| {
        server.program_key = Some("read");
        server.read = absolute_paths(value)?;
        Ok(())
    }),
    (
        "write",
        "Files and directories that the program may read and write, as absolute paths without links.",
        |server, value| {
            server.program_key = Some("write");
            server.write = absolute_paths(value)?;
            Ok(())
        },
    ),
    ("token_env", "Environment variable of the daemon that holds the token for `url`.", |server, value| {
        let variable = parse_name(value, |c| c.is_ascii_alphanumeric() || c == '_')?;
        server.set_token("token_env", KeySource::Env { variable, value: None })
    }),
    (
        "token_file",
        "File that holds the token for `url`; a relative path starts at the directory of config.toml.",
        |server, value| server.set_token("token_file", KeySource::File(value.text()?.into())),
    ),
    (
        "credential",
        "Name of a systemd credential (`LoadCredential=`) that holds the token for `url`.",
        |server, value| {
            let name = parse_name(value, |c| c.is_ascii_graphic() && c != '/')?;
            server.set_token("credential", KeySource::Credential { name, path: None })
        },
    ),
    (
        "headers_env",
        "Further headers for `url`, each as `NAME=VARIABLE` with the environment variable of the daemon that holds its value.",
        |server, value| {
            server.http_key = Some("headers_env");
            let parse = |text: String| {
                let (name, variable) = text.split_once('=')?;
                let is_token = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
                let fits = !name.is_empty() && name.chars().all(is_token) && is_variable_name(variable);
                fits.then(|| (name.to_owned(), variable.to_owned()))
            };
            let headers: Option<Vec<_>> = value.list()?.into_iter().map(parse).collect();
            server.headers = headers.ok_or("must be a list of texts such as \"X-Api-Key=VARIABLE\"")?;
            Ok(())
        },
    ),
    ("timeout", "Longest time of a tool call.", |server, value| set_positive_duration(&mut server.timeout, value)),
];

/// Returns the default of a key of `[mcp.NAME]`.
pub(crate) fn mcp_default(key: &str) -> Option<String> {
    match key {
        "network" => Some("false".into()),
        "timeout" => Some(duration_value(DEFAULT_TIMEOUT).to_string()),
        _ => None,
    }
}

impl McpServerBuilder {
    fn set_token(&mut self, key: &'static str, token: KeySource) -> Result<(), String> {
        self.http_key = Some(key);
        if self.token.replace(token).is_some() {
            return Err(
                "conflicts with another setting: set only one of `token_env`, `token_file` and `credential`".into()
            );
        }
        Ok(())
    }

    /// Builds the server; `dir` is the directory of the configuration file.
    ///
    /// # Errors
    /// A message about what is missing, which follows the server's name.
    pub(crate) fn build(
        self,
        name: &str,
        dir: &Path,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<McpServer, String> {
        let transport = match (self.command, self.url) {
            (Some(_), Some(_)) => return Err("has both `command` and `url`: set one of them".into()),
            (None, None) => return Err("has neither `command` nor `url`".into()),
            (Some(command), None) => {
                if let Some(key) = self.http_key {
                    return Err(format!("has `{key}`, which belongs to `url`"));
                }
                let paths = |paths: Vec<String>| paths.into_iter().map(PathBuf::from).collect();
                McpTransport::Program(McpProgram {
                    command,
                    env: self.env.into_iter().map(|name| EnvVariable::look_up(name, env)).collect(),
                    network: self.network,
                    read: paths(self.read),
                    write: paths(self.write),
                })
            }
            (None, Some(url)) => {
                if let Some(key) = self.program_key {
                    return Err(format!("has `{key}`, which belongs to `command`"));
                }
                let token = match self.token.unwrap_or(KeySource::None) {
                    KeySource::Env { variable, .. } => key_from_env(variable, env),
                    KeySource::File(path) => KeySource::File(dir.join(path)),
                    KeySource::Credential { name, .. } => {
                        let path = env("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(&name));
                        KeySource::Credential { name, path }
                    }
                    KeySource::None => KeySource::None,
                };
                let header = |(name, variable)| (name, EnvVariable::look_up(variable, env));
                McpTransport::Http(McpHttp { url, token, headers: self.headers.into_iter().map(header).collect() })
            }
        };
        Ok(McpServer { name: name.to_owned(), transport, timeout: self.timeout })
    }
}

/// Checks that `name` is a valid name of a server.
///
/// # Errors
/// A message that follows the name.
pub fn check_mcp_name(name: &str) -> Result<(), String> {
    // Without underscores, the name that a model sees of a tool (`mcp__SERVER__TOOL`) belongs to one server only.
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(good) {
        return Ok(());
    }
    Err(format!(
        "is not a valid server name: use lower-case letters, digits and `-` (at most {MAX_NAME_CHARS} characters)"
    ))
}

/// Returns the servers that an agent's `mcp` names.
pub(crate) fn servers_of_agent(value: Option<&Value>) -> Vec<String> {
    let names = value.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Validates an agent's `mcp`.
///
/// # Errors
/// A message that follows the agent's name.
pub(crate) fn check_agent_servers(value: &Value) -> Result<(), String> {
    let no_list = "has an `mcp` that is not a list of names";
    for name in value.as_array().ok_or(no_list)? {
        let name = name.as_str().ok_or(no_list)?;
        check_mcp_name(name).map_err(|e| format!("has an `mcp` with {name:?}, which {e}"))?;
    }
    Ok(())
}

/// Validates the address of a server. Keys do not belong into it, because it is shown.
fn parse_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|e| format!("is not a URL: {e}"))?;
    if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
        return Err("must start with http:// or https://".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user or password; put keys into `token_env` or `headers_env`".into());
    }
    if url.fragment().is_some() {
        return Err("must not contain a `#`".into());
    }
    Ok(text.to_owned())
}

fn is_variable_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(good)
}

fn absolute_paths(value: &RawConfigValue) -> Result<Vec<String>, String> {
    let paths = value.list()?;
    let is_wrong = |path: &String| !Path::new(path).is_absolute();
    if paths.iter().any(is_wrong) { Err("must be a list of absolute paths".into()) } else { Ok(paths) }
}
