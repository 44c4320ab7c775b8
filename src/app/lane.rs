//! Lanes: each execution belongs to one, by the hash of its key, which decides its commands one after the other.
//!
//! A lane takes commands fairly over tenants, loads the states it misses in one read, decides, and stages; while the
//! writer flushes it goes on with executions that have no change in flight. States are shown to nobody before their commit,
//! and are dropped and folded again where the commit failed.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{mpsc, oneshot};

use super::{
    Error, ErrorCode, Inner,
    inbox::{Inbox, Owned},
    stage::{Reply, Stage},
    states::{Entry, States},
    writer::{Job, Lost},
};
use crate::{
    engine::{self, Answer, Checked, Command, Refusal},
    model::{
        Execution, ExecutionId, Payload, RunKey, TenantId, Timestamp, UnitKey,
        event::Event,
        fold,
        id::UnitRef,
        row::{ExecutionKey, LogLine, TimerKey},
    },
    store::Loaded,
    workflow::Definition,
};

/// A batch of decisions ends after this much time.
const DECIDING_MAX: Duration = Duration::from_millis(20);
/// A batch of decisions ends at this many bytes.
const STAGED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many commands one batch looks at.
const BATCH_MAX: usize = 1_024;
/// How long an internal command waits before another try after the store failed.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Reads a committed state.
type Reader = Box<dyn FnOnce(Option<(&Execution, &Arc<Definition>)>) + Send + Sync>;

/// What is asked of one execution.
pub(super) struct Ask {
    /// The execution.
    pub(super) key: ExecutionKey,
    /// What.
    pub(super) what: What,
    /// Who is told; without one it is the server's own and tried again where the store failed.
    pub(super) reply: Option<Reply>,
    /// Log lines that are rows of the same commit.
    pub(super) logs: Vec<LogLine>,
}

impl Owned for Ask {
    fn owner(&self) -> &TenantId {
        &self.key.tenant
    }
}

/// What is asked.
pub(super) enum What {
    /// A command on one run.
    Command(Box<Command>, Option<u32>, Option<First>),
    /// A look at the committed state.
    Read(Reader),
    /// Put the rows that the state must have.
    Repair,
}

/// What comes with a start.
#[derive(Clone)]
pub(super) struct First {
    /// The document to run.
    pub(super) definition: Arc<Definition>,
    /// Whether the id was just made by the server: then there is nothing to load.
    pub(super) new_id: bool,
}

/// A lane's door.
struct Door {
    asks: mpsc::UnboundedSender<Ask>,
    done: mpsc::UnboundedSender<(Box<Stage>, Result<(), Lost>)>,
    waiting: Arc<AtomicUsize>,
}

/// All lanes.
pub(super) struct Lanes {
    doors: Vec<Door>,
    inbox_max: usize,
}

/// What a lane's task starts with.
pub(super) struct LaneStart {
    index: usize,
    asks: mpsc::UnboundedReceiver<Ask>,
    done: mpsc::UnboundedReceiver<(Box<Stage>, Result<(), Lost>)>,
    waiting: Arc<AtomicUsize>,
}

impl Lanes {
    pub(super) fn new(count: usize, inbox_max: usize) -> (Self, Vec<LaneStart>) {
        let lanes = (0..count.max(1)).map(|index| {
            // Both are bounded from outside: `waiting` for what may be refused, capacity and timers for the rest.
            let (asks, asks_out) = mpsc::unbounded_channel();
            let (done, done_out) = mpsc::unbounded_channel();
            let waiting = Arc::new(AtomicUsize::new(0));
            let door = Door { asks, done, waiting: waiting.clone() };
            (door, LaneStart { index, asks: asks_out, done: done_out, waiting })
        });
        let (doors, starts) = lanes.unzip();
        (Self { doors, inbox_max }, starts)
    }

    fn door(&self, key: &ExecutionKey) -> &Door {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let count = u64::try_from(self.doors.len()).unwrap_or(1);
        &self.doors[usize::try_from(hasher.finish() % count).unwrap_or(0)]
    }

