//! The pure decider: what happens next. Reads nothing but its arguments.
//!
//! - [`decide`]: one command on one execution; refuses before it changes anything, else passes each event it makes
//!   through the fold at once, so that consequences need no copy
//! - [`Command`], [`Refusal`], [`Decision`], [`Effect`]: what is asked, why not, what follows
//! - [`query`] and [`waiting_for`]: what a state can be asked without changing it
//! - [`rows_of`]: the rows that a state must have; the sweep compares them with those that are there
//!
//! Absent on purpose: clocks, randomness, stores, errors of input or output. One file per command.

mod cancel;
mod command;
mod complete;
mod decision;
mod evaluate;
mod progress;
mod query;
mod repin;
mod report;
mod resolve;
mod retry;
mod rows;
mod signal;
mod start;
mod timer_due;
mod turn;
mod waiting_for;
mod wind_down;

#[cfg(test)]
mod tests;

pub use command::{Checked, Command, Lost, Refusal, Repin, RepinTo, Report, Signal, Start};
pub use complete::check_result;
pub use decision::{Answer, Decision, Effect};
pub use query::{QueryError, query};
pub use rows::{rows_of, stopping};
pub use waiting_for::waiting_for;

use crate::{
    model::{Execution, Facts, Timestamp},
    workflow::Definition,
};
use turn::Turn;

/// Decides what happens next. Reads nothing but its arguments.
///
/// On a refusal the execution is unchanged. `now` is raised to the execution's last event where it is before it.
pub fn decide(
    execution: &mut Execution,
    definition: &Definition,
    command: Command,
    facts: &Facts,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    // What was checked ends the run at the time at which it was evaluated.
    let now = if let Command::Checked(checked) = &command { checked.at } else { now }.max(execution.updated_at);
    let mut turn = Turn::new(execution, definition, facts, now);
    let answer = match command {
        Command::Start(start) => start::decide(&mut turn, start)?,
        Command::Continue => Answer::Done,
        Command::Checked(checked) => complete::decide(&mut turn, checked)?,
        Command::TimerDue(timer) => timer_due::decide(&mut turn, &timer)?,
        Command::Report(report) => report::decide_report(&mut turn, report)?,
        Command::Lost(lost) => report::decide_lost(&mut turn, lost)?,
        Command::Stopped { unit, attempt } => report::decide_stopped(&mut turn, &unit, attempt)?,
        Command::Signal(signal) => signal::decide(&mut turn, signal)?,
        Command::Repin(repin) => repin::decide(&mut turn, &repin)?,
        Command::Cancel { reason } => cancel::decide(&mut turn, reason)?,
    };
    progress::advance(&mut turn);
    Ok(turn.finish(answer))
}
