//! A store in memory, for tests: simple and obvious, so that others are compared with it; and one whose commits can be
//! made to fail or to wait.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use async_trait::async_trait;
use tokio::sync::OwnedMutexGuard;

use super::{
    Batch, Change, Committed, Conflict, Error, ExecutionQuery, HistoryQuery, InHand, Loaded, MOVES_MAX, Noted,
    RECORDINGS_MAX, ReadyClass, ReadyItem, ReadyOrder, ReadyPage, Stats, Store, SweepRow, System, batch::check_dense,
};
use crate::model::{
    Alias, Digest, Event, ExecutionId, ModuleName, Payload, Status, StoredEvent, TenantId, Timestamp, WorkflowName,
    WorkflowVersion,
    id::{RunKey, UnitRef},
    row::{
        AliasRow, ExecutionKey, KeyRow, LogLine, ModuleRow, Note, PolicyRow, Projection, ReadyRow, RecordingRow,
        SettingsRow, TenantRow, TimerKey, TimerRow, UploadRow, Waiting, WorkflowRow,
    },
};

/// A store in memory. Clones are the same store.
#[derive(Clone)]
pub(crate) struct Memory {
    tables: Arc<Mutex<Tables>>,
    /// Held by [`Memory::stall`] and by each commit.
    gate: Arc<tokio::sync::Mutex<()>>,
    control: Arc<Mutex<Control>>,
    found_in_hand: Vec<InHand>,
    unclean: bool,
}

/// What makes commits fail.
#[derive(Default)]
struct Control {
    /// How many commits were asked for.
    asked: u64,
    faults: Vec<(Range<u64>, Fault)>,
    closed: bool,
    stats: Stats,
}

/// How a commit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing is written: the disk is full.
    Refused,
    /// Everything is written, and the answer is lost.
    AnswerLost,
}

#[derive(Default)]
struct Tables {
    executions: BTreeMap<ExecutionKey, Projection>,
    /// Executions whose row cannot be read.
    spoiled: BTreeSet<ExecutionKey>,
    labels: BTreeMap<RunKey, BTreeMap<String, String>>,
    events: BTreeMap<RunKey, Vec<StoredEvent>>,
    ready: BTreeMap<UnitRef, Kept>,
    timers: BTreeMap<(RunKey, TimerKey), Timestamp>,
    logs: BTreeMap<RunKey, Vec<LogLine>>,
    keys: BTreeMap<(TenantId, String), KeyRow>,
    workflows: BTreeMap<(TenantId, WorkflowName, WorkflowVersion), WorkflowRow>,
    defaults: BTreeMap<(TenantId, WorkflowName), WorkflowVersion>,
    modules: BTreeMap<(TenantId, ModuleName, Digest), ModuleRow>,
    aliases: BTreeMap<(TenantId, ModuleName, Alias), AliasRow>,
    uploads: BTreeMap<(TenantId, ModuleName, Digest), UploadRow>,
    chunks: BTreeMap<(Digest, u32), bytes::Bytes>,
    /// What each alias named before, newest last.
    alias_moves: BTreeMap<(TenantId, ModuleName, Alias), Vec<(u64, AliasRow)>>,
    pins: BTreeSet<(RunKey, ModuleName, Digest)>,
    tenants: BTreeMap<TenantId, TenantRow>,
    policies: BTreeMap<TenantId, PolicyRow>,
    settings: BTreeMap<(TenantId, ModuleName, u64), SettingsRow>,
    /// The oldest first.
    recordings: Vec<RecordingRow>,
    in_hand: BTreeMap<usize, InHand>,
}

impl Memory {
    /// Returns an empty store.
    pub(crate) fn new() -> Self {
        let default = TenantRow { tenant: TenantId::default_tenant(), display_name: None, created_at: Timestamp(0) };
        let tables = Tables { tenants: [(default.tenant.clone(), default)].into(), ..Tables::default() };
        Self {
            tables: Arc::new(Mutex::new(tables)),
            gate: Arc::default(),
            control: Arc::default(),
            found_in_hand: Vec::new(),
            unclean: false,
        }
    }

