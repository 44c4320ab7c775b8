//! Lowers the parser's tree: resolves names, finds functions, recognises macros, and collects what is read.

use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr, operators};

use super::functions::{self, Function, Pattern, Special};
use super::problem::{Problem, code};
use super::references::{References, Source, StepField};
use super::tree::{Local, Node, Operator, Read, Segment};
use super::value::{Value, kind};

/// Deepest tree, which bounds the recursion of the evaluator.
const MAX_DEPTH: usize = 200;

/// A code of [`code`] and a sentence; the caller knows where the text stands.
pub(super) type Refusal = (&'static str, String);

/// Lowers an expression. `sources` is shared by the expressions of a template.
pub(super) fn lower(
    expression: &IdedExpr,
    sources: &mut Vec<Source>,
    pointer: &str,
) -> Result<(Node, References), Problem> {
    let mut lowering = Lowering { sources, references: References::default(), locals: Vec::new(), depth: 0 };
    let node = lowering.node(&expression.expr).map_err(|(code, message)| Problem::new(pointer, code, message))?;
    Ok((node, lowering.references))
}

/// A lowering in progress.
pub(super) struct Lowering<'s> {
    sources: &'s mut Vec<Source>,
    references: References,
    /// Variables of the macros around, outermost first.
    locals: Vec<Arc<str>>,
    depth: usize,
}

/// A name and the constant path behind it.
struct Path<'e> {
    root: &'e str,
    segments: Vec<Segment>,
    /// How many segments at the front are plain member accesses.
    members: usize,
}

impl Lowering<'_> {
    /// Lowers a node and what is below it.
    pub(super) fn node(&mut self, expression: &Expr) -> Result<Node, Refusal> {
        if self.depth == MAX_DEPTH {
            return Err((code::TOO_DEEP, format!("the expression is more than {MAX_DEPTH} levels deep")));
        }
        self.depth += 1;
        let node = self.node_within(expression);
        self.depth -= 1;
        node
    }

    fn node_within(&mut self, expression: &Expr) -> Result<Node, Refusal> {
        match expression {
            Expr::Ident(_) | Expr::Select(_) => self.path_or_member(expression),
            Expr::Literal(literal) => Ok(Node::Literal(literal_value(literal))),
            Expr::Call(call) => self.call(expression, call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(message) => Err(unsupported(&format!("a message such as `{}{{}}`", message.type_name))),
            Expr::Unspecified => Err(unsupported("an empty expression")),
        }
    }

    /// Lowers `body` with one more variable, and returns its place on the stack of variables.
    pub(super) fn with_local<T>(
        &mut self,
        name: &str,
        body: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<(usize, T), Refusal> {
        let place = self.locals.len();
        self.locals.push(Arc::from(name));
        let result = body(self);
        self.locals.truncate(place);
        result.map(|result| (place, result))
    }

    fn list(&mut self, list: &ListExpr) -> Result<Node, Refusal> {
        if !list.optional_indices.is_empty() {
            return Err(unsupported("an optional element"));
        }
        self.nodes(&list.elements).map(Node::List)
    }

    fn nodes(&mut self, expressions: &[IdedExpr]) -> Result<Box<[Node]>, Refusal> {
        expressions.iter().map(|expression| self.node(&expression.expr)).collect()
    }

    fn map(&mut self, map: &MapExpr) -> Result<Node, Refusal> {
        let mut entries = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(unsupported("a field of a message")) };
            if entry.optional {
                return Err(unsupported("an optional entry"));
            }
            entries.push([self.node(&entry.key.expr)?, self.node(&entry.value.expr)?]);
        }
        Ok(Node::Map(entries.into()))
    }

    fn pair(&mut self, arguments: &[IdedExpr]) -> Result<Box<[Node; 2]>, Refusal> {
        let [left, right] = arguments else { return Err(unsupported("an operator without two sides")) };
        Ok(Box::new([self.node(&left.expr)?, self.node(&right.expr)?]))
    }
}

