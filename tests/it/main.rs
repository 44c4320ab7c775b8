//! The server as its users meet it: a real process on a free port, a real database, real modules, real workers.
//!
//! Times are lowered by settings; nothing here sleeps to let something happen, it asks until it has.
//! `SANDKEEP_SOAK=1` runs counts and times as the cases state them.

mod api;
mod authoring;
mod cli;
mod commits;
mod compile;
mod docs;
mod egress;
mod examples;
mod full;
mod hostile;
mod kill;
mod recovery;
mod replay;
mod rooms;
mod samples;
mod sandbox;
mod shutdown;
mod support;
mod workers;