    /// Returns the store as the next server finds it: after a clean end if this one was closed. This one writes no more.
    pub(crate) fn reopen(&self) -> Self {
        let unclean = !std::mem::replace(&mut self.control().closed, true);
        let in_hand = std::mem::take(&mut self.tables().in_hand);
        Self {
            tables: self.tables.clone(),
            gate: Arc::default(),
            control: Arc::default(),
            found_in_hand: if unclean { in_hand.into_values().collect() } else { Vec::new() },
            unclean,
        }
    }

    /// Makes commits fail: the next one is number 0.
    pub(crate) fn fail_commits(&self, which: Range<u64>, fault: Fault) {
        let mut control = self.control();
        let from = control.asked;
        control.faults.push((which.start + from..which.end + from, fault));
    }

    /// Makes commits wait as long as the answer is held. Waits itself for one that has begun.
    pub(crate) async fn stall(&self) -> OwnedMutexGuard<()> {
        self.gate.clone().lock_owned().await
    }

    /// Replaces the fields of a stored event, for instance by what cannot be read.
    pub(crate) fn spoil_event(&self, run: &RunKey, seq: u64, fields: &str) {
        let mut tables = self.tables();
        let events = tables.events.get_mut(run).into_iter().flatten();
        events.filter(|event| event.seq == seq).for_each(|event| event.fields = fields.into());
    }

    /// Makes the row of an execution one that cannot be read.
    pub(crate) fn spoil_execution(&self, key: &ExecutionKey) {
        self.tables().spoiled.insert(key.clone());
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap()
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap()
    }

    fn commit_now(&self, batch: Batch) -> Result<Committed, Error> {
        let begun = Instant::now();
        let fault = {
            let mut control = self.control();
            if control.closed {
                return Err(Error::Closed);
            }
            let number = control.asked;
            control.asked += 1;
            control.faults.iter().find(|(which, _)| which.contains(&number)).map(|(_, fault)| *fault)
        };
        if fault == Some(Fault::Refused) {
            return Err(Error::Full { limit: "by order of the test".into() });
        }
        for change in &batch.changes {
            check_dense(change)?;
        }
        let changes = self.tables().write(batch);
        if fault == Some(Fault::AnswerLost) {
            return Err(Error::Database("the answer was lost by order of the test".into()));
        }
        let took = begun.elapsed();
        let mut control = self.control();
        control.stats.commits += 1;
        control.stats.changes += changes.iter().filter(|change| change.is_ok()).count() as u64;
        control.stats.commit_us += took.as_micros() as u64;
        Ok(Committed { changes, took })
    }
}

impl Tables {
    fn write(&mut self, batch: Batch) -> Vec<Result<(), Conflict>> {
        for put in batch.notes {
            if let Some(kept) = self.ready.get_mut(&put.unit)
                && kept.row.attempt == put.attempt
            {
                kept.take_note(put.noted);
            }
        }
        let outcomes = batch.changes.into_iter().map(|change| self.write_change(change)).collect();
        let refused = batch.uploads.iter().any(|(_, row)| row.reason.is_some());
        let changes_needs = refused || !batch.modules_drop.is_empty() || !batch.uploads_drop.is_empty();
        for put in batch.workflows {
            let key = (put.tenant, put.row.name.clone(), put.row.version.clone());
            self.workflows.entry(key).or_insert(put.row);
        }
        for key in batch.workflows_drop {
            self.workflows.remove(&key);
            self.defaults.retain(|(tenant, name), version| (tenant, name, &*version) != (&key.0, &key.1, &key.2));
        }
        self.defaults.extend(batch.defaults.into_iter().map(|(tenant, name, version)| ((tenant, name), version)));
        for (tenant, row) in batch.uploads {
            self.uploads.insert((tenant, row.name.clone(), row.digest.clone()), row);
        }
        for put in batch.chunks {
            self.chunks.entry((put.digest, put.number)).or_insert(put.bytes);
        }
        for put in batch.modules {
            self.modules.entry((put.tenant, put.row.name.clone(), put.row.digest.clone())).or_insert(put.row);
        }
        for row in batch.tenants {
            self.tenants.entry(row.tenant.clone()).or_insert(row);
        }
        self.policies.extend(batch.policies.into_iter().map(|row| (row.tenant.clone(), row)));
        for row in batch.recordings {
            let owner = row.unit.run.tenant.clone();
            self.recordings.retain(|kept| (&kept.unit, kept.attempt) != (&row.unit, row.attempt));
            self.recordings.push(row);
            let of_owner = |kept: &RecordingRow| kept.unit.run.tenant == owner;
            while self.recordings.iter().filter(|kept| of_owner(kept)).count() > RECORDINGS_MAX {
                let oldest = self.recordings.iter().position(of_owner).expect("there is one");
                self.recordings.remove(oldest);
            }
        }
        for row in batch.settings {
            self.settings.insert((row.tenant.clone(), row.module.clone(), row.revision), row);
        }
        for (tenant, row) in batch.aliases {
            self.move_alias((tenant, row.module.clone(), row.alias.clone()), row);
        }
        for back in batch.aliases_back {
            let key = (back.tenant, back.row.module.clone(), back.row.alias.clone());
            self.alias_moves.entry(key.clone()).or_default().retain(|(number, _)| *number < back.number);
            self.aliases.insert(key, back.row);
        }
        for key in batch.aliases_drop {
            self.aliases.remove(&key);
            self.alias_moves.remove(&key);
        }
        for key in batch.modules_drop {
            if self.is_needed(&key) {
                continue;
            }
            self.modules.remove(&key);
            let moves = self.alias_moves.iter_mut();
            let moves = moves.filter(|((tenant, module, _), _)| (tenant, module) == (&key.0, &key.1));
            moves.for_each(|(_, moves)| moves.retain(|(_, row)| !row.digests().contains(&&key.2)));
        }
        for key in batch.uploads_drop {
            self.uploads.remove(&key);
        }
        if changes_needs {
            self.forget_chunks();
        }
        outcomes
    }

