//! Turns: the threads that run guests, and the queue they take from.
//!
//! Guests run here and never on the threads that serve the API. A job is the future of one attempt; a turn is one poll
//! of it. The queue is fair over tenants: they are served in rotation, one turn each, so a neighbour waits one turn per
//! tenant and not one per instance. A guest gives its turn back at each wait for the host, and at a tick when others
//! wait.

use std::{
    any::Any,
    collections::{HashMap, VecDeque},
    future::Future,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

use tokio::{runtime::Handle, sync::Notify};

use crate::model::TenantId;

use super::ticker::Ticker;

/// How much lower the priority of guest threads is than that of the threads that serve the API: low enough that a machine
/// full of guests still answers, and high enough that guests go on beside other programs that take all they can.
const NICE: i32 = 10;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The queue and its threads.
pub(super) struct Turns {
    ticker: Arc<Ticker>,
    queue: Mutex<Queue>,
    ready: Condvar,
    /// The length of the queue, readable without its lock.
    waiting: AtomicUsize,
    /// Whether somebody wants to be told when a tenant's job has its first turn.
    wanted: AtomicBool,
    begun: Notify,
}

#[derive(Default)]
struct Queue {
    /// The jobs of each tenant that has any.
    lines: HashMap<TenantId, VecDeque<Arc<Job>>>,
    /// The tenants of `lines`, next one first.
    rotation: VecDeque<TenantId>,
    /// How many jobs of each tenant have had a turn and have not ended.
    begun: HashMap<TenantId, usize>,
    sleeping_threads: usize,
    closed: bool,
}

impl Turns {
    /// Starts `threads` guest threads. What jobs wait for beside their turns belongs to the runtime that this is called
    /// on, where there is one.
    pub(super) fn start(threads: usize, ticker: Arc<Ticker>) -> io::Result<Arc<Self>> {
        let turns = Arc::new(Self {
            ticker,
            queue: Mutex::default(),
            ready: Condvar::new(),
            waiting: AtomicUsize::new(0),
            wanted: AtomicBool::new(false),
            begun: Notify::new(),
        });
        let runtime = Handle::try_current().ok();
        for number in 0..threads.max(1) {
            let (served, runtime) = (Arc::clone(&turns), runtime.clone());
            let builder = thread::Builder::new().name(format!("sandbox-{number}"));
            if let Err(error) = builder.spawn(move || served.serve(runtime.as_ref())) {
                turns.close();
                return Err(error);
            }
        }
        Ok(turns)
    }

    /// Queues a job. A panic in it ends it alone; after [`Turns::close`] it is dropped.
    pub(super) fn spawn(self: &Arc<Self>, tenant: TenantId, work: impl Future<Output = ()> + Send + 'static) {
        let job = Arc::new(Job {
            tenant,
            turns: Arc::clone(self),
            has_begun: AtomicBool::new(false),
            state: AtomicU8::new(QUEUED),
            work: Mutex::new(Some(Box::pin(work))),
        });
        self.push(job);
    }

    /// Returns whether jobs wait for a turn.
    pub(super) fn others_wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Returns how many jobs of a tenant have had a turn and have not ended.
    pub(super) fn begun(&self, tenant: &TenantId) -> usize {
        self.lock().begun.get(tenant).copied().unwrap_or_default()
    }

    /// Asks to be told the next time that a job has its first turn; [`Turns::began`] ends then.
    pub(super) fn want_to_know(&self) {
        self.wanted.store(true, Ordering::Release);
    }

    /// Waits until a job has had its first turn since that was asked for.
    pub(super) async fn began(&self) {
        self.begun.notified().await;
    }

    /// Drops what is queued and ends the threads when their turn ends.
    pub(super) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        let lines = std::mem::take(&mut queue.lines);
        queue.rotation.clear();
        drop(queue);
        self.waiting.store(0, Ordering::Relaxed);
        self.ready.notify_all();
        lines.into_values().flatten().for_each(|job| job.abandon());
    }

    fn push(&self, job: Arc<Job>) {
        let mut queue = self.lock();
        if queue.closed {
            drop(queue);
            job.abandon();
            return;
        }
        queue.push(job);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let wake = queue.sleeping_threads > 0;
        drop(queue);
        if wake {
            self.ready.notify_one();
        }
    }

    /// Takes the next job; none once the queue is closed.
    fn next(&self) -> Option<Arc<Job>> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(job) = queue.pop() {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                if !job.has_begun.swap(true, Ordering::Relaxed) {
                    *queue.begun.entry(job.tenant.clone()).or_default() += 1;
                    drop(queue);
                    if self.wanted.swap(false, Ordering::AcqRel) {
                        self.begun.notify_one();
                    }
                }
                return Some(job);
            }
            queue.sleeping_threads += 1;
            self.ticker.leave();
            queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.sleeping_threads -= 1;
            // Entering may take the lock of the ticker; never hold two locks.
            drop(queue);
            self.ticker.enter();
            queue = self.lock();
        }
    }

    fn serve(&self, runtime: Option<&Handle>) {
        let _entered = runtime.map(Handle::enter);
        lower_priority();
        self.ticker.enter();
        while let Some(job) = self.next() {
            job.turn();
        }
        self.ticker.leave();
    }

    /// A job that had its turns has ended.
    fn ended(&self, tenant: &TenantId) {
        let mut queue = self.lock();
        if let Some(begun) = queue.begun.get_mut(tenant) {
            *begun -= 1;
            if *begun == 0 {
                queue.begun.remove(tenant);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, job: Arc<Job>) {
        match self.lines.get_mut(&job.tenant) {
            Some(line) => line.push_back(job),
            None => {
                self.rotation.push_back(job.tenant.clone());
                self.lines.insert(job.tenant.clone(), VecDeque::from([job]));
            }
        }
    }

    fn pop(&mut self) -> Option<Arc<Job>> {
        let tenant = self.rotation.pop_front()?;
        let line = self.lines.get_mut(&tenant)?;
        let job = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&tenant);
        } else {
            self.rotation.push_back(tenant);
        }
        job
    }
}