    /// Sends an ask. One that the server itself makes, or that has reserved room, is never refused.
    pub(super) fn send(&self, ask: Ask) {
        let door = self.door(&ask.key);
        door.waiting.fetch_add(1, Ordering::Relaxed);
        // A lane that has ended drops the ask, and so its reply.
        let _ = door.asks.send(ask);
    }

    /// Refuses what is not urgent while the inbox is full.
    pub(super) fn has_room(&self, key: &ExecutionKey) -> Result<(), Error> {
        if self.door(key).waiting.load(Ordering::Relaxed) < self.inbox_max {
            return Ok(());
        }
        Err(Error::new(ErrorCode::ResourceExhausted, "the server has as many requests waiting as it may")
            .retry_after(1_000))
    }

    /// How many asks wait, over all lanes.
    pub(super) fn waiting(&self) -> usize {
        self.doors.iter().map(|door| door.waiting.load(Ordering::Relaxed)).sum()
    }

    /// Tells a lane what became of a stage.
    pub(super) fn committed(&self, lane: usize, stage: Box<Stage>, outcome: Result<(), Lost>) {
        let _ = self.doors[lane].done.send((stage, outcome));
    }
}

impl Inner {
    /// Asks a command of an execution and waits for the commit.
    pub(super) async fn ask(
        &self,
        key: ExecutionKey,
        run: Option<u32>,
        command: Command,
        first: Option<First>,
        logs: Vec<LogLine>,
    ) -> Result<Answer, Error> {
        let (reply, answer) = oneshot::channel();
        self.lanes.send(Ask { key, what: What::Command(Box::new(command), run, first), reply: Some(reply), logs });
        answer.await.unwrap_or_else(|_| Err(stopping()))
    }

    /// Asks a command of the server's own, which is tried again by itself where the store failed.
    pub(super) fn tell(&self, run: &RunKey, command: Command) {
        let what = What::Command(Box::new(command), Some(run.run), None);
        self.lanes.send(Ask { key: run.execution_key(), what, reply: None, logs: Vec::new() });
    }

    /// Has a result checked beside the lanes, and tells its run the verdict.
    fn check_result(self: &Arc<Self>, run: RunKey, definition: Arc<Definition>, at: Timestamp, result: Payload) {
        let app = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let verdict = engine::check_result(&definition, &result);
            app.tell(&run, Command::Checked(Checked { at, result, verdict }));
        });
    }

    /// A unit must stop: taken back where it is queued, else its holder is told.
    pub(super) fn stop(&self, run: &RunKey, unit: UnitKey, attempt: u32) {
        let unit_ref = UnitRef { run: run.clone(), unit };
        if self.dispatch.stop(&unit_ref, attempt) {
            self.tell(run, Command::Stopped { unit: unit_ref.unit, attempt });
        }
    }

    /// Reads the committed state of an execution; none: there is no such execution.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        tenant: &TenantId,
        execution: &ExecutionId,
        look: impl FnOnce(&Execution, &Arc<Definition>) -> T + Send + Sync + 'static,
    ) -> Result<Option<T>, Error> {
        let (sender, answer) = oneshot::channel();
        let reader: Reader = Box::new(move |state| {
            let _ = sender.send(state.map(|(execution, definition)| look(execution, definition)));
        });
        let key = ExecutionKey { tenant: tenant.clone(), execution: execution.clone() };
        self.lanes.send(Ask { key, what: What::Read(reader), reply: None, logs: Vec::new() });
        answer.await.map_err(|_| {
            if self.is_stopping() { stopping() } else { Error::internal("the state of the execution cannot be read") }
        })
    }
}

fn stopping() -> Error {
    Error::new(ErrorCode::Unavailable, "the server is stopping").retry_after(1_000)
}

/// One lane at work.
struct Lane {
    app: Arc<Inner>,
    index: usize,
    inbox: Inbox<Ask>,
    states: States,
    waiting: Arc<AtomicUsize>,
}