    /// Removes pieces that nobody needs; returns how many.
    fn forget_chunks(&mut self) -> usize {
        let before = self.chunks.len();
        let uploads = self.uploads.values().filter(|row| row.reason.is_none()).map(|row| &row.digest);
        let needed: std::collections::BTreeSet<&Digest> =
            self.modules.keys().map(|(_, _, digest)| digest).chain(uploads).collect();
        self.chunks.retain(|(digest, _), _| needed.contains(digest));
        before - self.chunks.len()
    }

    fn content(&self, digest: &Digest) -> Vec<u8> {
        let pieces = self.chunks.range((digest.clone(), 0)..=(digest.clone(), u32::MAX));
        pieces.flat_map(|(_, bytes)| bytes.to_vec()).collect()
    }

    fn move_alias(&mut self, key: (TenantId, ModuleName, Alias), row: AliasRow) {
        let before = self.aliases.insert(key.clone(), row.clone());
        if let Some(before) = before.filter(|before| !before.names_as(&row)) {
            let moves = self.alias_moves.entry(key).or_default();
            moves.push((moves.last().map_or(1, |(number, _)| number + 1), before));
            let surplus = moves.len().saturating_sub(MOVES_MAX);
            moves.drain(..surplus);
        }
    }

    fn is_needed(&self, (tenant, name, digest): &(TenantId, ModuleName, Digest)) -> bool {
        let mut aliases = self.aliases.iter().filter(|((owner, module, _), _)| (owner, module) == (tenant, name));
        let mut pins = self.pins.iter();
        aliases.any(|(_, row)| row.digests().contains(&digest))
            || pins.any(|(run, module, pinned)| (&run.tenant, module, pinned) == (tenant, name, digest))
    }

