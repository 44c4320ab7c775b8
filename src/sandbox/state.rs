//! What a store holds for its guest, and the look that a running guest takes up at each tick.

use std::sync::Arc;

use wasmtime::{StoreContextMut, UpdateDeadline, component::ResourceTable};

use crate::model::{Payload, TenantId, row::LogLevel};

use super::{
    Grant, Limits, ModuleLimits,
    attempt::{Info, Progress},
    config::Clock,
    control::{Control, Stop},
    egress::{Counts, Egress, Hooks, Outgoing},
    host::Wasi,
    journal::Journal,
    limiter::Limiter,
    tape::Tape,
    turns::Turns,
};

/// What all calls share.
pub(super) struct Env {
    pub(super) turns: Arc<Turns>,
    pub(super) clock: Clock,
    pub(super) counts: ModuleLimits,
    pub(super) egress: Arc<Egress>,
    /// Whether instructions are counted.
    pub(super) count_instructions: bool,
    #[cfg(debug_assertions)]
    pub(super) abort_on_log: Option<String>,
}

/// The data of one store.
pub(super) struct State {
    pub(super) env: Arc<Env>,
    pub(super) control: Arc<Control>,
    /// The attempt; none while a module describes itself.
    pub(super) info: Option<Info>,
    pub(super) limits: Limits,
    pub(super) limiter: Limiter,
    /// What is said of the attempt; outside one there is no log.
    pub(super) journal: Option<Journal>,
    pub(super) progress: Progress,
    /// What this attempt reported last.
    pub(super) reported: Option<Payload>,
    grant: Arc<Grant>,
    /// Where the host's answers come from.
    pub(super) tape: Tape,
    /// What the host keeps for the guest, by handle.
    table: ResourceTable,
    /// Made when the guest first asks for anything of WASI.
    wasi: Option<Box<Wasi>>,
    cpu_ns_max: u64,
}

impl State {
    /// The state of a store in which a module describes itself.
    pub(super) fn describing(env: Arc<Env>, control: Arc<Control>, limits: &Limits) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.host_handles);
        Self {
            control,
            info: None,
            limits: *limits,
            limiter: Limiter::new(limits, env.counts),
            journal: None,
            progress: Progress::default(),
            reported: None,
            grant: Arc::default(),
            tape: Tape::Live,
            table,
            wasi: None,
            cpu_ns_max: limits.cpu.0.saturating_mul(1_000_000),
            env,
        }
    }

    /// The state of a store in which an attempt is served.
    pub(super) fn serving(
        env: Arc<Env>,
        control: Arc<Control>,
        limits: &Limits,
        info: Info,
        progress: Progress,
        (grant, tape): (Arc<Grant>, Tape),
    ) -> Self {
        let journal = Some(Journal::new(Arc::clone(&env.clock), &info, limits.log_bytes));
        Self { info: Some(info), journal, progress, grant, tape, ..Self::describing(env, control, limits) }
    }

    /// Keeps a line that the guest wrote; outside an attempt there is no log.
    pub(super) fn log(&self, level: LogLevel, message: String, fields: Option<String>) {
        if let Some(journal) = &self.journal {
            journal.line(level, message, fields);
        }
    }

    /// Returns what WASI works on.
    pub(super) fn wasi(&mut self) -> (&mut Wasi, &mut ResourceTable) {
        let Self { env, info, grant, tape, journal, limits, wasi, table, .. } = self;
        let make = || {
            let tenant = info.as_ref().map_or_else(TenantId::default_tenant, |info| info.unit.run.tenant.clone());
            let outgoing = Outgoing::new(tenant, *limits, Arc::clone(grant), journal.clone());
            let hooks = Hooks { egress: Arc::clone(&env.egress), outgoing, tape: tape.clone() };
            Box::new(Wasi::new(grant, journal.as_ref(), hooks, limits.random_bytes))
        };
        let wasi = wasi.get_or_insert_with(make);
        (wasi, table)
    }

    /// Ends what the attempt sends, and returns what it sent.
    pub(super) fn end_sending(&self) -> Counts {
        self.wasi.as_ref().map(|wasi| wasi.end()).unwrap_or_default()
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
