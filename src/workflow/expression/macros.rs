//! Recognises the macros, which the parser of the `cel` crate has already expanded into folds.
//!
//! Each macro has a fold of its own shape, so that it is known again by the start value and the step of the fold. Kept
//! as macros, the loops need no accumulator that a budget would have to follow.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};

use super::lower::{Lowering, Refusal, unsupported};
use super::tree::{Loop, LoopKind, Node};

/// The parts of a fold that an author wrote.
struct Parts<'e> {
    kind: LoopKind,
    filter: Option<&'e Expr>,
    body: &'e Expr,
}

impl Lowering<'_> {
    /// Lowers `all`, `exists`, `exists_one`, `map` or `filter`.
    pub(super) fn comprehension(&mut self, fold: &ComprehensionExpr) -> Result<Node, Refusal> {
        let parts = recognise(fold).ok_or_else(|| unsupported("this macro"))?;
        let range = self.node(&fold.iter_range.expr)?;
        let (place, (filter, body)) = self.with_local(&fold.iter_var, |lowering| {
            let filter = parts.filter.map(|filter| lowering.node(filter)).transpose()?;
            Ok((filter, lowering.node(parts.body)?))
        })?;
        Ok(Node::Loop(Box::new(Loop { kind: parts.kind, place, range, filter, body })))
    }
}

fn recognise(fold: &ComprehensionExpr) -> Option<Parts<'_>> {
    if fold.iter_var2.is_some() {
        return None;
    }
    let Expr::Call(step) = &fold.loop_step.expr else { return None };
    match &fold.accu_init.expr {
        Expr::Literal(LiteralValue::Boolean(start)) => {
            let (kind, name) = if **start {
                (LoopKind::All, operators::LOGICAL_AND)
            } else {
                (LoopKind::Exists, operators::LOGICAL_OR)
            };
            let [_, body] = arguments(step, name)?;
            Some(Parts { kind, filter: None, body: &body.expr })
        }
        Expr::Literal(LiteralValue::Int(_)) => {
            let [body, _, _] = arguments(step, operators::CONDITIONAL)?;
            Some(Parts { kind: LoopKind::ExistsOne, filter: None, body: &body.expr })
        }
        Expr::List(_) => collect(step),
        _ => None,
    }
}

/// `map` and `filter`: a list that grows by one element, under a condition or always.
fn collect(step: &CallExpr) -> Option<Parts<'_>> {
    let (filter, add) = match arguments::<3>(step, operators::CONDITIONAL) {
        Some([filter, add, _]) => {
            let Expr::Call(add) = &add.expr else { return None };
            (Some(&filter.expr), add)
        }
        None => (None, step),
    };
    let [_, element] = arguments(add, operators::ADD)?;
    let Expr::List(ListExpr { elements, .. }) = &element.expr else { return None };
    let [body] = elements.as_slice() else { return None };
    Some(Parts { kind: LoopKind::Collect, filter, body: &body.expr })
}

fn arguments<'e, const N: usize>(call: &'e CallExpr, name: &str) -> Option<&'e [IdedExpr; N]> {
    if call.func_name == name { call.args.as_slice().try_into().ok() } else { None }
}