    fn write_change(&mut self, change: Change) -> Result<(), Conflict> {
        let run = change.run;
        let found = self.events.get(&run).and_then(|events| events.last()).map_or(0, |event| event.seq);
        let key = run.execution_key();
        let last_run = self.executions.get(&key).map_or(0, |row| row.run.run);
        let in_place = if change.expected_seq == 0 { run.run > last_run } else { run.run == last_run };
        if found != change.expected_seq || !in_place {
            return Err(Conflict { expected: change.expected_seq, found });
        }
        if change.expected_seq == 0 {
            self.labels.insert(run.clone(), change.labels);
        }
        self.events.entry(run.clone()).or_default().extend(change.events);
        let terminal = change.projection.status.is_terminal();
        self.executions.insert(key, change.projection);
        if terminal {
            self.ready.retain(|unit, _| unit.run != run);
            self.timers.retain(|(of, _), _| *of != run);
            self.pins.retain(|(of, ..)| *of != run);
        } else {
            for unit in change.ready_drop {
                self.ready.remove(&UnitRef { run: run.clone(), unit });
            }
            self.ready.extend(change.ready_put.into_iter().map(|row| (row.unit.clone(), Kept::new(row))));
            for timer in change.timers_drop {
                self.timers.remove(&(run.clone(), timer));
            }
            for (module, digest) in change.pins_drop {
                self.pins.remove(&(run.clone(), module, digest));
            }
            self.pins.extend(change.pins_put.into_iter().map(|(module, digest)| (run.clone(), module, digest)));
            self.timers.extend(change.timers_put.into_iter().map(|row| ((row.run, row.timer), row.due_at)));
        }
        self.logs.entry(run).or_default().extend(change.logs);
        self.keys.extend(change.keys.into_iter().map(|key| ((key.tenant.clone(), key.scope.clone()), key)));
        Ok(())
    }

    fn with_inputs<'a>(&self, rows: impl Iterator<Item = &'a Kept>) -> ReadyPage {
        let mut page = ReadyPage::default();
        for Kept { row, note, .. } in rows {
            match self.input(row) {
                Ok(input) => page.items.push(ReadyItem { row: row.clone(), input, note: note.clone() }),
                Err(reason) => page.unreadable.push((row.unit.clone(), reason)),
            }
        }
        page
    }

    fn input(&self, row: &ReadyRow) -> Result<Payload, String> {
        let events = self.events.get(&row.unit.run);
        let stored = events.and_then(|events| events.iter().find(|event| event.seq == row.input_seq));
        match stored.map(Event::read) {
            Some(Ok(Event::StepScheduled(event))) => {
                event.input.map(|input| input.json).ok_or("it holds no input".into())
            }
            Some(Ok(_)) => Err("it is another event".into()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("it is missing".into()),
        }
    }

    fn find(&self, key: &ExecutionKey) -> Result<Option<Projection>, Error> {
        if self.spoiled.contains(key) {
            return Err(Error::Unreadable { what: "by order of the test".into() });
        }
        Ok(self.executions.get(key).cloned())
    }

    fn fits(&self, row: &Projection, query: &ExecutionQuery) -> bool {
        let labels = self.labels.get(&row.run);
        let has = |(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value);
        (query.statuses.is_empty() || query.statuses.contains(&row.status))
            && query.workflow.as_ref().is_none_or(|workflow| *workflow == row.workflow)
            && query.version.as_ref().is_none_or(|version| *version == row.version)
            && query.labels.iter().all(has)
            && query.created_after.is_none_or(|after| row.created_at > after)
            && query.created_before.is_none_or(|before| row.created_at < before)
            && query.after.as_ref().is_none_or(|(at, id)| (row.created_at, &row.run.execution) < (*at, id))
    }

    fn active(&self) -> impl Iterator<Item = &Projection> {
        self.executions.values().filter(|row| !row.status.is_terminal())
    }
}

#[async_trait]
impl Store for Memory {
    async fn commit(&self, batch: Batch) -> Result<Committed, Error> {
        let store = self.clone();
        // A task of its own, so that dropping the future does not stop it.
        let commit = tokio::spawn(async move {
            let _gate = store.gate.lock().await;
            store.commit_now(batch)
        });
        commit.await.map_err(|error| Error::Database(Box::new(error)))?
    }

    async fn load(&self, keys: Vec<ExecutionKey>) -> Result<Vec<Result<Option<Loaded>, Error>>, Error> {
        let tables = self.tables();
        let load = |key: &ExecutionKey| {
            let Some(projection) = tables.find(key)? else { return Ok(None) };
            let events = tables.events.get(&projection.run).cloned().unwrap_or_default();
            Ok(Some(Loaded { projection, events }))
        };
        Ok(keys.iter().map(load).collect())
    }

    async fn find_execution(&self, tenant: &TenantId, id: &ExecutionId) -> Result<Option<Projection>, Error> {
        let key = ExecutionKey { tenant: tenant.clone(), execution: id.clone() };
        self.tables().find(&key)
    }

