//! A server process with a database of its own.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::Client;

/// A server process. Dropping it kills it.
pub struct Server {
    folder: TempDir,
    /// The folder that it serves as `dev`, where it does.
    dev: Option<PathBuf>,
    variables: Vec<(String, String)>,
    process: Option<Child>,
    url: String,
    grpc: Option<String>,
}

/// Returns the bytes of a guest; it is compiled before the tests are.
pub fn guest(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/dist").join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; run `make guests`", path.display()))
}

impl Server {
    /// Starts a server with short times.
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts a server with further settings: `("WORKER__SESSION_TIMEOUT_MS", "500")`.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let mut variables: Vec<(String, String)> = [
            ("WORKER__HEARTBEAT_INTERVAL_MS", "300"),
            ("WORKER__SESSION_TIMEOUT_MS", "1500"),
            ("ENGINE__CANCEL_GRACE_MS", "2000"),
            ("SERVER__DRAIN_MS", "2000"),
            ("LOG__FILTER", "warn"),
        ]
        .map(|(key, value)| (format!("SANDKEEP_{key}"), value.to_owned()))
        .into();
        variables.extend(settings.iter().map(|(key, value)| (format!("SANDKEEP_{key}"), (*value).to_owned())));
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self { folder, dev: None, variables, process: None, url: String::new(), grpc: None };
        server.restart().await;
        server
    }

    /// Starts `sandkeep dev` for a folder.
    pub async fn dev(dir: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dev = Some(dir.to_owned());
        let mut server = Self { folder, dev, variables: Vec::new(), process: None, url: String::new(), grpc: None };
        server.restart().await;
        server
    }

    /// Changes a setting for the next start.
    pub fn set(&mut self, key: &str, value: &str) {
        let key = format!("SANDKEEP_{key}");
        self.variables.retain(|(other, _)| *other != key);
        self.variables.push((key, value.to_owned()));
    }

    /// Starts the process, after an end of whatever kind, and waits for its ready line.
    pub async fn restart(&mut self) {
        assert!(self.try_restart().await, "it ended before its ready line");
    }

    /// As [`Self::restart`]; false: it ended before it was ready.
    pub async fn try_restart(&mut self) -> bool {
        assert!(self.has_ended(), "it runs already");
        let mut child = self.command().stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).map(|_| line)
        });
        let line = line.await.unwrap().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            child.wait().unwrap();
            return false;
        }
        assert_eq!(words.first(), Some(&"ready"), "the ready line is {line:?}");
        self.url = words[1].strip_prefix("http=").unwrap().to_owned();
        self.grpc = words.get(2).map(|word| word.strip_prefix("grpc=").unwrap().to_owned());
        self.process = Some(child);
        true
    }

    /// The command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandkeep"));
        match &self.dev {
            Some(dir) => command.arg("dev").arg(dir),
            None => command.arg("server").arg("--database").arg(format!("sqlite:{}", self.database().display())),
        };
        command.args(["--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"]);
        command.envs(self.variables.iter().map(|(key, value)| (key, value)));
        command
    }

    /// A connection to its database, beside the server's own.
    pub fn sql(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        connection.busy_timeout(super::PATIENCE).unwrap();
        connection
    }

    /// Its database.
    pub fn database(&self) -> PathBuf {
        self.folder.path().join("sandkeep.db")
    }

    /// Where it serves HTTP.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it serves gRPC.
    pub fn grpc(&self) -> &str {
        self.grpc.as_deref().unwrap()
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        Client::new(&self.url)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&mut self) {
        let mut child = self.process.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// Ends it as an operator does; returns its exit code.
    pub async fn stop(&mut self) -> Option<i32> {
        let mut child = self.process.take().unwrap();
        signal(child.id(), "TERM");
        let status = tokio::task::spawn_blocking(move || child.wait().unwrap());
        tokio::time::timeout(super::PATIENCE, status).await.expect("it stops").unwrap().code()
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(status.success());
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.process {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