/// Nobody has woken it since its last turn.
const IDLE: u8 = 0;
/// It is in the queue.
const QUEUED: u8 = 1;
/// It has its turn.
const RUNNING: u8 = 2;
/// It has its turn and wants another.
const WOKEN: u8 = 3;
/// It will have no more turns.
const DONE: u8 = 4;

struct Job {
    tenant: TenantId,
    turns: Arc<Turns>,
    has_begun: AtomicBool,
    state: AtomicU8,
    /// Only the thread that has the turn locks it, so it is never waited for.
    work: Mutex<Option<Work>>,
}

impl Job {
    /// Polls the work once.
    fn turn(self: &Arc<Self>) {
        self.state.store(RUNNING, Ordering::Release);
        let waker = Waker::from(Arc::clone(self));
        let mut slot = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(work) = slot.as_mut() else { return };
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut Context::from_waker(&waker))));
        if let Ok(Poll::Pending) = polled {
            drop(slot);
            self.rest();
            return;
        }
        self.state.store(DONE, Ordering::Release);
        let ended = slot.take();
        drop(slot);
        self.turns.ended(&self.tenant);
        // What a panic left behind may panic again when it is dropped.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(ended)));
        for panic in [polled.err(), dropped.err()].into_iter().flatten() {
            tracing::error!(tenant = %self.tenant, panic = panic_text(&*panic), "an attempt panicked in the host");
        }
    }

    /// Goes back to the queue when it was woken during its turn, else rests.
    fn rest(self: &Arc<Self>) {
        if self.state.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_err() {
            self.state.store(QUEUED, Ordering::Release);
            self.turns.push(Arc::clone(self));
        }
    }

    /// Drops the work without another turn.
    fn abandon(&self) {
        self.state.store(DONE, Ordering::Release);
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
    }
}

impl Wake for Job {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken = self.state.try_update(Ordering::AcqRel, Ordering::Acquire, |state| match state {
            IDLE => Some(QUEUED),
            RUNNING => Some(WOKEN),
            _ => None,
        });
        if woken == Ok(IDLE) {
            self.turns.push(Arc::clone(self));
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

/// Lowers the priority of this thread where the system has priorities of threads.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "guest threads keep the priority of the server");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = NICE;
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::model::Millis;

    fn turns(threads: usize) -> Arc<Turns> {
        Turns::start(threads, Ticker::start(wasmtime::Engine::default(), Millis(2)).unwrap()).unwrap()
    }

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name).unwrap()
    }

    /// Gives its turn back `times` times, and says who it is each time it has one.
    async fn told_turns(name: &'static str, times: usize, told: mpsc::Sender<&'static str>) {
        for _ in 0..times {
            told.send(name).unwrap();
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn tenants_have_turns_in_rotation() {
        let turns = turns(1);
        let (hold, held) = mpsc::channel::<()>();
        turns.spawn(tenant("gate"), async move { held.recv().unwrap() });
        let (told, heard) = mpsc::channel();
        for _ in 0..2 {
            turns.spawn(tenant("a"), told_turns("a", 2, told.clone()));
        }
        turns.spawn(tenant("b"), told_turns("b", 2, told));
        hold.send(()).unwrap();
        assert_eq!(heard.iter().collect::<Vec<_>>(), ["a", "b", "a", "b", "a", "a"]);
        turns.close();
    }

    #[test]
    fn a_panic_ends_its_job_alone() {
        let turns = turns(1);
        let (told, heard) = mpsc::channel::<u8>();
        let lost = told.clone();
        turns.spawn(tenant("a"), async move {
            let _lost = lost;
            panic!("on purpose");
        });
        turns.spawn(tenant("a"), async move { told.send(7).unwrap() });
        assert_eq!(heard.iter().collect::<Vec<_>>(), [7]);
        turns.close();
    }

    #[test]
    fn closing_drops_what_waits() {
        let turns = turns(1);
        let (hold, held) = mpsc::channel::<()>();
        let (entered, inside) = mpsc::channel::<()>();
        turns.spawn(tenant("a"), async move {
            entered.send(()).unwrap();
            held.recv().unwrap();
        });
        inside.recv().unwrap();
        let (told, heard) = mpsc::channel::<u8>();
        let later = told.clone();
        turns.spawn(tenant("a"), async move { told.send(1).unwrap() });
        turns.close();
        turns.spawn(tenant("a"), async move { later.send(2).unwrap() });
        hold.send(()).unwrap();
        assert_eq!(heard.iter().collect::<Vec<_>>(), Vec::<u8>::new());
    }
}