    async fn list_executions(&self, tenant: &TenantId, query: ExecutionQuery) -> Result<Vec<Projection>, Error> {
        let tables = self.tables();
        let rows = tables.executions.values().filter(|row| row.run.tenant == *tenant && tables.fits(row, &query));
        let mut rows: Vec<_> = rows.cloned().collect();
        rows.sort_by(|a, b| (b.created_at, &b.run.execution).cmp(&(a.created_at, &a.run.execution)));
        rows.truncate(query.limit);
        Ok(rows)
    }

    async fn history(&self, run: &RunKey, query: HistoryQuery) -> Result<Vec<StoredEvent>, Error> {
        let mut events = self.tables().events.get(run).cloned().unwrap_or_default();
        if query.reverse {
            events.reverse();
            events.retain(|event| query.after_seq == 0 || event.seq < query.after_seq);
        } else {
            events.retain(|event| event.seq > query.after_seq);
        }
        events.truncate(query.limit);
        let mut bytes = 0;
        let fitting = events.iter().take_while(|event| {
            bytes += event.fields.len();
            bytes <= query.bytes
        });
        let fitting = fitting.count().max(1);
        events.truncate(fitting);
        Ok(events)
    }

    async fn logs(&self, run: &RunKey, after: u64, limit: usize) -> Result<Vec<(u64, LogLine)>, Error> {
        let lines = self.tables().logs.get(run).cloned().unwrap_or_default();
        Ok((1..).zip(lines).filter(|(number, _)| *number > after).take(limit).collect())
    }

    async fn find_keys(&self, scopes: Vec<(TenantId, String)>, now: Timestamp) -> Result<Vec<Option<KeyRow>>, Error> {
        let tables = self.tables();
        Ok(scopes.iter().map(|scope| tables.keys.get(scope).filter(|key| key.expires_at > now).cloned()).collect())
    }

    async fn find_workflow(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        version: Option<&WorkflowVersion>,
    ) -> Result<Option<WorkflowRow>, Error> {
        let tables = self.tables();
        let default = tables.defaults.get(&(tenant.clone(), name.clone()));
        let Some(version) = version.or(default) else { return Ok(None) };
        Ok(tables.workflows.get(&(tenant.clone(), name.clone(), version.clone())).cloned())
    }

    async fn list_workflows(
        &self,
        tenant: &TenantId,
        after: Option<(Timestamp, WorkflowName, WorkflowVersion)>,
        limit: usize,
    ) -> Result<Vec<WorkflowRow>, Error> {
        let tables = self.tables();
        let place = |row: &WorkflowRow| (row.created_at, row.name.clone(), row.version.clone());
        let rows = tables.workflows.iter().filter(|((owner, ..), _)| owner == tenant).map(|(_, row)| row);
        let mut rows: Vec<_> =
            rows.filter(|row| after.as_ref().is_none_or(|after| place(row) < *after)).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
        rows.truncate(limit);
        Ok(rows)
    }

    async fn workflow_in_use(
        &self,
        tenant: &TenantId,
        name: &WorkflowName,
        version: &WorkflowVersion,
    ) -> Result<bool, Error> {
        let tables = self.tables();
        let uses = |row: &Projection| (&row.run.tenant, &row.workflow, &row.version) == (tenant, name, version);
        Ok(tables.active().any(uses))
    }

    async fn list_modules(
        &self,
        tenant: &TenantId,
        name: Option<&ModuleName>,
        after: Option<(Timestamp, ModuleName, Digest)>,
        limit: usize,
    ) -> Result<Vec<ModuleRow>, Error> {
        let tables = self.tables();
        let place = |row: &ModuleRow| (row.created_at, row.name.clone(), row.digest.clone());
        let rows = tables.modules.iter().filter(|((owner, ..), _)| owner == tenant).map(|(_, row)| row);
        let rows = rows.filter(|row| name.is_none_or(|name| *name == row.name));
        let mut rows: Vec<_> =
            rows.filter(|row| after.as_ref().is_none_or(|after| place(row) < *after)).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
        rows.truncate(limit);
        Ok(rows)
    }

    async fn list_aliases(&self, tenant: &TenantId) -> Result<Vec<AliasRow>, Error> {
        let tables = self.tables();
        Ok(tables.aliases.iter().filter(|((owner, ..), _)| owner == tenant).map(|(_, row)| row.clone()).collect())
    }

