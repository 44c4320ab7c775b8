//! `format(text, list)`: `%s` anything, `%d` integers, `%f` and `%e` numbers, `%x`, `%X`, `%o`, `%b` integers in other
//! bases, `%%` a per cent sign. `%.2f` sets the digits after the point; there are no widths.

use super::{Outcome, take_list, take_text};
use crate::workflow::expression::budget::Budget;
use crate::workflow::expression::number::Number;
use crate::workflow::expression::problem::Fault;
use crate::workflow::expression::value::Value;
use crate::workflow::expression::write;

/// Most digits after the point.
const MAX_PRECISION: usize = 100;
/// Digits after the point unless said otherwise.
const PRECISION: usize = 6;

pub(super) fn format(arguments: &[Value], budget: &mut Budget) -> Outcome {
    let text = take_text(&arguments[0], "format")?;
    let mut values = take_list(&arguments[1], "format")?.iter();
    budget.scan(text.len())?;
    budget.make(text.len())?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let (verb, precision, after) = take_verb(after)?;
        rest = after;
        if verb == '%' {
            out.push('%');
            continue;
        }
        let value = values.next().ok_or_else(|| Fault::failed("format() has more verbs than values"))?;
        write_verb(&mut out, verb, precision, value, budget)?;
    }
    out.push_str(rest);
    if values.next().is_some() {
        return Err(Fault::failed("format() has more values than verbs"));
    }
    Ok(Value::Text(out.into()))
}

/// Takes what follows a per cent sign: an optional precision and a letter.
fn take_verb(text: &str) -> Result<(char, Option<usize>, &str), Fault> {
    let (precision, text) = match text.strip_prefix('.') {
        Some(digits) => {
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let precision = digits[..end].parse().ok().filter(|precision| *precision <= MAX_PRECISION);
            let refused = || Fault::failed(format!("format() takes a precision of 0 to {MAX_PRECISION} digits"));
            (Some(precision.ok_or_else(refused)?), &digits[end..])
        }
        None => (None, text),
    };
    let verb = text.chars().next().ok_or_else(|| Fault::failed("format() ends in a single `%`; write `%%`"))?;
    Ok((verb, precision, &text[verb.len_utf8()..]))
}

fn write_verb(
    out: &mut String,
    verb: char,
    precision: Option<usize>,
    value: &Value,
    budget: &mut Budget,
) -> Result<(), Fault> {
    budget.steps(1)?;
    if verb == 's' {
        let text = write::plain_text(value, budget)?;
        budget.make(text.len())?;
        out.push_str(&text);
        return Ok(());
    }
    let number = Number::of(value).ok_or_else(|| refused(verb, value))?;
    // A number takes 420 bytes at most, so that it may be made before it is charged.
    let text = number_text(verb, precision.unwrap_or(PRECISION), number).ok_or_else(|| refused(verb, value))?;
    budget.make(text.len())?;
    out.push_str(&text);
    Ok(())
}

fn number_text(verb: char, precision: usize, number: Number) -> Option<String> {
    Some(match (verb, number) {
        ('d', Number::Whole(whole, _)) => whole.to_string(),
        ('x', Number::Whole(whole, _)) => format!("{}{:x}", sign(whole), whole.unsigned_abs()),
        ('X', Number::Whole(whole, _)) => format!("{}{:X}", sign(whole), whole.unsigned_abs()),
        ('o', Number::Whole(whole, _)) => format!("{}{:o}", sign(whole), whole.unsigned_abs()),
        ('b', Number::Whole(whole, _)) => format!("{}{:b}", sign(whole), whole.unsigned_abs()),
        ('f', number) => format!("{:.precision$}", number.to_double()),
        ('e', number) => exponential(number.to_double(), precision),
        _ => return None,
    })
}

/// `1.5e+03`, with a sign and two digits of exponent at least, as C and CEL write it.
fn exponential(double: f64, precision: usize) -> String {
    let text = format!("{double:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

fn sign(whole: i128) -> &'static str {
    if whole < 0 { "-" } else { "" }
}

fn refused(verb: char, value: &Value) -> Fault {
    match verb {
        'd' | 'x' | 'X' | 'o' | 'b' => {
            Fault::failed(format!("format(): `%{verb}` takes an integer, not {}", value.kind()))
        }
        'f' | 'e' => Fault::failed(format!("format(): `%{verb}` takes a number, not {}", value.kind())),
        _ => Fault::failed(format!("format() has no verb `%{verb}`; use %s %d %f %e %x %X %o %b or %%")),
    }
}
