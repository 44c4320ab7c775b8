//! A server program that is started for a load, and what the kernel says of a process.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
};

use super::Failure;

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Clock ticks in a second, as the kernel counts processor time for programs on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The longest line that says a server is ready, in bytes.
const READY_BYTES_MAX: usize = 1024;

/// A process by its id.
#[derive(Clone, Copy, Debug)]
pub struct Process(pub u32);

impl Process {
    /// Returns the most memory it has had, in MiB.
    pub fn peak_mib(self) -> Option<f64> {
        self.status_mib("VmHWM:")
    }

    /// Returns the memory it has, in MiB.
    pub fn resident_mib(self) -> Option<f64> {
        self.status_mib("VmRSS:")
    }

    /// Returns the processor time it has used, by itself and by the kernel for it.
    pub fn cpu_seconds(self) -> Option<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        // The name, in brackets, may hold anything; the fields after it are counted from the third.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
    }

    fn status_mib(self, field: &str) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).ok()?;
        let rest = status.lines().find_map(|line| line.strip_prefix(field))?;
        let kib: f64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib / 1024.0)
    }
}

/// The server under load.
pub struct Server {
    url: String,
    process: Option<Process>,
    own: Option<Own>,
}

/// A server of ours.
struct Own {
    command: (PathBuf, Vec<String>),
    child: Child,
}

impl Server {
    /// Takes a server that runs.
    pub fn of_others(url: &str, process: Option<Process>) -> Self {
        Self { url: url.to_owned(), process, own: None }
    }

    /// Starts a program with a database in `dir` and waits until it is ready.
    pub async fn start(binary: &Path, arguments: &[String], dir: &Path) -> Result<Self, Failure> {
        let database = format!("sqlite:{}", dir.join("load.db").display());
        let mut all: Vec<String> =
            ["server", "--listen", "127.0.0.1:0", "--log-filter", "warn", "--database"].map(String::from).into();
        all.push(database);
        all.extend(arguments.iter().cloned());
        Self::run((binary.to_owned(), all)).await
    }

    async fn run(command: (PathBuf, Vec<String>)) -> Result<Self, Failure> {
        let (binary, arguments) = &command;
        let mut child = Command::new(binary)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start `{}`: {error}", binary.display()))?;
        let line = tokio::time::timeout(PATIENCE, ready_line(&mut child)).await??;
        let url = line.split_whitespace().find_map(|word| word.strip_prefix("http="));
        let url = url.ok_or_else(|| format!("the server said `{line}`"))?.to_owned();
        let process = child.id().map(Process);
        Ok(Self { url, process, own: Some(Own { command, child }) })
    }

    /// Returns where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns its process, where that is known.
    pub fn process(&self) -> Option<Process> {
        self.process
    }

    /// Ends and starts it again, where it is ours, and returns how long it took to be ready.
    pub async fn restart(&mut self) -> Result<Option<Duration>, Failure> {
        let Some(command) = self.own.as_ref().map(|own| own.command.clone()) else { return Ok(None) };
        self.stop().await;
        let begin = Instant::now();
        *self = Self::run(command).await?;
        Ok(Some(begin.elapsed()))
    }

    /// Ends it, where it is ours.
    pub async fn stop(&mut self) {
        let Some(mut own) = self.own.take() else { return };
        if let Some(pid) = own.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // One that has ended by itself needs no telling.
            let _ = kill_process(pid, Signal::TERM);
        }
        if tokio::time::timeout(PATIENCE, own.child.wait()).await.is_err() {
            let _ = own.child.kill().await;
        }
    }
}

/// Reads the first line that a server prints.
async fn ready_line(child: &mut Child) -> Result<String, Failure> {
    let mut out = child.stdout.take().ok_or("the server's output is not there")?;
    let mut line = Vec::new();
    loop {
        match out.read_u8().await {
            Ok(b'\n') => break,
            Ok(byte) if line.len() < READY_BYTES_MAX => line.push(byte),
            _ => return Err("the server ended before it was ready".into()),
        }
    }
    Ok(String::from_utf8(line)?)
}