/// Names and paths.
impl Lowering<'_> {
    fn path_or_member(&mut self, expression: &Expr) -> Result<Node, Refusal> {
        if let Expr::Select(select) = expression {
            return self.select(select);
        }
        match self.constant_path(expression) {
            Some(path) => self.path(path),
            None => self.local_or_member(expression),
        }
    }

    fn select(&mut self, select: &SelectExpr) -> Result<Node, Refusal> {
        let node = match self.select_path(select) {
            Some(path) => self.path(path)?,
            None => Node::Member(Box::new(self.node(&select.operand.expr)?), Arc::from(select.field.as_str())),
        };
        Ok(if select.test { Node::Has(Box::new(node)) } else { node })
    }

    fn local_or_member(&mut self, expression: &Expr) -> Result<Node, Refusal> {
        let Expr::Ident(name) = expression else { return Err(unsupported("this form of a path")) };
        let place = self.local(name).ok_or_else(|| unsupported("this form of a name"))?;
        Ok(Node::Local(Local { place, name: Arc::clone(&self.locals[place]) }))
    }

    fn local(&self, name: &str) -> Option<usize> {
        self.locals.iter().rposition(|local| local.as_ref() == name)
    }

    /// The path that names and constant keys spell, unless it starts at a variable of a macro.
    fn constant_path<'e>(&self, expression: &'e Expr) -> Option<Path<'e>> {
        match expression {
            Expr::Ident(name) => {
                // A leading dot means the root name, also where a variable is called the same.
                let root = name.strip_prefix('.');
                if root.is_none() && self.local(name).is_some() {
                    return None;
                }
                Some(Path { root: root.unwrap_or(name), segments: Vec::new(), members: 0 })
            }
            Expr::Select(select) if !select.test => self.select_path(select),
            Expr::Call(call) if call.func_name == operators::INDEX => self.index_path(call),
            _ => None,
        }
    }

    fn select_path<'e>(&self, select: &'e SelectExpr) -> Option<Path<'e>> {
        let mut path = self.constant_path(&select.operand.expr)?;
        path.members += usize::from(path.members == path.segments.len());
        path.segments.push(Segment::Name(Arc::from(select.field.as_str())));
        Some(path)
    }

    fn index_path<'e>(&self, call: &'e CallExpr) -> Option<Path<'e>> {
        let [operand, key] = call.args.as_slice() else { return None };
        let segment = match &key.expr {
            Expr::Literal(LiteralValue::String(name)) => Segment::Name(Arc::from(name.inner())),
            Expr::Literal(LiteralValue::Int(index)) => Segment::Index(usize::try_from(*index.inner()).ok()?),
            _ => return None,
        };
        let mut path = self.constant_path(&operand.expr)?;
        path.segments.push(segment);
        Some(path)
    }

    fn path(&mut self, path: Path<'_>) -> Result<Node, Refusal> {
        if path.root == "steps" {
            return self.step_path(path);
        }
        if let Some(name) = type_name(&path) {
            return Ok(Node::Literal(Value::Type(name)));
        }
        self.references.roots.insert(path.root.to_owned());
        let source = self.source(Source::Root(path.root.into()));
        Ok(Node::Read(Read { source, path: path.segments.into() }))
    }

    fn step_path(&mut self, path: Path<'_>) -> Result<Node, Refusal> {
        let [Segment::Name(id), rest @ ..] = path.segments.as_slice() else { return Err(misused_steps(None)) };
        if path.members == 0 {
            return Err(misused_steps(None));
        }
        let [Segment::Name(name), rest @ ..] = rest else { return Err(misused_steps(Some(id))) };
        if path.members == 1 {
            return Err(misused_steps(Some(id)));
        }
        let field = StepField::find(name).ok_or_else(|| unknown_step_field(id, name))?;
        self.references.steps.insert((id.to_string(), field));
        let source = self.source(Source::Step(id.as_ref().into(), field));
        Ok(Node::Read(Read { source, path: rest.into() }))
    }

    fn source(&mut self, source: Source) -> usize {
        self.sources.iter().position(|known| *known == source).unwrap_or_else(|| {
            self.sources.push(source);
            self.sources.len() - 1
        })
    }
}

/// Calls.
impl Lowering<'_> {
    fn call(&mut self, expression: &Expr, call: &CallExpr) -> Result<Node, Refusal> {
        if let Some(operator) = operator(&call.func_name) {
            return self.pair(&call.args).map(|sides| Node::Binary(operator, sides));
        }
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::INDEX, arguments) => match self.constant_path(expression) {
                Some(path) => self.path(path),
                None => self.pair(arguments).map(Node::Index),
            },
            (operators::LOGICAL_AND, arguments) => self.pair(arguments).map(Node::And),
            (operators::LOGICAL_OR, arguments) => self.pair(arguments).map(Node::Or),
            (operators::LOGICAL_NOT, [operand]) => Ok(Node::Not(Box::new(self.node(&operand.expr)?))),
            (operators::NEGATE, [operand]) => Ok(Node::Negate(Box::new(self.node(&operand.expr)?))),
            (operators::CONDITIONAL, [test, yes, no]) => {
                let parts = [self.node(&test.expr)?, self.node(&yes.expr)?, self.node(&no.expr)?];
                Ok(Node::Choose(Box::new(parts)))
            }
            _ => self.function_call(call),
        }
    }

    /// A function may be called as `f(x, y)` and as `x.f(y)`.
    fn function_call(&mut self, call: &CallExpr) -> Result<Node, Refusal> {
        let name = call.func_name.trim_start_matches('.');
        let function = functions::find(name).ok_or_else(|| unknown_function(name))?;
        let operands = call.target.iter().map(Box::as_ref).chain(&call.args);
        let arguments: Box<[Node]> = operands.map(|operand| self.node(&operand.expr)).collect::<Result<_, _>>()?;
        if !(function.least..=function.most).contains(&arguments.len()) {
            return Err(wrong_count(function, arguments.len()));
        }
        finish_call(function, arguments)
    }
}

