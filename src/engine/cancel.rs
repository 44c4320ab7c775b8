//! Command `Cancel`.

use super::{command::Refusal, decision::Answer, turn::Turn};
use crate::model::{Status, event::CancelRequested};

/// Winds the run down. Of a cancelled one, or one that winds down already, it is done.
pub(super) fn decide(turn: &mut Turn<'_>, reason: String) -> Result<Answer, Refusal> {
    if turn.execution.created.is_none() {
        return Err(Refusal::NotFound);
    }
    match turn.execution.status {
        Status::Cancelled => Ok(Answer::Done),
        status if status.is_terminal() => Err(Refusal::Closed(status.as_str())),
        _ => {
            if !turn.execution.cancel_requested {
                turn.record(CancelRequested { reason });
            }
            Ok(Answer::Done)
        }
    }
}
