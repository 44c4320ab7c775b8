//! Dispatch: hands ready units to whoever can take them.
//!
//! Ready units are rows; in memory there is a bounded window per class, and what is handed out. Taking is one routine for
//! native workers and the sandbox: match, then turns over tenants, then priority with ageing, then age. Nothing here is
//! written: a delivery is named by its token, and what is lost with the process is found again in the rows.
//!
//! - [`Dispatcher`]: ready windows, sessions, and what is out, behind one lock that is never held across a wait
//! - `taking`: the one routine; `polls`: who waits and is woken; `session`: who registered; `refill`: rows into windows
//! - [`Token`](token): names a delivery on the wire
//! - `run`: serves units in the sandbox; `watch`: time-outs of deliveries and sessions

mod dispatcher;
mod polls;
mod refill;
pub(super) mod run;
pub(super) mod session;
mod taking;
pub(super) mod token;
pub(super) mod watch;
mod window;

#[cfg(test)]
mod tests;

pub(super) use dispatcher::{Dispatcher, GivenBack, Held, Holder, Taken};