fn finish_call(function: &'static Function, arguments: Box<[Node]>) -> Result<Node, Refusal> {
    match function.special() {
        None => Ok(Node::Call(function, arguments)),
        Some(Special::Coalesce) => Ok(Node::Coalesce(arguments)),
        Some(Special::Get) => match <Box<[Node; 3]>>::try_from(arguments) {
            Ok(parts) => Ok(Node::Get(parts)),
            Err(arguments) => Err(wrong_count(function, arguments.len())),
        },
        Some(Special::Matches) => match <Box<[Node; 2]>>::try_from(arguments) {
            Ok(sides) => matches_call(function, *sides),
            Err(arguments) => Err(wrong_count(function, arguments.len())),
        },
    }
}

/// A pattern that is known beforehand is compiled once.
fn matches_call(function: &'static Function, sides: [Node; 2]) -> Result<Node, Refusal> {
    let [text, pattern] = sides;
    let Node::Literal(Value::Text(pattern)) = &pattern else {
        return Ok(Node::Call(function, Box::new([text, pattern])));
    };
    let pattern = Pattern::compile(pattern).map_err(|message| (code::INVALID_PATTERN, message))?;
    Ok(Node::Matches(Box::new(text), Arc::new(pattern)))
}

fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Remainder,
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::NotEqual,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessOrEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterOrEqual,
        operators::IN => Operator::In,
        _ => return None,
    })
}

fn literal_value(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(flag) => Value::Bool(**flag),
        LiteralValue::Bytes(bytes) => Value::Bytes(bytes.inner().into()),
        LiteralValue::Double(double) => Value::Double(**double),
        LiteralValue::Int(int) => Value::Int(**int),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(text) => Value::text(text.inner()),
        LiteralValue::UInt(uint) => Value::Uint(**uint),
    }
}

/// The type that a path names, `int` or `google.protobuf.Timestamp`.
fn type_name(path: &Path<'_>) -> Option<&'static str> {
    if path.members < path.segments.len() {
        return None;
    }
    let mut name = path.root.to_owned();
    for segment in &path.segments {
        let Segment::Name(segment) = segment else { return None };
        name.push('.');
        name.push_str(segment);
    }
    kind::ALL.into_iter().find(|kind| *kind == name)
}

fn misused_steps(id: Option<&str>) -> Refusal {
    let message = match id {
        None => "`steps` is read as `steps.ID.output`, `.status`, `.error` or `.finished_at_ms` only".to_owned(),
        Some(id) => {
            format!("step `{id}` is read as `steps.{id}.output`, `.status`, `.error` or `.finished_at_ms` only")
        }
    };
    (code::STEPS_MISUSED, message)
}

fn unknown_step_field(id: &str, name: &str) -> Refusal {
    let known = StepField::ALL.map(StepField::as_str);
    let hint = nearest(name, known.into_iter())
        .map_or_else(|| format!("use one of {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
    (code::UNKNOWN_STEP_FIELD, format!("a step has no field `{name}`: `steps.{id}.{name}`; {hint}"))
}

fn unknown_function(name: &str) -> Refusal {
    let hint = nearest(name, functions::names()).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    (code::UNKNOWN_FUNCTION, format!("unknown function `{name}`{hint}"))
}

/// The known name that is likely meant.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distance = |candidate: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase());
    let (distance, candidate) = known.map(|candidate| (distance(candidate), candidate)).min()?;
    (distance <= 1 + name.len() / 4).then_some(candidate)
}

fn wrong_count(function: &Function, given: usize) -> Refusal {
    let takes = match (function.least, function.most) {
        (1, 1) => "1 argument".to_owned(),
        (least, most) if least == most => format!("{least} arguments"),
        (least, usize::MAX) => format!("at least {least} arguments"),
        (least, most) => format!("{least} to {most} arguments"),
    };
    (code::WRONG_ARGUMENTS, format!("`{}` takes {takes}, not {given}", function.name))
}

pub(super) fn unsupported(what: &str) -> Refusal {
    (code::UNSUPPORTED, format!("{what} is not supported"))
}
