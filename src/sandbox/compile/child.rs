//! Starts the compiler's process, feeds it, takes what it makes, and ends it when it takes too much.

use std::{
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
};

use super::{
    super::{engine::Plan, inert},
    CompileConfig,
    process::{COMPILE_ARGUMENT, Order, REFUSED},
};

/// The largest artefact, in bytes: a component of the largest size gives less.
const ARTEFACT_BYTES_MAX: u64 = 1 << 30;
/// How much of what it says is read, in bytes.
const STORY_BYTES_MAX: u64 = 4 * 1024;
/// The exit code of a Rust program that panicked.
const PANICKED: i32 = 101;

/// Why there is no artefact.
#[derive(Debug)]
pub(super) enum Failed {
    /// The component cannot be compiled: why.
    Refused(String),
    /// It took more than it may: of what.
    Budget(&'static str),
    /// The process could not do its work.
    Broken(String),
}

/// Compiles a component in a process of its own. Dropping the future ends the process.
pub(super) async fn compile(
    program: &Path,
    config: &CompileConfig,
    plan: Plan,
    component: &[u8],
) -> Result<Vec<u8>, Failed> {
    let order = Order { plan, memory_bytes: config.memory_bytes, cpu_s: config.cpu.0.div_ceil(1_000).max(1) };
    let mut line = serde_json::to_vec(&order).expect("an order is JSON");
    line.push(b'\n');
    let mut group = Group::start(program).map_err(|error| Failed::Broken(format!("it does not start: {error}")))?;
    let work = group.work(&line, component);
    match tokio::time::timeout(config.wall.into(), work).await {
        Ok(done) => done.map_err(|error| Failed::Broken(error.to_string()))?.into_artefact(),
        Err(_) => Err(Failed::Budget("time on the wall")),
    }
}

/// The process and whatever it starts; killed when this is dropped.
struct Group {
    child: Child,
    id: Option<Pid>,
}

/// How the process ended, and what it left.
struct Done {
    status: ExitStatus,
    artefact: Vec<u8>,
    story: Vec<u8>,
}

impl Group {
    fn start(program: &Path) -> std::io::Result<Self> {
        let child = Command::new(program)
            .arg(COMPILE_ARGUMENT)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { child, id })
    }

    async fn work(&mut self, order: &[u8], component: &[u8]) -> std::io::Result<Done> {
        let (stdin, stdout, stderr) = (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let feed = async {
            let mut stdin = stdin?;
            // Where it ended early, its status says why.
            stdin.write_all(order).await.ok()?;
            stdin.write_all(component).await.ok()?;
            stdin.shutdown().await.ok()
        };
        let (_, artefact, story) = tokio::join!(feed, read(stdout, ARTEFACT_BYTES_MAX), read(stderr, STORY_BYTES_MAX));
        let (artefact, story) = (artefact?, story?);
        Ok(Done { status: self.child.wait().await?, artefact, story })
    }
}

/// Reads at most `bytes_max`; what follows is left, and the pipe closed on it.
async fn read(pipe: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(bytes_max).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

impl Drop for Group {
    fn drop(&mut self) {
        // Reaped: its number may be another's by now.
        if self.child.id().is_none() {
            return;
        }
        if let Some(id) = self.id {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Done {
    fn into_artefact(self) -> Result<Vec<u8>, Failed> {
        let story = inert::line(String::from_utf8_lossy(&self.story).trim().to_owned(), STORY_BYTES_MAX as usize);
        let signal = |wanted: Signal| self.status.signal() == Some(wanted.as_raw());
        match self.status.code() {
            Some(0) if self.artefact.len() as u64 == ARTEFACT_BYTES_MAX => Err(Failed::Budget("room for its code")),
            Some(0) => Ok(self.artefact),
            Some(code) if code == i32::from(REFUSED) => Err(Failed::Refused(story)),
            Some(PANICKED) => {
                tracing::error!(story, "the compiler failed at a component");
                Err(Failed::Refused("the compiler fails at it".to_owned()))
            }
            _ if signal(Signal::XCPU) => Err(Failed::Budget("processor time")),
            // An allocation that failed ends a program so; and the system kills what takes the machine's memory.
            _ if signal(Signal::ABORT) || signal(Signal::KILL) || signal(Signal::SEGV) => {
                tracing::debug!(story, "the compiler's process was cut off");
                Err(Failed::Budget("memory"))
            }
            _ => Err(Failed::Broken(format!("it ended with {}: {story}", self.status))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Millis;

    fn ended(raw: i32, artefact: &[u8], story: &str) -> Result<Vec<u8>, Failed> {
        let status = ExitStatus::from_raw(raw);
        Done { status, artefact: artefact.to_vec(), story: story.as_bytes().to_vec() }.into_artefact()
    }

    #[test]
    fn every_end_has_its_meaning() {
        let exit = |code: u8| i32::from(code) << 8;
        assert_eq!(ended(0, b"code", "").unwrap(), b"code");
        assert!(matches!(ended(exit(REFUSED), b"", "bad\n"), Err(Failed::Refused(story)) if story == "bad"));
        assert!(matches!(ended(exit(101), b"", "panicked at"), Err(Failed::Refused(_))));
        assert!(matches!(ended(exit(1), b"", "odd"), Err(Failed::Broken(story)) if story.contains("odd")));
        for (signal, what) in [(Signal::XCPU, "processor time"), (Signal::ABORT, "memory"), (Signal::KILL, "memory")] {
            assert!(matches!(ended(signal.as_raw(), b"part", ""), Err(Failed::Budget(of)) if of == what), "{what}");
        }
        assert!(matches!(ended(Signal::TERM.as_raw(), b"", ""), Err(Failed::Broken(_))));
    }

    #[tokio::test]
    async fn a_process_that_does_not_end_is_killed() {
        let config = CompileConfig { wall: Millis(50), ..CompileConfig::default() };
        let plan = super::super::engine::plan(
            &crate::sandbox::Config::default(),
            super::super::engine::Layout::Wide,
            super::super::engine::Tier::Full,
        );
        // `yes` writes for ever whatever its argument is: it fills any bound, or runs out of time.
        let endless = compile(Path::new("/usr/bin/yes"), &config, plan, b"").await;
        assert!(matches!(endless, Err(Failed::Budget(_))), "C059 {endless:?}");
        let missing = compile(Path::new("/nowhere/at/all"), &config, plan, b"").await;
        assert!(matches!(missing, Err(Failed::Broken(_))), "{missing:?}");
        let other = compile(Path::new("/bin/false"), &config, plan, &vec![0; 1 << 20]).await;
        assert!(matches!(other, Err(Failed::Broken(_))), "{other:?}");
    }
}
