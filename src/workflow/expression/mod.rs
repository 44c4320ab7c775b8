//! Expressions and templates: how a step reads the input, other steps and the time.
//!
//! - [`Template`]: any JSON with `${ … }` in its texts; renders to compact JSON text.
//! - [`Expression`]: one CEL expression, for conditions and lists.
//! - [`Scope`], [`Operand`]: what the caller lets an expression read, as raw JSON that is parsed where it is read.
//! - [`Budget`]: steps and bytes that one evaluation may spend.
//! - [`Problem`] and [`Error`]: what is wrong with a text, and what went wrong in an evaluation.
//!
//! The text is parsed by the `cel` crate, whose grammar is CEL's; its tree is lowered once into `tree`, and
//! evaluated here. The crate's own interpreter is not used for two reasons. It has no budget: three nested `map` over
//! 1,000 elements run for minutes and `replace` doubles a text until memory ends, and a lane of the engine would stand
//! still for it. And its arithmetic is CEL's, not JSON's: `3 * 1.5` is refused there. Its parser is recursive as well,
//! so `guard` measures a text before the parser sees it.
//!
//! Absent on purpose: clocks, randomness and time-zone names, so that a replay repeats every value; user-defined
//! functions and `let`, so that a value can never be as deep as an author likes.

mod budget;
mod build;
mod evaluate;
mod functions;
mod guard;
mod holes;
mod lower;
mod macros;
mod number;
mod order;
mod parse;
mod paths;
mod problem;
mod read;
mod references;
mod scope;
mod template;
mod time;
mod tree;
mod value;
mod words;
mod write;

pub use budget::Budget;
pub use parse::Expression;
pub use problem::{Error, Problem};
pub use references::{References, StepField};
pub use scope::{Operand, Scope};
pub use template::Template;
pub use words::{is_cel_word, is_reserved_name};

#[cfg(test)]
mod tests;
