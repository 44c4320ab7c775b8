//! What a lane's decisions on one execution leave until they are committed.

use std::collections::{BTreeMap, HashMap};

use tokio::sync::oneshot;

use super::{Error, lane::Ask};
use crate::{
    engine::{Answer, Decision, Effect},
    model::{
        Event, Execution, Payload, StoredEvent, Timestamp, UnitKey, event,
        row::{ExecutionKey, KeyRow, LogLine, ReadyRow, TimerKey, TimerRow},
    },
    store::Change,
};

/// Answers the one who asked.
pub(super) type Reply = oneshot::Sender<Result<Answer, Error>>;

/// Decisions on one execution, on their way through the writer.
pub(super) struct Stage {
    /// The lane that decided them.
    pub(super) lane: usize,
    /// The execution.
    pub(super) key: ExecutionKey,
    /// Seq of the run before them.
    expected_seq: u64,
    events: Vec<StoredEvent>,
    bytes: usize,
    /// Ready rows to put or drop, the last word on each unit.
    pub(super) ready: HashMap<UnitKey, Option<(Box<ReadyRow>, Payload)>>,
    /// Timers to arm or disarm, the last word on each.
    pub(super) timers: BTreeMap<TimerKey, Option<Timestamp>>,
    /// Units that must stop.
    pub(super) stops: Vec<(UnitKey, u32)>,
    /// Whether the turn goes on.
    pub(super) goes_on: bool,
    /// The result that is to be checked, and when it was evaluated.
    pub(super) to_check: Option<(Timestamp, Payload)>,
    /// What was asked, with what is answered after the commit; decided again where the race was lost.
    pub(super) asked: Vec<(Ask, Answer)>,
    logs: Vec<LogLine>,
    keys: Vec<KeyRow>,
}

impl Stage {
    pub(super) fn new(lane: usize, key: ExecutionKey, expected_seq: u64) -> Self {
        Self {
            lane,
            key,
            expected_seq,
            events: Vec::new(),
            bytes: 0,
            ready: HashMap::new(),
            timers: BTreeMap::new(),
            stops: Vec::new(),
            goes_on: false,
            to_check: None,
            asked: Vec::new(),
            logs: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Adds a decision.
    pub(super) fn add(&mut self, decision: Decision) {
        for event in decision.events {
            self.push(&event, decision.at);
        }
        for effect in decision.effects {
            match effect {
                Effect::Ready(row, input) => {
                    self.ready.insert(row.unit.unit.clone(), Some((row, input)));
                }
                Effect::Withdraw(unit) => {
                    self.ready.insert(unit, None);
                }
                Effect::Stop(unit, attempt) => self.stops.push((unit, attempt)),
                Effect::Arm(timer) => {
                    self.timers.insert(timer.timer, Some(timer.due_at));
                }
                Effect::Disarm(timer) => {
                    self.timers.insert(timer, None);
                }
                Effect::Keep(key) => self.keys.push(key),
                Effect::Continue => self.goes_on = true,
                Effect::Check(at, result) => self.to_check = Some((at, result)),
            }
        }
    }

    /// Adds the rows that a state must have, for a repair.
    pub(super) fn put_rows(&mut self, ready: Vec<(ReadyRow, Payload)>, timers: Vec<TimerRow>) {
        self.ready.extend(ready.into_iter().map(|(row, input)| (row.unit.unit.clone(), Some((Box::new(row), input)))));
        self.timers.extend(timers.into_iter().map(|timer| (timer.timer, Some(timer.due_at))));
    }

    pub(super) fn add_logs(&mut self, logs: Vec<LogLine>) {
        self.bytes += logs.iter().map(|line| line.message.len() + 64).sum::<usize>();
        self.logs.extend(logs);
    }

    fn push(&mut self, event: &Event, at: Timestamp) {
        let seq = self.expected_seq + u64::try_from(self.events.len()).expect("a turn is bounded") + 1;
        let fields = event.fields();
        self.bytes += fields.len() + 64;
        self.events.push(StoredEvent { seq, at, kind: event.kind().to_owned(), format: event::FORMAT, fields });
    }

    /// About how much the commit writes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many rows the commit writes, about.
    pub(super) fn row_count(&self) -> usize {
        self.events.len() + self.ready.len() + self.timers.len() + self.logs.len() + self.keys.len()
    }

    pub(super) fn event_count(&self) -> usize {
        self.events.len()
    }

    /// Whether a commit would write anything.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.ready.is_empty()
            && self.timers.is_empty()
            && self.keys.is_empty()
            && self.logs.is_empty()
    }

    /// The answer that this stage is about to keep under a key.
    pub(super) fn kept(&self, scope: &str) -> Option<&KeyRow> {
        self.keys.iter().find(|row| row.scope == scope)
    }

    /// Takes out what the store writes.
    pub(super) fn take_change(&mut self, execution: &Execution) -> Change {
        let first = self.expected_seq == 0;
        let run = execution.key.clone();
        let timer_row = |(timer, due): (&TimerKey, &Option<Timestamp>)| {
            due.map(|due_at| TimerRow { run: run.clone(), timer: timer.clone(), due_at })
        };
        Change {
            expected_seq: self.expected_seq,
            events: std::mem::take(&mut self.events),
            projection: execution.projection(),
            labels: if first { execution.created().labels.clone() } else { BTreeMap::new() },
            ready_put: self.ready.values().flatten().map(|(row, _)| (**row).clone()).collect(),
            ready_drop: self.ready.iter().filter(|(_, put)| put.is_none()).map(|(unit, _)| unit.clone()).collect(),
            timers_put: self.timers.iter().filter_map(timer_row).collect(),
            timers_drop: self.timers.iter().filter(|(_, due)| due.is_none()).map(|(timer, _)| timer.clone()).collect(),
            pins_put: Vec::new(),
            pins_drop: Vec::new(),
            logs: std::mem::take(&mut self.logs),
            keys: std::mem::take(&mut self.keys),
            run,
        }
    }
}
