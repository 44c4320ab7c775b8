//! One call: a fresh store, an instance in it, one exported function, and the store is gone.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use wasmtime::Store;

use crate::model::{Failure, delivery::Usage};

use super::{
    Attempt, Finished, Limits,
    bindings::types::{TaskError, TaskSpec},
    control::{Control, Stop},
    egress::Counts,
    journal::Journal,
    module::Module,
    outcome,
    state::{Env, State, look_up},
    tape::Tape,
};

/// Serves one attempt on the thread that polls it, within `limits`. Returns why it must stop where that is no outcome of
/// the attempt.
pub(super) async fn run(env: Arc<Env>, module: Module, attempt: Attempt, limits: Limits) -> Finished {
    let began = Instant::now();
    let Attempt { info, input, grant, progress, cancel, answers, .. } = attempt;
    let tape = Tape::new(answers);
    let control = Arc::clone(cancel.control());
    let state = State::serving(env, Arc::clone(&control), &limits, info, progress, (grant, tape.clone()));
    let mut store = store(&module, state, &limits);
    let called = guarded(&control, call_run(&module, &mut store, input.as_str())).await;
    // What a guest that was cut short has spent stands in its registers, and is lost with them.
    let returned = matches!(called, Some(Ok(_)));
    let instructions = store.get_fuel().ok().filter(|_| returned).map(|left| u64::MAX - left);
    let state = store.into_data();
    let Counts { requests, sent_bytes, received_bytes } = state.end_sending();

    let output_bytes = if let Some(Ok(Ok(output))) = &called { output.len() } else { 0 };
    let outcome = match called {
        Some(Ok(Ok(output))) => outcome::of_output(output, limits.output_bytes),
        Some(Ok(Err(error))) => Err(outcome::of_task_error(error, limits.output_bytes)),
        Some(Err(error)) => Err(outcome::of_error(&error, control.stopped(), state.limiter.refused(), &limits)),
        None => Err(outcome::of_stop(control.stopped().unwrap_or(Stop::Cancelled), &limits)),
    };
    let (logs, log_lines_left_out) = state.journal.as_ref().map(Journal::finish).unwrap_or_default();
    let (recording, unrecorded) = tape.end();
    Finished {
        outcome,
        usage: Usage {
            cpu_ms: control.meter.spent_ns().div_ceil(1_000_000),
            wall_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            memory_peak_bytes: state.limiter.peak_bytes() as u64,
            input_bytes: input.size_bytes() as u64,
            output_bytes: output_bytes as u64,
            egress_requests: requests,
            egress_sent_bytes: sent_bytes,
            egress_received_bytes: received_bytes,
        },
        logs,
        log_lines_left_out,
        progress: state.reported,
        recording,
        instructions,
        unrecorded,
    }
}

/// Asks a module for its tasks, outside any attempt.
pub(super) async fn describe(
    env: Arc<Env>,
    control: Arc<Control>,
    module: Module,
    limits: Limits,
) -> Result<Vec<TaskSpec>, Failure> {
    let state = State::describing(env, Arc::clone(&control), &limits);
    let mut store = store(&module, state, &limits);
    let called = guarded(&control, call_describe(&module, &mut store)).await;
    let refused = store.data().limiter.refused();
    match called {
        Some(Ok(tasks)) => Ok(tasks),
        Some(Err(error)) => Err(outcome::of_error(&error, control.stopped(), refused, &limits)),
        None => Err(outcome::of_stop(control.stopped().unwrap_or(Stop::Cancelled), &limits)),
    }
}

/// Makes a store with all its limits. They hold before there is an instance, because instantiating runs guest code.
fn store(module: &Module, state: State, limits: &Limits) -> Store<State> {
    let mut store = Store::new(module.engine(), state);
    store.limiter(|state| &mut state.limiter);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(look_up);
    if store.data().env.count_instructions {
        store.set_fuel(u64::MAX).expect("the engine was made to count");
    }
    store.set_hostcall_fuel(limits.hostcall_bytes);
    store.set_max_component_handles(limits.handles);
    store
}

async fn call_run(
    module: &Module,
    store: &mut Store<State>,
    input: &str,
) -> wasmtime::Result<Result<String, TaskError>> {
    let task = store.data().info.as_ref().map(|info| info.task.clone());
    let task = task.as_ref().map_or("", |task| task.as_str());
    let instance = module.pre().instantiate_async(&mut *store).await?;
    let run =
        instance.get_typed_func::<(&str, &str), (Result<String, TaskError>,)>(&mut *store, module.run_export())?;
    let (result,) = run.call_async(&mut *store, (task, input)).await?;
    Ok(result)
}

async fn call_describe(module: &Module, store: &mut Store<State>) -> wasmtime::Result<Vec<TaskSpec>> {
    let instance = module.pre().instantiate_async(&mut *store).await?;
    let describe = instance.get_typed_func::<(), (Vec<TaskSpec>,)>(&mut *store, module.describe_export())?;
    let (tasks,) = describe.call_async(&mut *store, ()).await?;
    Ok(tasks)
}

/// Runs `call` until it ends or must stop; then nothing is returned and the call is dropped where it stands. Its
/// processor time goes to the meter.
async fn guarded<T>(control: &Control, call: impl Future<Output = T>) -> Option<T> {
    Guarded { control, call: pin!(call) }.await
}

struct Guarded<'a, F> {
    control: &'a Control,
    call: Pin<&'a mut F>,
}

impl<F: Future> Future for Guarded<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.control.register(context.waker());
        if self.control.stopped().is_some() {
            return Poll::Ready(None);
        }
        self.control.meter.begin();
        let polled = self.call.as_mut().poll(context);
        self.control.meter.end();
        polled.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::mpsc};

    use super::*;
    use crate::{
        model::{Millis, TenantId},
        sandbox::{ticker::Ticker, turns::Turns},
    };

    #[test]
    fn a_call_that_waits_for_the_host_ends_when_it_must_stop() {
        let ticker = Ticker::start(wasmtime::Engine::default(), Millis(1)).unwrap();
        let turns = Turns::start(1, Arc::clone(&ticker)).unwrap();
        for wall in [Millis(20), Millis(u64::MAX)] {
            let control = Arc::new(Control::default());
            let watched = ticker.watch(&control, wall);
            let (tell, told) = mpsc::channel();
            let waiting = Arc::clone(&control);
            turns.spawn(TenantId::default_tenant(), async move {
                tell.send(guarded(&waiting, pending::<()>()).await).unwrap();
            });
            if wall == Millis(u64::MAX) {
                control.stop(Stop::Cancelled);
            }
            assert_eq!(told.recv().unwrap(), None, "C057");
            drop(watched);
        }
        turns.close();
        ticker.close();
    }
}
