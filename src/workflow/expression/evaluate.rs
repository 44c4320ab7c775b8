//! The evaluator: walks the lowered tree, charging a step for each node.
//!
//! Its recursion is bounded by the depth of the tree, which [`super::lower`] bounds.

use std::sync::Arc;

use super::budget::{Budget, PLACE_BYTES};
use super::functions;
use super::number::{self, Number};
use super::order;
use super::paths::Slot;
use super::problem::Fault;
use super::references::Source;
use super::scope::Scope;
use super::time;
use super::tree::{self, Loop, LoopKind, Node, Operator};
use super::value::{Key, Map, Value};

/// The evaluation of one template: what was read so far, the variables in scope, and the budget.
pub(super) struct Session<'a> {
    pub scope: &'a dyn Scope,
    pub sources: &'a [Source],
    pub slots: Vec<Slot<'a>>,
    locals: Vec<Value>,
    pub budget: &'a mut Budget,
}

impl<'a> Session<'a> {
    pub(super) fn new(scope: &'a dyn Scope, sources: &'a [Source], budget: &'a mut Budget) -> Self {
        let slots = std::iter::repeat_with(|| Slot::Unread).take(sources.len()).collect();
        Self { scope, sources, slots, locals: Vec::new(), budget }
    }

    /// Evaluates a node.
    pub(super) fn evaluate(&mut self, node: &Node) -> Result<Value, Fault> {
        self.budget.steps(1)?;
        match node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Local(local) => Ok(self.locals[local.place].clone()),
            Node::Read(read) => self.read(read),
            Node::Member(operand, field) => self.member(node, operand, field),
            Node::Index(sides) => self.index(sides),
            Node::Has(path) => Ok(Value::Bool(self.unless_missing(path)?.is_some())),
            Node::Not(operand) => Ok(Value::Bool(!self.condition(operand, "`!`")?)),
            Node::Negate(operand) => self.negate(operand),
            Node::And(sides) => self.decide(sides, false, "`&&`"),
            Node::Or(sides) => self.decide(sides, true, "`||`"),
            Node::Choose(parts) => {
                let holds = self.condition(&parts[0], "`? :`")?;
                self.evaluate(&parts[if holds { 1 } else { 2 }])
            }
            Node::Binary(operator, sides) => self.binary(*operator, sides),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Loop(repeat) => self.repeat(repeat),
            Node::Call(function, arguments) => self.call(function, arguments),
            Node::Get(parts) => self.get(parts),
            Node::Coalesce(choices) => self.coalesce(choices),
            Node::Matches(text, pattern) => {
                let text = self.evaluate(text)?;
                pattern.matches(&text, self.budget)
            }
        }
    }

    /// Evaluates a node that must be a bool.
    pub(super) fn condition(&mut self, node: &Node, what: &str) -> Result<bool, Fault> {
        match self.evaluate(node)? {
            Value::Bool(flag) => Ok(flag),
            other => Err(Fault::failed(format!("{what} takes a bool, not {}", other.kind()))),
        }
    }

    /// Evaluates a node, taking a path that leads nowhere and null alike.
    fn unless_missing(&mut self, node: &Node) -> Result<Option<Value>, Fault> {
        match self.evaluate(node) {
            Ok(Value::Null) | Err(Fault::Missing(_)) => Ok(None),
            Ok(value) => Ok(Some(value)),
            Err(fault) => Err(fault),
        }
    }

    fn get(&mut self, parts: &[Node; 3]) -> Result<Value, Fault> {
        let value = match self.unless_missing(&parts[0])? {
            Some(value) => {
                let path = self.evaluate(&parts[1])?;
                functions::get_path(&value, &path, self.budget)?
            }
            None => None,
        };
        value.map_or_else(|| self.evaluate(&parts[2]), Ok)
    }

    fn coalesce(&mut self, choices: &[Node]) -> Result<Value, Fault> {
        for choice in choices {
            if let Some(value) = self.unless_missing(choice)? {
                return Ok(value);
            }
        }
        Ok(Value::Null)
    }

    fn call(&mut self, function: &functions::Function, arguments: &[Node]) -> Result<Value, Fault> {
        let values = arguments.iter().map(|argument| self.evaluate(argument)).collect::<Result<Vec<_>, _>>()?;
        function.call(&values, self.budget)
    }

    fn negate(&mut self, operand: &Node) -> Result<Value, Fault> {
        let value = self.evaluate(operand)?;
        if let Value::Duration(duration) = value {
            return time::add_durations(jiff::SignedDuration::ZERO, -duration).map(Value::Duration);
        }
        let number = Number::of(&value).ok_or_else(|| Fault::failed(format!("`-` cannot negate {}", value.kind())))?;
        number::negate(number)
    }

    fn list(&mut self, items: &[Node]) -> Result<Value, Fault> {
        self.budget.make_places(items.len())?;
        items.iter().map(|item| self.evaluate(item)).collect::<Result<Vec<_>, _>>().map(Value::list)
    }

    fn map(&mut self, nodes: &[[Node; 2]]) -> Result<Value, Fault> {
        self.budget.make_places(2 * nodes.len())?;
        let mut entries = Vec::with_capacity(nodes.len());
        for [key, value] in nodes {
            let key = self.evaluate(key)?;
            let key = Key::of(&key).ok_or_else(|| Fault::failed(format!("a key of a map cannot be {}", key.kind())))?;
            entries.push((key, self.evaluate(value)?));
        }
        let map = Map::from_entries(entries);
        if map.len() < nodes.len() {
            return Err(Fault::failed("a map has the same key twice"));
        }
        Ok(Value::Map(Arc::new(map)))
    }
}

