//! Threads that do blocking work for asynchronous callers. Once it has begun, a job is done to its end whether or not its
//! caller is still there; a job that panics is an error to its caller and the thread goes on.

use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    thread::{Builder, JoinHandle},
};

use tokio::sync::{mpsc, oneshot};

use crate::store::Error;

/// How many jobs wait in line; who comes later waits to get in line.
const QUEUE_MAX: usize = 1024;

/// What a thread of a crew works with.
pub(super) trait Hand: Send + 'static {
    /// Whether a job is left undone when its caller went away before it began.
    const SKIPS_ABANDONED: bool;

    /// Called after each job, when its caller has the answer.
    fn rest(&mut self);
}

type Job<H> = Box<dyn FnOnce(&mut H) + Send>;

/// Threads with one line of jobs. Dropping it waits for the jobs that have begun.
pub(super) struct Crew<H> {
    /// None only while the crew is dropped.
    jobs: Option<mpsc::Sender<Job<H>>>,
    threads: Vec<JoinHandle<()>>,
}

impl<H: Hand> Crew<H> {
    /// Starts a thread for each hand.
    pub(super) fn start(name: &str, hands: Vec<H>) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let mut crew = Self { jobs: Some(jobs), threads: Vec::with_capacity(hands.len()) };
        for hand in hands {
            let queue = queue.clone();
            crew.threads.push(Builder::new().name(name.into()).spawn(move || work(hand, &queue))?);
        }
        Ok(crew)
    }

    /// Does `job` on one of the threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut H) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let job: Job<H> = Box::new(move |hand| {
            if H::SKIPS_ABANDONED && answer.is_closed() {
                return;
            }
            // What a job can leave half-way is a transaction, and that is rolled back as the panic passes through it.
            let result = catch_unwind(AssertUnwindSafe(|| job(hand))).unwrap_or_else(|panic| Err(panicked(&*panic)));
            // The caller may have gone away; the job is done all the same.
            let _ = answer.send(result);
        });
        let jobs = self.jobs.as_ref().expect("taken only by drop");
        jobs.send(job).await.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }
}

impl<H> Drop for Crew<H> {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to finish.
            let _ = thread.join();
        }
    }
}

fn work<H: Hand>(mut hand: H, queue: &Mutex<mpsc::Receiver<Job<H>>>) {
    loop {
        // The lock is held while waiting for a job and not while doing it.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(job) = job else { return };
        job(&mut hand);
        hand.rest();
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::Database(format!("a database thread panicked: {}", text.unwrap_or("no reason given")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Idle;

    impl Hand for Idle {
        const SKIPS_ABANDONED: bool = false;
        fn rest(&mut self) {}
    }

    #[tokio::test]
    async fn a_panic_is_an_error_to_its_caller_alone() {
        let crew = Crew::start("test", vec![Idle]).unwrap();
        let failed = crew.run::<()>(|_| panic!("by intent")).await.unwrap_err();
        assert!(failed.to_string().contains("failed"), "{failed}");
        assert_eq!(crew.run(|_| Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn dropping_a_crew_waits_for_what_has_begun() {
        let done = Arc::new(Mutex::new(false));
        let crew = Crew::start("test", vec![Idle]).unwrap();
        let (begun, has_begun) = oneshot::channel();
        let seen = done.clone();
        let job = crew.run(move |_| {
            begun.send(()).unwrap();
            *seen.lock().unwrap() = true;
            Ok(())
        });
        tokio::select! { biased; _ = job => {} _ = has_begun => {} }
        drop(crew);
        assert!(*done.lock().unwrap());
    }
}