    async fn alias_moves(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        alias: &Alias,
    ) -> Result<Vec<(u64, AliasRow)>, Error> {
        let tables = self.tables();
        let moves = tables.alias_moves.get(&(tenant.clone(), module.clone(), alias.clone()));
        Ok(moves.into_iter().flatten().rev().cloned().collect())
    }

    async fn pinned_by(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        digest: &Digest,
        after: Option<&ExecutionId>,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, Error> {
        let tables = self.tables();
        let pins = tables.pins.iter().filter(|(run, name, pin)| (&run.tenant, name, pin) == (tenant, module, digest));
        let mut ids: Vec<_> = pins.map(|(run, ..)| run.execution.clone()).collect();
        ids.sort();
        ids.retain(|id| after.is_none_or(|after| id > after));
        ids.truncate(limit);
        Ok(ids)
    }

    async fn module_content(
        &self,
        tenant: &TenantId,
        name: &ModuleName,
        digest: &Digest,
    ) -> Result<Option<Vec<u8>>, Error> {
        let tables = self.tables();
        let held = tables.modules.contains_key(&(tenant.clone(), name.clone(), digest.clone()));
        Ok(held.then(|| tables.content(digest)))
    }

    async fn list_uploads(&self, tenant: &TenantId) -> Result<Vec<UploadRow>, Error> {
        let tables = self.tables();
        Ok(tables.uploads.iter().filter(|((owner, ..), _)| owner == tenant).map(|(_, row)| row.clone()).collect())
    }

    async fn count_modules(&self, tenant: &TenantId) -> Result<(u64, u64), Error> {
        let tables = self.tables();
        let rows = tables.modules.iter().filter(|((owner, ..), _)| owner == tenant).map(|(_, row)| row.size_bytes);
        Ok(rows.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes)))
    }

    async fn find_recording(&self, unit: &UnitRef, attempt: u32) -> Result<Option<RecordingRow>, Error> {
        let tables = self.tables();
        Ok(tables.recordings.iter().find(|kept| kept.unit == *unit && kept.attempt == attempt).cloned())
    }

    async fn find_settings(
        &self,
        tenant: &TenantId,
        module: &ModuleName,
        revision: u64,
    ) -> Result<Option<SettingsRow>, Error> {
        Ok(self.tables().settings.get(&(tenant.clone(), module.clone(), revision)).cloned())
    }
}

#[async_trait]
impl System for Memory {
    fn epoch(&self) -> u64 {
        7
    }

    fn ended_uncleanly(&self) -> bool {
        self.unclean
    }

    async fn mark_redelivery(&self) -> Result<(), Error> {
        self.tables().ready.values_mut().for_each(|kept| kept.row.redelivery = true);
        Ok(())
    }

