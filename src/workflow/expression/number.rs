//! JSON's numbers: integers exact, a fraction promotes, and nothing wraps, rounds silently or becomes infinite.

use std::cmp::Ordering;

use super::problem::Fault;
use super::tree::Operator;
use super::value::Value;

/// A number, integers widened so that `int` and `uint` meet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    /// An `int`, or a `uint` when the flag is set.
    Whole(i128, bool),
    Double(f64),
}

impl Number {
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(int) => Some(Self::Whole(i128::from(*int), false)),
            Value::Uint(uint) => Some(Self::Whole(i128::from(*uint), true)),
            Value::Double(double) => Some(Self::Double(*double)),
            _ => None,
        }
    }

    /// Returns the number as a double, rounded where it must be.
    pub(super) fn to_double(self) -> f64 {
        match self {
            Self::Whole(whole, _) => whole as f64,
            Self::Double(double) => double,
        }
    }

    /// Compares by value, exact at any size.
    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(left, _), Self::Whole(right, _)) => left.cmp(&right),
            (Self::Whole(left, _), Self::Double(right)) => compare_whole(left, right),
            (Self::Double(left), Self::Whole(right, _)) => compare_whole(right, left).reverse(),
            // Doubles are finite, so that this always holds.
            (Self::Double(left), Self::Double(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
        }
    }
}

/// Compares an integer in the range of `i64` and `u64` with a double without rounding the integer.
fn compare_whole(whole: i128, double: f64) -> Ordering {
    // The cast drops the fraction and saturates far outside the range of `whole`.
    whole.cmp(&(double as i128)).then_with(|| 0.0.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal))
}

/// Applies one of `+ - * / %` to two numbers.
pub(super) fn arithmetic(operator: Operator, left: Number, right: Number) -> Result<Value, Fault> {
    if let (Number::Whole(left, left_unsigned), Number::Whole(right, right_unsigned)) = (left, right) {
        let result = whole(operator, left, right)?;
        return narrow(result, left_unsigned && right_unsigned)
            .ok_or_else(|| Fault::failed(format!("integer overflow in {left} {} {right}", operator.symbol())));
    }
    double(operator, left.to_double(), right.to_double())
}

fn whole(operator: Operator, left: i128, right: i128) -> Result<i128, Fault> {
    // Operands are at most 64 bits wide, so that nothing overflows here but what `narrow` then refuses.
    match operator {
        Operator::Add => Ok(left + right),
        Operator::Subtract => Ok(left - right),
        Operator::Multiply => Ok(left.saturating_mul(right)),
        Operator::Divide => left.checked_div(right).ok_or_else(|| Fault::failed("division by zero")),
        Operator::Remainder => left.checked_rem(right).ok_or_else(|| Fault::failed("modulo by zero")),
        _ => Err(Fault::failed(format!("`{}` is not arithmetic", operator.symbol()))),
    }
}

fn double(operator: Operator, left: f64, right: f64) -> Result<Value, Fault> {
    let result = match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide if right == 0.0 => return Err(Fault::failed("division by zero")),
        Operator::Divide => left / right,
        Operator::Remainder if right == 0.0 => return Err(Fault::failed("modulo by zero")),
        Operator::Remainder => left % right,
        _ => return Err(Fault::failed(format!("`{}` is not arithmetic", operator.symbol()))),
    };
    finite(result)
}

/// A double as a value; infinities and not-a-number are errors.
pub(super) fn finite(double: f64) -> Result<Value, Fault> {
    if double.is_finite() { Ok(Value::Double(double)) } else { Err(Fault::failed("the result is not a finite number")) }
}

/// Negates a number.
pub(super) fn negate(number: Number) -> Result<Value, Fault> {
    match number {
        Number::Double(double) => Ok(Value::Double(-double)),
        Number::Whole(whole, _) => {
            narrow(-whole, false).ok_or_else(|| Fault::failed(format!("integer overflow in -({whole})")))
        }
    }
}

fn narrow(whole: i128, unsigned: bool) -> Option<Value> {
    if unsigned { u64::try_from(whole).ok().map(Value::Uint) } else { i64::try_from(whole).ok().map(Value::Int) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPERATORS: [Operator; 5] =
        [Operator::Add, Operator::Subtract, Operator::Multiply, Operator::Divide, Operator::Remainder];

    /// Integers near the edges as often as anywhere.
    fn integer() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -3_i64..4, Just(i64::MIN), Just(i64::MAX), Just(1 << 53), Just((1 << 53) + 1)]
    }

    fn oracle(operator: Operator, left: i64, right: i64) -> Option<i64> {
        let (left, right) = (i128::from(left), i128::from(right));
        let result = match operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            _ if right == 0 => return None,
            Operator::Divide => left / right,
            _ => left % right,
        };
        i64::try_from(result).ok()
    }

    proptest! {
        #[test]
        fn integers_agree_with_wide_arithmetic(left in integer(), right in integer()) {
            for operator in OPERATORS {
                let result = arithmetic(operator, Number::Whole(left.into(), false), Number::Whole(right.into(), false));
                let result = result.ok().map(|value| match value { Value::Int(int) => int, other => panic!("{other:?}") });
                prop_assert_eq!(result, oracle(operator, left, right), "{} {} {}", left, operator.symbol(), right);
            }
        }

        #[test]
        fn doubles_stay_finite(left in any::<f64>(), right in any::<f64>()) {
            prop_assume!(left.is_finite() && right.is_finite());
            for operator in OPERATORS {
                if let Ok(Value::Double(result)) = arithmetic(operator, Number::Double(left), Number::Double(right)) {
                    prop_assert!(result.is_finite());
                }
            }
        }

        #[test]
        fn whole_doubles_compare_as_integers(left in integer(), right in -(1_i64 << 53)..(1 << 53)) {
            let mixed = Number::Whole(left.into(), false).compare(Number::Double(right as f64));
            prop_assert_eq!(mixed, left.cmp(&right));
        }
    }

    #[test]
    fn comparison_is_exact_above_two_to_the_53() {
        let double = Number::Double(9_007_199_254_740_992.0);
        assert_eq!(Number::Whole(9_007_199_254_740_993, false).compare(double), Ordering::Greater);
        assert_eq!(Number::Whole(9_007_199_254_740_992, false).compare(double), Ordering::Equal);
        assert_eq!(Number::Whole(i64::MAX.into(), false).compare(Number::Double(9.3e18)), Ordering::Less);
        assert_eq!(Number::Whole(-1, false).compare(Number::Double(-1.5)), Ordering::Greater);
        assert_eq!(Number::Whole(0, false).compare(Number::Double(1e308)), Ordering::Less);
        assert_eq!(Number::Whole(0, false).compare(Number::Double(-0.5)), Ordering::Greater);
    }
}