/// Runs a lane until every sender is gone.
pub(super) async fn run(app: Arc<Inner>, mut start: LaneStart) {
    let states = States::new(app.settings.cache_bytes / app.lanes.doors.len());
    let mut lane = Lane { app, index: start.index, inbox: Inbox::default(), states, waiting: start.waiting };
    loop {
        if lane.inbox.is_empty() {
            tokio::select! {
                Some(done) = start.done.recv() => lane.carry_out(done.0, done.1),
                ask = start.asks.recv() => match ask {
                    Some(ask) => lane.inbox.push(ask),
                    None => return,
                },
            }
        }
        while let Ok((stage, outcome)) = start.done.try_recv() {
            lane.carry_out(stage, outcome);
        }
        while let Ok(ask) = start.asks.try_recv() {
            lane.inbox.push(ask);
        }
        lane.app.pump();
        lane.batch().await;
        // Deciding is bounded but others share the thread.
        tokio::task::yield_now().await;
    }
}

impl Lane {
    /// Takes commands fairly, decides them, and sends what they leave to the writer.
    async fn batch(&mut self) {
        let mut asks = VecDeque::new();
        while asks.len() < BATCH_MAX {
            let Some(ask) = self.inbox.pop() else { break };
            match self.states.get_mut(&ask.key) {
                Some(entry) if entry.in_flight => entry.deferred.push_back(ask),
                _ => asks.push_back(ask),
            }
        }
        let missing = self.missing(&asks);
        self.load(missing).await;
        let began = Instant::now();
        let mut stages: Vec<Box<Stage>> = Vec::new();
        let mut at: HashMap<ExecutionKey, usize> = HashMap::new();
        let mut bytes = 0;
        let mut left_over = Vec::new();
        while let Some(ask) = asks.pop_front() {
            let now_in = at.get(&ask.key).copied();
            let stage = now_in.map(|index| &mut stages[index]);
            let turn_full =
                stage.as_ref().is_some_and(|stage| stage.event_count() >= self.app.settings.limits.turn_events);
            if turn_full || bytes >= STAGED_BYTES_MAX || began.elapsed() >= DECIDING_MAX {
                left_over.push(ask);
                continue;
            }
            let before = stage.as_ref().map_or(0, |stage| stage.bytes());
            let key = ask.key.clone();
            let new = self.handle(ask, stage).await;
            if let Some(new) = new {
                bytes += new.bytes();
                at.insert(key, stages.len());
                stages.push(new);
            } else if let Some(index) = now_in {
                bytes += stages[index].bytes() - before;
            }
        }
        // From the last to the first, so that they stand in the order in which they came.
        for ask in left_over.into_iter().rev() {
            self.inbox.push_front(ask);
        }
        for stage in stages {
            self.send_off(stage);
        }
        self.states.shrink();
    }

    /// The states that `asks` need and the cache misses.
    fn missing(&self, asks: &VecDeque<Ask>) -> Vec<ExecutionKey> {
        let keys = asks.iter().filter(|ask| !ask.what.has_new_id()).map(|ask| &ask.key);
        let keys = keys.filter(|key| !self.states.contains(key));
        let mut seen = HashSet::new();
        keys.filter(|key| seen.insert(*key)).cloned().collect()
    }

    /// Loads states in one read.
    async fn load(&mut self, missing: Vec<ExecutionKey>) {
        if missing.is_empty() {
            return;
        }
        match self.app.store.load(missing.clone()).await {
            Ok(found) => {
                for (key, loaded) in missing.into_iter().zip(found) {
                    let state = match loaded {
                        Ok(Some(loaded)) => self.fold(loaded).await.map(Some),
                        Ok(None) => Ok(None),
                        Err(error) => Err(LoadError::Unreadable(error.to_string())),
                    };
                    self.states.loaded(key, state);
                }
            }
            Err(error) => {
                let error = Arc::new(error);
                for key in missing {
                    self.states.loaded(key, Err(LoadError::Store(error.clone())));
                }
            }
        }
    }

