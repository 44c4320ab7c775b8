//! `core.echo`.

use sandkeep_sdk::TaskError;
use serde_json::value::RawValue;

/// Returns its input byte by byte: neither the order of keys nor the digits of a number change.
pub fn echo(input: Box<RawValue>) -> Result<Box<RawValue>, TaskError> {
    Ok(input)
}

#[cfg(test)]
mod tests {
    use sandkeep_sdk::run;

    use crate::TASKS;

    #[test]
    fn echo_changes_nothing() {
        for input in [r#"{"b":1.50,"a":[9223372036854775807,1e400,"\u0000"]}"#, "null", "-0.0", r#""""#] {
            assert_eq!(run(TASKS, "core.echo", input).as_deref(), Ok(input));
        }
    }
}