/// Operators.
impl Session<'_> {
    /// `&&` and `||`: the side that equals `decisive` decides, whatever the other one is.
    fn decide(&mut self, sides: &[Node; 2], decisive: bool, what: &str) -> Result<Value, Fault> {
        let first = self.condition(&sides[0], what);
        if matches!(first, Err(Fault::Spent(_))) || first == Ok(decisive) {
            return first.map(Value::Bool);
        }
        let second = self.condition(&sides[1], what);
        if matches!(second, Err(Fault::Spent(_))) || second == Ok(decisive) {
            return second.map(Value::Bool);
        }
        first.and(second).map(Value::Bool)
    }

    fn binary(&mut self, operator: Operator, sides: &[Node; 2]) -> Result<Value, Fault> {
        let left = self.evaluate(&sides[0])?;
        let right = self.evaluate(&sides[1])?;
        match operator {
            Operator::Equal => order::equal(&left, &right, self.budget).map(Value::Bool),
            Operator::NotEqual => order::equal(&left, &right, self.budget).map(|equal| Value::Bool(!equal)),
            Operator::Less => self.ordered(operator, &left, &right, std::cmp::Ordering::is_lt),
            Operator::LessOrEqual => self.ordered(operator, &left, &right, std::cmp::Ordering::is_le),
            Operator::Greater => self.ordered(operator, &left, &right, std::cmp::Ordering::is_gt),
            Operator::GreaterOrEqual => self.ordered(operator, &left, &right, std::cmp::Ordering::is_ge),
            Operator::In => functions::contains_element(&left, &right, self.budget),
            _ => functions::combine(operator, &left, &right, self.budget),
        }
    }

    fn ordered(
        &mut self,
        operator: Operator,
        left: &Value,
        right: &Value,
        test: fn(std::cmp::Ordering) -> bool,
    ) -> Result<Value, Fault> {
        let what = ["`", operator.symbol(), "`"].concat();
        order::compare(left, right, &what, self.budget).map(|order| Value::Bool(test(order)))
    }
}

/// Macros.
impl Session<'_> {
    fn repeat(&mut self, repeat: &Loop) -> Result<Value, Fault> {
        let items = self.range(&repeat.range)?;
        debug_assert_eq!(self.locals.len(), repeat.place, "variables are pushed in the order of their places");
        self.locals.push(Value::Null);
        let result = match repeat.kind {
            LoopKind::Collect => self.collect(repeat, &items),
            LoopKind::ExistsOne => self.exists_one(repeat, &items),
            LoopKind::All => self.quantify(repeat, &items, false),
            LoopKind::Exists => self.quantify(repeat, &items, true),
        };
        self.locals.truncate(repeat.place);
        result
    }

    /// The elements of a list or the keys of a map.
    fn range(&mut self, node: &Node) -> Result<Arc<Vec<Value>>, Fault> {
        match self.evaluate(node)? {
            Value::List(items) => Ok(items),
            Value::Map(map) => {
                self.budget.make_places(map.len())?;
                Ok(Arc::new(map.entries().iter().map(|(key, _)| key.to_value()).collect()))
            }
            other => {
                let path = tree::describe(node, self.sources);
                Err(Fault::failed(format!("`{path}` is not a list or map but {}", other.kind())))
            }
        }
    }

    fn collect(&mut self, repeat: &Loop, items: &[Value]) -> Result<Value, Fault> {
        let mut collected = Vec::new();
        for item in items {
            self.locals[repeat.place] = item.clone();
            if let Some(filter) = &repeat.filter
                && !self.condition(filter, "a filter")?
            {
                continue;
            }
            self.budget.make(PLACE_BYTES)?;
            collected.push(self.evaluate(&repeat.body)?);
        }
        Ok(Value::list(collected))
    }

    fn exists_one(&mut self, repeat: &Loop, items: &[Value]) -> Result<Value, Fault> {
        let mut count = 0_usize;
        for item in items {
            self.locals[repeat.place] = item.clone();
            count += usize::from(self.condition(&repeat.body, "`exists_one`")?);
        }
        Ok(Value::Bool(count == 1))
    }

    /// `exists` and `all`: an element that is `decisive` decides, whatever came before it.
    fn quantify(&mut self, repeat: &Loop, items: &[Value], decisive: bool) -> Result<Value, Fault> {
        let mut failed = None;
        for item in items {
            self.locals[repeat.place] = item.clone();
            match self.condition(&repeat.body, if decisive { "`exists`" } else { "`all`" }) {
                Ok(flag) if flag == decisive => return Ok(Value::Bool(decisive)),
                Ok(_) => {}
                Err(Fault::Spent(limit)) => return Err(Fault::Spent(limit)),
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decisive)), Err)
    }
}
