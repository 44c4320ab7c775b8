//! Group commit: joins what all lanes staged into one transaction and one flush.
//!
//! An idle change is never held back. After a batch of more than [`COMPANY_FROM`] changes the writer waits for company, at
//! most a quarter of the last flush, and no longer than until as many have come as last time.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{Inner, stage::Stage};
use crate::store::{self, Batch, Change, NotePut};

/// A batch ends at this many bytes.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A batch ends at this many changes.
const BATCH_CHANGES_MAX: usize = 4_096;
/// After a batch of more than this the writer waits for company.
const COMPANY_FROM: usize = 8;
/// A note of a delivery is written with the next batch, at most this much later.
const NOTE_DELAY: Duration = Duration::from_secs(1);

/// Tells the one who waits what became of a write.
pub(super) type Written = oneshot::Sender<Result<(), store::Error>>;

/// Something to write.
pub(super) enum Job {
    /// A lane's decisions.
    Stage(Box<Stage>, Box<Change>),
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

/// Jobs that are written together.
#[derive(Default)]
struct Gathered {
    #[expect(clippy::vec_box, reason = "stages travel boxed from lane to writer and back")]
    stages: Vec<Box<Stage>>,
    batch: Batch,
    bytes: usize,
    registry: Vec<(Box<Batch>, Written)>,
}

impl Gathered {
    fn add(&mut self, job: Job) {
        match job {
            Job::Stage(stage, change) => {
                self.bytes += stage.bytes();
                self.stages.push(stage);
                self.batch.changes.push(*change);
            }
            Job::Registry(batch, reply) => self.registry.push((batch, reply)),
            Job::Note(note) => self.batch.notes.push(*note),
        }
    }

    fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES_MAX || self.stages.len() >= BATCH_CHANGES_MAX
    }

    fn only_notes(&self) -> bool {
        self.stages.is_empty() && self.registry.is_empty()
    }
}

/// Writes until every sender is gone.
pub(super) async fn run(app: Arc<Inner>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let mut last = (0usize, Duration::ZERO);
    let mut gathered = Gathered::default();
    while gather(&mut gathered, &mut jobs, last).await {
        let mut full = std::mem::take(&mut gathered);
        let registry = std::mem::take(&mut full.registry);
        if !full.batch.is_empty() {
            last = commit(&app, full).await;
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

/// Collects the next batch; false when no more can come.
async fn gather(gathered: &mut Gathered, jobs: &mut mpsc::UnboundedReceiver<Job>, last: (usize, Duration)) -> bool {
    let Some(job) = jobs.recv().await else { return false };
    gathered.add(job);
    let notes_due = Instant::now() + NOTE_DELAY;
    while gathered.only_notes() {
        match tokio::time::timeout_at(notes_due, jobs.recv()).await {
            Ok(Some(job)) => gathered.add(job),
            Ok(None) | Err(_) => return true,
        }
    }
    drain(gathered, jobs);
    let (count, flush) = last;
    if count > COMPANY_FROM {
        let end = Instant::now() + flush / 4;
        while gathered.stages.len() < count && !gathered.is_full() {
            match tokio::time::timeout_at(end, jobs.recv()).await {
                Ok(Some(job)) => gathered.add(job),
                Ok(None) | Err(_) => break,
            }
            drain(gathered, jobs);
        }
    }
    true
}

fn drain(gathered: &mut Gathered, jobs: &mut mpsc::UnboundedReceiver<Job>) {
    while !gathered.is_full() {
        match jobs.try_recv() {
            Ok(job) => gathered.add(job),
            Err(_) => break,
        }
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
