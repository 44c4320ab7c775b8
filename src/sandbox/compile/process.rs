//! What the compiler's process does: takes its limits on, reads a plan and a component, writes an artefact, ends.
//!
//! It opens nothing, has no environment and no descriptor but its three pipes, and dies with the server. Whatever a
//! component does to the compiler, it does it here.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    process::ExitCode,
};

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde::{Deserialize, Serialize};
use wasmtime::Engine;

use super::super::engine::{self, Plan};

/// The argument that makes a process of this program a compiler.
pub const COMPILE_ARGUMENT: &str = "__compile";

/// The exit code of a process whose component cannot be compiled; why stands on standard error.
pub(super) const REFUSED: u8 = 3;

/// The longest first line, in bytes.
const ORDER_BYTES_MAX: u64 = 4 * 1024;

/// How much lower its priority is than that of the threads that serve the API.
const NICE: i32 = 10;

/// The first line of what it reads: what to do, within which limits. The component follows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) plan: Plan,
    /// Address space, in bytes.
    pub(super) memory_bytes: u64,
    /// Processor time, in seconds.
    pub(super) cpu_s: u64,
}

/// The whole life of the process.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Refused(problem)) => {
            let _ = writeln!(io::stderr(), "{problem}");
            ExitCode::from(REFUSED)
        }
        Err(Ended::Broken(problem)) => {
            let _ = writeln!(io::stderr(), "{problem}");
            ExitCode::FAILURE
        }
    }
}

enum Ended {
    /// The component is at fault.
    Refused(String),
    /// Something else is.
    Broken(String),
}

fn run() -> Result<(), Ended> {
    let broken = |error: &dyn std::fmt::Display| Ended::Broken(error.to_string());
    let mut input = BufReader::new(io::stdin().lock());
    let mut line = Vec::new();
    (&mut input).take(ORDER_BYTES_MAX).read_until(b'\n', &mut line).map_err(|error| broken(&error))?;
    let order: Order = serde_json::from_slice(&line).map_err(|error| broken(&error))?;
    // Before the first byte of the component is here.
    confine(&order).map_err(|error| broken(&error))?;
    let mut component = Vec::new();
    input.read_to_end(&mut component).map_err(|error| broken(&error))?;
    let engine = engine::compiler(order.plan).map_err(|error| Ended::Broken(format!("{error:#}")))?;
    let artefact = compile(&engine, &component).map_err(Ended::Refused)?;
    io::stdout().lock().write_all(&artefact).map_err(|error| broken(&error))
}

fn confine(order: &Order) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let exactly = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::As, exactly(order.memory_bytes))?;
    // The soft limit ends it by a signal of its own, which tells it from other ends.
    setrlimit(Resource::Cpu, Rlimit { current: Some(order.cpu_s), maximum: Some(order.cpu_s + 2) })?;
    setrlimit(Resource::Core, exactly(0))?;
    setrlimit(Resource::Fsize, exactly(0))?;
    // Best effort: only its neighbours would notice.
    let _ = rustix::process::nice(NICE);
    Ok(())
}

/// Compiles a component; the error says why it cannot be.
pub(super) fn compile(engine: &Engine, component: &[u8]) -> Result<Vec<u8>, String> {
    engine.precompile_component(component).map_err(|error| format!("{error:#}"))
}