    async fn timers_until(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>, Error> {
        let tables = self.tables();
        let timers = tables.timers.iter().filter(|(_, due)| **due <= until);
        let row = |((run, timer), due): (&(RunKey, TimerKey), &Timestamp)| TimerRow {
            run: run.clone(),
            timer: timer.clone(),
            due_at: *due,
        };
        let mut timers: Vec<_> = timers.map(row).collect();
        timers.sort_by_key(|row| row.due_at);
        timers.truncate(limit);
        Ok(timers)
    }

    async fn ready_counts(&self) -> Result<HashMap<ReadyClass, u64>, Error> {
        let mut counts = HashMap::new();
        for kept in self.tables().ready.values() {
            *counts.entry(ReadyClass::from(&kept.row)).or_default() += 1;
        }
        Ok(counts)
    }

    async fn ready_page(&self, class: &ReadyClass, order: ReadyOrder, limit: usize) -> Result<ReadyPage, Error> {
        let tables = self.tables();
        let mut rows: Vec<_> = tables.ready.values().filter(|kept| ReadyClass::from(&kept.row) == *class).collect();
        rows.sort_by_key(|Kept { row, .. }| match order {
            ReadyOrder::Priority => (std::cmp::Reverse(row.priority), row.ready_at),
            ReadyOrder::Age => (std::cmp::Reverse(0), row.ready_at),
        });
        Ok(tables.with_inputs(rows.into_iter().take(limit)))
    }

    async fn noted(&self) -> Result<ReadyPage, Error> {
        let tables = self.tables();
        Ok(tables.with_inputs(tables.ready.values().filter(|kept| kept.note.is_some())))
    }

    async fn queue_ends_until(&self, until: Timestamp, limit: usize) -> Result<Vec<ReadyRow>, Error> {
        let tables = self.tables();
        let mut due: Vec<_> =
            tables.ready.values().filter(|kept| kept.queue_ends_at.is_some_and(|end| end <= until)).collect();
        due.sort_by_key(|kept| kept.queue_ends_at);
        Ok(due.into_iter().take(limit).map(|kept| kept.row.clone()).collect())
    }

    async fn next_queue_end(&self) -> Result<Option<Timestamp>, Error> {
        Ok(self.tables().ready.values().filter_map(|kept| kept.queue_ends_at).min())
    }

    async fn sweep_page(&self, after: Option<&ExecutionKey>, limit: usize) -> Result<Vec<SweepRow>, Error> {
        let tables = self.tables();
        let rows = tables.active().filter(|row| after.is_none_or(|after| row.run.execution_key() > *after));
        let compared = |row: &Projection| SweepRow {
            projection: row.clone(),
            ready: tables.ready.keys().filter(|unit| unit.run == row.run).count() as u64,
            next_timer: tables.timers.iter().filter(|((run, _), _)| *run == row.run).map(|(_, due)| *due).min(),
        };
        Ok(rows.take(limit).map(compared).collect())
    }

    async fn unfinished_turns(&self, limit: usize) -> Result<Vec<ExecutionKey>, Error> {
        let tables = self.tables();
        let turns = tables.active().filter(|row| row.waiting == Waiting::Turn);
        Ok(turns.take(limit).map(|row| row.run.execution_key()).collect())
    }

    async fn winding_down(&self, after: Option<&ExecutionKey>, limit: usize) -> Result<Vec<ExecutionKey>, Error> {
        let tables = self.tables();
        let rows = tables.active().filter(|row| row.status == Status::Compensating);
        let rows = rows.filter(|row| tables.ready.keys().any(|unit| unit.run == row.run));
        let keys = rows.map(|row| row.run.execution_key()).filter(|key| after.is_none_or(|after| key > after));
        Ok(keys.take(limit).collect())
    }

    async fn active_executions(&self) -> Result<u64, Error> {
        Ok(self.tables().active().count() as u64)
    }

    async fn list_tenants(&self, after: Option<(Timestamp, TenantId)>, limit: usize) -> Result<Vec<TenantRow>, Error> {
        let place = |row: &TenantRow| (row.created_at, row.tenant.clone());
        let mut rows: Vec<_> = self.tables().tenants.values().cloned().collect();
        rows.retain(|row| after.as_ref().is_none_or(|after| place(row) < *after));
        rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
        rows.truncate(limit);
        Ok(rows)
    }

    async fn policies(&self) -> Result<Vec<PolicyRow>, Error> {
        Ok(self.tables().policies.values().cloned().collect())
    }

    async fn settings(&self) -> Result<Vec<SettingsRow>, Error> {
        let mut newest = BTreeMap::new();
        for row in self.tables().settings.values() {
            newest.insert((row.tenant.clone(), row.module.clone()), row.clone());
        }
        Ok(newest.into_values().collect())
    }

    async fn tenants(&self) -> Result<Vec<TenantId>, Error> {
        let mut tenants: Vec<_> = self.tables().modules.keys().map(|(tenant, ..)| tenant.clone()).collect();
        tenants.dedup();
        Ok(tenants)
    }

    async fn compiling(&self) -> Result<Vec<(TenantId, UploadRow)>, Error> {
        let tables = self.tables();
        let compiling = tables.uploads.iter().filter(|(_, row)| row.reason.is_none());
        let mut rows: Vec<_> = compiling.map(|((tenant, ..), row)| (tenant.clone(), row.clone())).collect();
        rows.sort_by_key(|(_, row)| row.created_at);
        Ok(rows)
    }

    async fn content(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        Ok(self.tables().content(digest))
    }

    async fn sweep_chunks(&self) -> Result<usize, Error> {
        Ok(self.tables().forget_chunks())
    }

    async fn prune_keys(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        let mut tables = self.tables();
        let mut expired: Vec<_> = tables.keys.values().filter(|key| key.expires_at <= now).cloned().collect();
        expired.sort_by_key(|key| key.expires_at);
        expired.truncate(limit);
        for key in &expired {
            tables.keys.remove(&(key.tenant.clone(), key.scope.clone()));
        }
        Ok(expired.len())
    }

    fn note_in_hand(&self, slot: usize, unit: Option<&InHand>) -> Result<(), Error> {
        let mut tables = self.tables();
        match unit {
            Some(unit) => tables.in_hand.insert(slot, unit.clone()),
            None => tables.in_hand.remove(&slot),
        };
        Ok(())
    }

    fn found_in_hand(&self) -> Vec<InHand> {
        self.found_in_hand.clone()
    }

    fn stats(&self) -> Stats {
        self.control().stats
    }

    async fn close(&self) -> Result<(), Error> {
        self.control().closed = true;
        Ok(())
    }
}

/// A ready row with its note and the end of its time in the queue.
struct Kept {
    row: ReadyRow,
    note: Option<Note>,
    queue_ends_at: Option<Timestamp>,
}

impl Kept {
    fn new(row: ReadyRow) -> Self {
        let queue_ends_at = row.timeouts.queue_ms.map(|span| row.ready_at.after(span));
        Self { row, note: None, queue_ends_at }
    }

