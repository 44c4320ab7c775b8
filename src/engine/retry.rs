//! Whether and when a failed attempt is followed by another.

use crate::{
    model::{Failure, Millis, RunKey, Timestamp, UnitKey, code},
    workflow::Retry,
};

/// Where a unit stands when its attempt fails.
pub(super) struct Standing {
    /// The attempt that failed, from 1.
    pub(super) attempt: u32,
    /// How often the unit trapped, this time included.
    pub(super) traps: u32,
}

/// Returns whether another attempt follows.
pub(super) fn follows(policy: &Retry, failure: &Failure, standing: &Standing) -> bool {
    let remain = policy.max_attempts == 0 || standing.attempt < policy.max_attempts;
    if !remain || policy.non_retryable.contains(&failure.code) {
        return false;
    }
    if policy.retryable.contains(&failure.code) {
        return true;
    }
    match code::retried(failure) {
        code::Retried::Yes => true,
        code::Retried::Once => standing.traps <= 1,
        code::Retried::No => false,
    }
}

/// Returns when the attempt after `attempt` is due.
///
/// The delay is `initial × factor^(attempt − 1)`, at most `max`, less a share of up to `jitter` drawn by hash; a task's
/// `retry_after_ms` replaces it. It is never past `total`, the end of the unit's time.
pub(super) fn due_at(
    policy: &Retry,
    failure: &Failure,
    attempt: u32,
    unit: (&RunKey, &UnitKey),
    now: Timestamp,
    total: Option<Timestamp>,
) -> Timestamp {
    let delay = match failure.retry_after_ms {
        Some(after) => Millis(after),
        None => jittered(base_delay(policy, attempt), policy.jitter, draw(unit.0, unit.1, attempt)),
    };
    let due = now.after(delay);
    total.map_or(due, |end| due.min(end).max(now))
}

/// The delay before jitter; it never falls from one attempt to the next and never passes the cap.
fn base_delay(policy: &Retry, attempt: u32) -> Millis {
    let exponent = f64::from(attempt.saturating_sub(1));
    // Infinity where the power overflows; the comparison with the cap comes before any conversion.
    let delay = millis_f64(policy.initial) * policy.factor.powf(exponent);
    if delay < millis_f64(policy.max) { to_millis(delay) } else { policy.max }
}

fn jittered(delay: Millis, share: f64, draw: f64) -> Millis {
    to_millis(millis_f64(delay) * (1.0 - share.clamp(0.0, 1.0) * draw))
}

/// Spans are below 2^53 ms, so that a double holds them exactly.
#[expect(clippy::cast_precision_loss, reason = "a span of a document is below 2^53 ms")]
fn millis_f64(span: Millis) -> f64 {
    span.0 as f64
}

/// A cast from a float saturates: it neither wraps nor panics.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, which is what is wanted"
)]
fn to_millis(delay: f64) -> Millis {
    Millis(delay.round() as u64)
}

/// A number from 0 to below 1 that depends on nothing but the names: the decider stays pure.
fn draw(run: &RunKey, unit: &UnitKey, attempt: u32) -> f64 {
    use sha2::Digest as _;
    let name = format!("{}/{}/{}/{unit}/{attempt}", run.tenant, run.execution, run.run);
    let digest = sha2::Sha256::digest(name.as_bytes());
    let bits = digest.iter().take(4).fold(0u32, |bits, byte| (bits << 8) | u32::from(*byte));
    f64::from(bits) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ExecutionId, TenantId};
    use proptest::prelude::*;

    fn policy() -> Retry {
        Retry { max_attempts: 0, ..Retry::default() }
    }

    #[test]
    fn delays_never_fall_and_never_pass_the_cap() {
        for factor in [1.0, 2.0, 1e308] {
            let policy = Retry { factor, ..policy() };
            let mut before = Millis(0);
            for attempt in [1, 22, 32, 54, 64, 1100, u32::MAX] {
                let delay = base_delay(&policy, attempt);
                assert!(delay >= before && delay <= policy.max && delay >= policy.initial, "C006 {attempt} {delay}");
                before = delay;
            }
        }
    }

    #[test]
    fn the_table_decides_unless_the_policy_names_the_code() {
        let named = |retryable: &[&str], non_retryable: &[&str]| Retry {
            retryable: retryable.iter().map(|code| code::Code::new(code).unwrap()).collect(),
            non_retryable: non_retryable.iter().map(|code| code::Code::new(code).unwrap()).collect(),
            ..Retry::default()
        };
        let task = |retryable| Failure::task(code::Code::new("BUSY").unwrap(), "", retryable);
        let rows: [(&Retry, Failure, u32, u32, bool); 10] = [
            (&named(&[], &[]), task(true), 1, 0, true),
            (&named(&[], &[]), task(true), 3, 0, false),
            (&named(&[], &[]), task(false), 1, 0, false),
            (&named(&["BUSY"], &[]), task(false), 1, 0, true),
            (&named(&["BUSY"], &["BUSY"]), task(true), 1, 0, false),
            (&named(&[], &[]), Failure::sandbox(code::TRAP, ""), 1, 1, true),
            (&named(&[], &[]), Failure::sandbox(code::TRAP, ""), 2, 2, false),
            (&named(&[], &[]), Failure::sandbox(code::CPU_LIMIT, ""), 1, 0, false),
            (&named(&["CPU_LIMIT"], &[]), Failure::sandbox(code::CPU_LIMIT, ""), 1, 0, true),
            (&policy(), Failure::engine(code::TIMEOUT, ""), 4_000_000_000, 0, true),
        ];
        for (policy, failure, attempt, traps, expected) in rows {
            assert_eq!(follows(policy, &failure, &Standing { attempt, traps }), expected, "{failure:?} {attempt}");
        }
    }

    proptest! {
        #[test]
        fn a_due_time_is_between_now_and_the_end(
            attempt in any::<u32>(), factor in 1.0f64..1e300, initial in 1u64..100_000_000_000, max in 1u64..100_000_000_000,
            jitter in 0.0f64..=1.0, after in proptest::option::of(any::<u64>()), total in proptest::option::of(0i64..1_000_000),
        ) {
            let policy = Retry { factor, initial: Millis(initial), max: Millis(max), jitter, ..policy() };
            let mut failure = Failure::engine(code::TIMEOUT, "");
            failure.retry_after_ms = after;
            let run = RunKey { tenant: TenantId::default_tenant(), execution: ExecutionId::new("e").unwrap(), run: 1 };
            let now = Timestamp(1_000);
            let due = due_at(&policy, &failure, attempt, (&run, &UnitKey::new("u").unwrap()), now, total.map(Timestamp));
            prop_assert!(due >= now);
            if let Some(total) = total { prop_assert!(due <= Timestamp(total).max(now)); }
            if after.is_none() { prop_assert!(due <= now.after(Millis(max))); }
        }
    }
}