    /// Folds a history.
    async fn fold(&self, loaded: Loaded) -> Result<Entry, LoadError> {
        let row = &loaded.projection;
        let definition = self.app.definition(&row.run.tenant, &row.workflow, &row.version).await;
        let definition = definition.map_err(|error| LoadError::Unreadable(error.to_string()))?;
        let mut execution = Execution::new(row.run.clone(), &definition.plan);
        for stored in &loaded.events {
            let event = Event::read(stored).map_err(|error| LoadError::Unreadable(error.to_string()))?;
            fold::apply(&mut execution, &definition.plan, &event, stored.at);
        }
        Ok(Entry::new(execution, definition))
    }

    /// Handles one ask; returns a new stage where the execution had none.
    async fn handle(&mut self, ask: Ask, stage: Option<&mut Box<Stage>>) -> Option<Box<Stage>> {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let Ask { key, what, reply, logs } = ask;
        if let Some(error) = self.states.error(&key) {
            self.fail(Ask { key, what, reply, logs }, &error);
            return None;
        }
        match what {
            What::Read(reader) => {
                // A stage of this very batch is not committed: the read waits behind it.
                if stage.is_some() {
                    self.defer(Ask { key, what: What::Read(reader), reply, logs });
                } else {
                    reader(self.states.get_mut(&key).map(|entry| (&entry.execution, &entry.definition)));
                }
                None
            }
            What::Repair => self.repair(key, stage),
            What::Command(command, run, first) => {
                let ask = Ask { key, what: What::Command(command, run, first), reply, logs };
                self.command(ask, stage).await
            }
        }
    }