    fn take_note(&mut self, noted: Noted) {
        match noted {
            Noted::Out(note) => self.note = Some(note),
            Noted::Back(at) => {
                self.note = None;
                self.row.redelivery = true;
                self.queue_ends_at = self.row.timeouts.queue_ms.map(|span| at.after(span));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::suite::*;

    fn batch(name: &str) -> Batch {
        Batch { changes: vec![start_with_unit(&run(name), "a")], ..Batch::default() }
    }

    #[tokio::test]
    async fn commits_fail_as_ordered() {
        let store = Memory::new();
        store.commit(batch("e-0")).await.unwrap();
        store.fail_commits(1..2, Fault::Refused);
        store.fail_commits(2..3, Fault::AnswerLost);
        store.commit(batch("e-1")).await.unwrap();
        assert!(matches!(store.commit(batch("e-2")).await, Err(Error::Full { .. })));
        assert!(matches!(store.commit(batch("e-3")).await, Err(Error::Database(_))));
        store.commit(batch("e-4")).await.unwrap();
        let keys = (0..5).map(|at| run(&format!("e-{at}")).execution_key()).collect();
        let there: Vec<_> = store.load(keys).await.unwrap().iter().map(|found| matches!(found, Ok(Some(_)))).collect();
        assert_eq!(there, [true, true, false, true, true]);
    }

    #[tokio::test]
    async fn a_stalled_commit_waits_and_is_done_without_its_caller() {
        let store = Memory::new();
        let stall = store.stall().await;
        let mut commit = store.commit(batch("e-1"));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(commit.as_mut().poll(&mut context).is_pending());
        drop(commit);
        tokio::task::yield_now().await;
        assert_eq!(store.active_executions().await.unwrap(), 0);
        drop(stall);
        store.commit(batch("e-2")).await.unwrap();
        assert_eq!(store.active_executions().await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_reopened_store_knows_how_the_last_one_ended() {
        let store = Memory::new();
        let change = start_with_unit(&run("e-1"), "a");
        let held = InHand { unit: unit(&change.run, "a"), attempt: 1, delivery: note(3).delivery };
        write(&store, [change.clone()]).await;
        store.note_in_hand(0, Some(&held)).unwrap();
        let next = store.reopen();
        assert!(next.ended_uncleanly() && matches!(store.commit(batch("e-2")).await, Err(Error::Closed)));
        assert_eq!(next.found_in_hand(), [held]);
        next.spoil_event(&change.run, 3, "{}");
        let page = next.ready_page(&(&change.ready_put[0]).into(), ReadyOrder::Age, 10).await.unwrap();
        assert_eq!((page.items.len(), page.unreadable.len()), (0, 1));
        next.close().await.unwrap();
        let last = next.reopen();
        assert!(!last.ended_uncleanly() && last.found_in_hand().is_empty());
    }
}
