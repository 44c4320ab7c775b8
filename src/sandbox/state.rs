//! What a store holds for its guest, and the look that a running guest takes up at each tick.

use std::sync::Arc;

use wasmtime::{StoreContextMut, UpdateDeadline};

use crate::model::{Payload, row::LogLevel, row::LogLine};

use super::{
    Limits, ModuleLimits,
    attempt::{Info, Progress},
    config::Clock,
    control::{Control, Stop},
    limiter::Limiter,
    logs::{self, Logs},
    turns::Turns,
};

/// What all calls share.
pub(super) struct Env {
    pub(super) turns: Arc<Turns>,
    pub(super) clock: Clock,
    pub(super) counts: ModuleLimits,
    #[cfg(debug_assertions)]
    pub(super) abort_on_log: Option<String>,
}

/// The data of one store.
pub(super) struct State {
    pub(super) env: Arc<Env>,
    pub(super) control: Arc<Control>,
    /// The attempt; none while a module describes itself.
    pub(super) info: Option<Info>,
    pub(super) limiter: Limiter,
    pub(super) logs: Logs,
    pub(super) progress: Progress,
    /// What this attempt reported last.
    pub(super) reported: Option<Payload>,
    cpu_ns_max: u64,
}

impl State {
    pub(super) fn new(
        env: Arc<Env>,
        control: Arc<Control>,
        limits: &Limits,
        info: Option<Info>,
        progress: Progress,
    ) -> Self {
        Self {
            control,
            info,
            limiter: Limiter::new(limits, env.counts),
            logs: Logs::new(limits.log_bytes),
            progress,
            reported: None,
            cpu_ns_max: limits.cpu.0.saturating_mul(1_000_000),
            env,
        }
    }

    /// Keeps a line that the guest wrote; outside an attempt there is no log.
    pub(super) fn log(&mut self, level: LogLevel, message: String, fields: Option<String>) {
        let Some(info) = &self.info else { return };
        self.logs.push(LogLine {
            at_ms: (self.env.clock)(),
            unit: info.unit.unit.clone(),
            attempt: info.attempt,
            level,
            message: logs::message_of(message),
            fields: fields.map(logs::fields_of),
        });
    }
}

/// Called on the guest's thread when the epoch has moved: stops a guest that must stop, else lets others have a turn.
pub(super) fn look_up(store: StoreContextMut<'_, State>) -> wasmtime::Result<UpdateDeadline> {
    let state = store.data();
    if state.control.meter.spent_in_turn_ns() > state.cpu_ns_max {
        state.control.stop(Stop::CpuSpent);
    }
    Ok(if state.control.stopped().is_some() {
        UpdateDeadline::Interrupt
    } else if state.env.turns.others_wait() {
        UpdateDeadline::Yield(1)
    } else {
        UpdateDeadline::Continue(1)
    })
}