    fn defer(&mut self, ask: Ask) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        match self.states.get_mut(&ask.key) {
            Some(entry) => entry.deferred.push_back(ask),
            None => self.inbox.push(ask),
        }
    }

    fn repair(&mut self, key: ExecutionKey, stage: Option<&mut Box<Stage>>) -> Option<Box<Stage>> {
        let entry = self.states.get_mut(&key)?;
        let (ready, timers) = engine::rows_of(&entry.execution, &entry.definition);
        let goes_on = entry.execution.waiting() == crate::model::row::Waiting::Turn;
        let seq = entry.execution.last_seq;
        let stops = engine::stopping(&entry.execution, &entry.definition);
        let mut new = None;
        let stage = match stage {
            Some(stage) => stage,
            None => new.insert(Box::new(Stage::new(self.index, key, seq))),
        };
        stage.put_rows(ready, timers);
        stage.stops.extend(stops);
        stage.goes_on |= goes_on;
        new
    }

    async fn command(&mut self, ask: Ask, stage: Option<&mut Box<Stage>>) -> Option<Box<Stage>> {
        let Ask { key, what: What::Command(command, run, first), reply, logs } = ask else { return None };
        // Decided again, it is looked for: who was first has the id.
        let looked_for = first.clone().map(|first| First { new_id: false, ..first });
        let again = What::Command(command.clone(), run, looked_for);
        if let Some(answer) = self.answered_before(&key, &command, stage.as_deref().map(|stage| &**stage)).await {
            answer_now(reply, answer);
            return None;
        }
        if !self.states.contains(&key)
            && let Some(First { definition, .. }) = first
        {
            let run = RunKey { tenant: key.tenant.clone(), execution: key.execution.clone(), run: 1 };
            self.states.insert(key.clone(), Entry::new(Execution::new(run, &definition.plan), definition));
        }
        let facts = self.app.tenants.facts(&key.tenant);
        let now = self.app.clock.now();
        let Some(entry) = self.states.get_mut(&key) else {
            answer_now(reply, Err(Refusal::NotFound.into()));
            return None;
        };
        if run.is_some_and(|run| run != entry.execution.key.run) {
            answer_now(reply, Err(Refusal::Over.into()));
            return None;
        }
        let seq_before = entry.execution.last_seq;
        let decided = engine::decide(&mut entry.execution, &entry.definition, *command, &facts, now);
        let decision = match decided {
            Ok(decision) => decision,
            Err(refusal) => {
                if let (Refusal::NotDue(due), Some(timer)) = (&refusal, timer_of(&again)) {
                    self.app.timers.arm(&entry.execution.key, timer, *due);
                }
                if entry.execution.created.is_none() {
                    self.states.remove(&key);
                }
                answer_now(reply, Err(refusal.into()));
                return None;
            }
        };
        if decision.events.is_empty() && decision.effects.is_empty() && logs.is_empty() && stage.is_none() {
            answer_now(reply, Ok(decision.answer));
            return None;
        }
        let answer = decision.answer;
        let mut new = None;
        let stage = match stage {
            Some(stage) => stage,
            None => new.insert(Box::new(Stage::new(self.index, key.clone(), seq_before))),
        };
        stage.add(decision);
        stage.add_logs(logs.clone());
        stage.asked.push((Ask { key, what: again, reply, logs }, answer));
        new
    }

    /// Looks whether a command with an `Idempotency-Key` was answered before.
    async fn answered_before(
        &self,
        key: &ExecutionKey,
        command: &Command,
        stage: Option<&Stage>,
    ) -> Option<Result<Answer, Error>> {
        let Command::Signal(signal) = command else { return None };
        let wanted = signal.key.as_ref()?;
        let found = match stage.and_then(|stage| stage.kept(&wanted.scope)) {
            Some(row) => Some(row.clone()),
            None => {
                let scopes = vec![(key.tenant.clone(), wanted.scope.clone())];
                match self.app.store.find_keys(scopes, self.app.clock.now()).await {
                    Ok(found) => found.into_iter().next().flatten(),
                    Err(error) => return Some(Err(error.into())),
                }
            }
        }?;
        Some(if found.request_hash == wanted.request_hash {
            Ok(Answer::Signalled { seq: found.seq })
        } else {
            Err(Error::new(ErrorCode::IdempotencyConflict, "the `Idempotency-Key` was used with another request"))
        })
    }

    /// Sends a stage to the writer; until its commit the execution is in flight.
    fn send_off(&mut self, mut stage: Box<Stage>) {
        let Some(entry) = self.states.get_mut(&stage.key) else { return };
        if stage.is_empty() {
            // Nothing to write, but what follows may have to go on.
            for ask in self.hand_out(&mut stage).into_iter().rev() {
                self.inbox.push_front(ask);
            }
            return;
        }
        entry.in_flight = true;
        let rows = stage.row_count();
        let mut change = stage.take_change(&entry.execution);
        (change.pins_put, change.pins_drop) = entry.changed_pins();
        self.app.writer.send(Job::Stage(stage, Box::new(change), rows));
    }

    /// Hands out the effects of a commit, or drops the state where there was none.
    fn carry_out(&mut self, mut stage: Box<Stage>, outcome: Result<(), Lost>) {
        let deferred = match outcome {
            Ok(()) => self.hand_out(&mut stage),
            Err(lost) => self.undo(stage, &lost),
        };
        for ask in deferred.into_iter().rev() {
            self.inbox.push_front(ask);
        }
    }

    fn hand_out(&mut self, stage: &mut Stage) -> VecDeque<Ask> {
        let Some(entry) = self.states.get_mut(&stage.key) else { return VecDeque::new() };
        entry.in_flight = false;
        let deferred = std::mem::take(&mut entry.deferred);
        let run = entry.execution.key.clone();
        let definition = Arc::clone(&entry.definition);
        let seq = entry.execution.last_seq;
        let terminal = entry.execution.status.is_terminal();
        if terminal {
            self.app.timers.forget(&run, &stage.timers);
        } else {
            for (timer, due) in &stage.timers {
                match due {
                    Some(due) => self.app.timers.arm(&run, timer, *due),
                    None => self.app.timers.disarm(&run, timer),
                }
            }
        }
        // Before the rows, so that what must stop is not offered to anyone.
        for (unit, attempt) in stage.stops.drain(..) {
            self.app.stop(&run, unit, attempt);
        }
        for (unit, put) in stage.ready.drain() {
            match put {
                Some((row, input)) if !terminal => {
                    if row.timeouts.queue_ms.is_some() {
                        self.app.queue_wake.notify_one();
                    }
                    self.app.dispatch.offer(*row, input);
                }
                _ => self.app.dispatch.withdraw(&UnitRef { run: run.clone(), unit }),
            }
        }
        if stage.goes_on {
            self.app.tell(&run, Command::Continue);
        }
        if let Some((at, result)) = stage.to_check.take().filter(|_| !terminal) {
            self.app.check_result(run, definition, at, result);
        }
        for (ask, answer) in stage.asked.drain(..) {
            answer_now(ask.reply, Ok(answer));
        }
        self.app.waiters.changed(&stage.key, seq, terminal);
        self.states.resize(&stage.key);
        deferred
    }

    /// Drops a state whose commit failed; what was asked is decided again after a lost race.
    fn undo(&mut self, stage: Box<Stage>, lost: &Lost) -> VecDeque<Ask> {
        let deferred = self.states.remove(&stage.key).map(|entry| entry.deferred).unwrap_or_default();
        let mut again: VecDeque<Ask> = VecDeque::new();
        match lost {
            Lost::Race => {
                self.app.counters.race();
                self.waiting.fetch_add(stage.asked.len(), Ordering::Relaxed);
                again.extend(stage.asked.into_iter().map(|(ask, _)| ask));
            }
            Lost::Store(error) => {
                for (ask, _) in stage.asked {
                    self.fail(ask, &LoadError::Store(error.clone()));
                }
            }
        }
        again.extend(deferred);
        again
    }

    fn fail(&self, ask: Ask, error: &LoadError) {
        let answer = match error {
            LoadError::Store(error) => Err(shared(error)),
            LoadError::Unreadable(what) => {
                tracing::error!(tenant = %ask.key.tenant, execution = %ask.key.execution, what, "an execution cannot be read");
                Err(Error::internal(what.clone()))
            }
        };
        match (ask.reply, error) {
            (Some(reply), _) => answer_now(Some(reply), answer),
            (None, LoadError::Store(_)) => {
                self.try_later(Ask { key: ask.key, what: ask.what, reply: None, logs: ask.logs })
            }
            (None, LoadError::Unreadable(_)) => {}
        }
    }

    /// The server's own commands are tried again; what a caller asked is the caller's to repeat.
    fn try_later(&self, ask: Ask) {
        let own = match &ask.what {
            What::Command(command, ..) => {
                matches!(
                    **command,
                    Command::Continue
                        | Command::Checked(_)
                        | Command::TimerDue(_)
                        | Command::Stopped { .. }
                        | Command::Lost(_)
                )
            }
            What::Read(_) | What::Repair => false,
        };
        if !own || self.app.is_stopping() {
            return;
        }
        let app = self.app.clone();
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN_AFTER).await;
            app.lanes.send(ask);
        });
    }
}

impl What {
    fn has_new_id(&self) -> bool {
        matches!(self, What::Command(_, _, Some(First { new_id: true, .. })))
    }
}

fn timer_of(what: &What) -> Option<&TimerKey> {
    match what {
        What::Command(command, ..) => match &**command {
            Command::TimerDue(timer) => Some(timer),
            _ => None,
        },
        What::Read(_) | What::Repair => None,
    }
}

fn answer_now(reply: Option<Reply>, answer: Result<Answer, Error>) {
    if let Some(reply) = reply {
        let _ = reply.send(answer);
    }
}

fn shared(error: &Arc<crate::store::Error>) -> Error {
    use crate::store::Error as Store;
    match &**error {
        Store::Full { limit } => Store::Full { limit: limit.clone() }.into(),
        Store::Closed => Store::Closed.into(),
        other => Store::Database(other.to_string().into()).into(),
    }
}

/// Why a state could not be loaded.
#[derive(Clone)]
pub(super) enum LoadError {
    /// The store failed.
    Store(Arc<crate::store::Error>),
    /// Its history or its document cannot be read.
    Unreadable(String),
}
