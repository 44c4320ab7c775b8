//! Group commit: joins what all lanes staged into one transaction and one flush.
//!
//! An idle change is never held back. After a batch of more than [`COMPANY_FROM`] changes the writer waits for company, at
//! most a quarter of the last flush, and no longer than until as many have come as last time.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    Inner,
    inbox::{Inbox, Owned},
    stage::Stage,
};
use crate::{
    model::TenantId,
    store::{self, Batch, Change, NotePut},
};

/// A batch ends at this many bytes.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A batch ends at this many rows: what comes next waits for it, and whose turn it is, is looked at between batches.
const BATCH_ROWS_MAX: usize = 256;
/// The same for each millisecond that the last commit took, where that is more: behind a slow flush rows cost little.
const BATCH_ROWS_PER_MS: usize = 64;
/// After a batch of more than this the writer waits for company.
const COMPANY_FROM: usize = 8;
/// A note of a delivery is written with the next batch, at most this much later.
const NOTE_DELAY: Duration = Duration::from_secs(1);

/// Tells the one who waits what became of a write.
pub(super) type Written = oneshot::Sender<Result<(), store::Error>>;

/// Something to write.
pub(super) enum Job {
    /// A lane's decisions, with what they write in so many rows.
    Stage(Box<Stage>, Box<Change>, usize),
    /// Registered things, with the one who waits for them.
    Registry(Box<Batch>, Written),
    /// A delivery to note; nobody waits for it.
    Note(Box<NotePut>),
}

/// Where jobs are sent.
#[derive(Clone)]
pub(super) struct Writer(mpsc::UnboundedSender<Job>);

impl Writer {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Job>) {
        // Bounded by what can be in flight: one stage of each execution that a bounded inbox let in.
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Sends a job. After the end of the writer it is dropped, and so is whoever waits for it.
    pub(super) fn send(&self, job: Job) {
        let _ = self.0.send(job);
    }

    /// Writes registered things and waits for the commit.
    pub(super) async fn write(&self, batch: Batch) -> Result<(), store::Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Registry(Box::new(batch), reply));
        answer.await.unwrap_or(Err(store::Error::Closed))
    }
}

/// A lane's decisions with what they write.
struct Staged {
    stage: Box<Stage>,
    change: Box<Change>,
    rows: usize,
}

impl Owned for Staged {
    fn owner(&self) -> &TenantId {
        &self.stage.key.tenant
    }
}

/// What waits to be written.
#[derive(Default)]
struct Waiting {
    staged: Inbox<Staged>,
    notes: Vec<NotePut>,
    registry: Vec<(Box<Batch>, Written)>,
}

/// Jobs that are written together.
#[derive(Default)]
struct Gathered {
    #[expect(clippy::vec_box, reason = "stages travel boxed from lane to writer and back")]
    stages: Vec<Box<Stage>>,
    batch: Batch,
}

impl Waiting {
    fn add(&mut self, job: Job) {
        match job {
            Job::Stage(stage, change, rows) => self.staged.push(Staged { stage, change, rows }),
            Job::Registry(batch, reply) => self.registry.push((batch, reply)),
            Job::Note(note) => self.notes.push(*note),
        }
    }

    fn is_idle(&self) -> bool {
        self.staged.is_empty() && self.registry.is_empty()
    }

    /// Takes the next batch, of one tenant after the other.
    fn take(&mut self, last: Duration) -> Gathered {
        let last_ms = usize::try_from(last.as_millis()).unwrap_or(usize::MAX);
        let rows_max = BATCH_ROWS_MAX.max(last_ms.saturating_mul(BATCH_ROWS_PER_MS));
        let mut gathered = Gathered::default();
        gathered.batch.notes = std::mem::take(&mut self.notes);
        let (mut bytes, mut rows) = (0, 0);
        while bytes < BATCH_BYTES_MAX && rows < rows_max {
            let Some(staged) = self.staged.pop() else { break };
            bytes += staged.stage.bytes();
            rows += staged.rows;
            gathered.stages.push(staged.stage);
            gathered.batch.changes.push(*staged.change);
        }
        gathered
    }
}

/// Writes until every sender is gone.
pub(super) async fn run(app: Arc<Inner>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let mut last = (0usize, Duration::ZERO);
    let mut waiting = Waiting::default();
    while gather(&mut waiting, &mut jobs, last).await {
        let registry = std::mem::take(&mut waiting.registry);
        let gathered = waiting.take(last.1);
        if !gathered.batch.is_empty() {
            last = commit(&app, gathered).await;
        }
        // Registered things are rare: a transaction each keeps a failure theirs alone.
        for (batch, reply) in registry {
            let answer = app.store.commit(*batch).await.map(|_| ());
            if answer.as_ref().is_err_and(store::Error::leaves_doubt) {
                app.doubt.notify_one();
            }
            let _ = reply.send(answer);
        }
    }
}

/// Waits for the next batch; false when no more can come.
async fn gather(waiting: &mut Waiting, jobs: &mut mpsc::UnboundedReceiver<Job>, last: (usize, Duration)) -> bool {
    drain(waiting, jobs);
    // What a full batch left is written without waiting for more.
    let has_left = !waiting.staged.is_empty();
    if waiting.is_idle() && waiting.notes.is_empty() {
        let Some(job) = jobs.recv().await else { return false };
        waiting.add(job);
    }
    let notes_due = Instant::now() + NOTE_DELAY;
    while waiting.is_idle() {
        match tokio::time::timeout_at(notes_due, jobs.recv()).await {
            Ok(Some(job)) => waiting.add(job),
            Ok(None) | Err(_) => return true,
        }
    }
    drain(waiting, jobs);
    let (count, flush) = last;
    if count > COMPANY_FROM && !has_left {
        let end = Instant::now() + flush / 4;
        while waiting.staged.len() < count {
            match tokio::time::timeout_at(end, jobs.recv()).await {
                Ok(Some(job)) => waiting.add(job),
                Ok(None) | Err(_) => break,
            }
            drain(waiting, jobs);
        }
    }
    true
}

fn drain(waiting: &mut Waiting, jobs: &mut mpsc::UnboundedReceiver<Job>) {
    while let Ok(job) = jobs.try_recv() {
        waiting.add(job);
    }
}

/// Commits a batch and tells the lanes; returns its size and how long it took.
async fn commit(app: &Arc<Inner>, gathered: Gathered) -> (usize, Duration) {
    let count = gathered.stages.len();
    match app.store.commit(gathered.batch).await {
        Ok(committed) => {
            app.counters.batch(count);
            let outcomes = gathered.stages.into_iter().zip(committed.changes);
            for (stage, outcome) in outcomes {
                app.lanes.committed(stage.lane, stage, outcome.map_err(|_| Lost::Race));
            }
            (count, committed.took)
        }
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                changes = count,
                "a commit failed; its changes are not taken as written"
            );
            app.counters.commit_failed();
            if error.leaves_doubt() {
                app.doubt.notify_one();
            }
            let error = Arc::new(error);
            for stage in gathered.stages {
                app.lanes.committed(stage.lane, stage, Err(Lost::Store(error.clone())));
            }
            (count, Duration::ZERO)
        }
    }
}

/// Why a stage was not written.
#[derive(Clone)]
pub(super) enum Lost {
    /// Another was first.
    Race,
    /// The store failed.
    Store(Arc<store::Error>),
}
