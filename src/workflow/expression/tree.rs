//! The lowered tree: names resolved, macros recognised, functions found, so that evaluation decides nothing twice.

use std::fmt::Write as _;
use std::sync::Arc;

use super::functions::{Function, Pattern};
use super::problem::quote;
use super::references::Source;
use super::value::Value;

/// A node of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Literal(Value),
    Local(Local),
    Read(Read),
    Member(Box<Node>, Arc<str>),
    Index(Box<[Node; 2]>),
    /// `has(x.y)`: whether the inner path leads to a value that is not null.
    Has(Box<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Choose(Box<[Node; 3]>),
    Binary(Operator, Box<[Node; 2]>),
    List(Box<[Node]>),
    Map(Box<[[Node; 2]]>),
    Loop(Box<Loop>),
    Call(&'static Function, Box<[Node]>),
    Get(Box<[Node; 3]>),
    Coalesce(Box<[Node]>),
    /// `matches` with a pattern known beforehand.
    Matches(Box<Node>, Arc<Pattern>),
}

/// A variable of a macro, by its place on the stack of variables.
#[derive(Debug)]
pub(super) struct Local {
    pub place: usize,
    pub name: Arc<str>,
}

/// A source of the scope and a path into it that is known beforehand.
#[derive(Debug)]
pub(super) struct Read {
    /// Index into the sources of the template.
    pub source: usize,
    pub path: Box<[Segment]>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Name(Arc<str>),
    Index(usize),
}

/// `all`, `exists`, `exists_one`, or `map` and `filter`.
#[derive(Debug)]
pub(super) struct Loop {
    pub kind: LoopKind,
    /// Where the variable stands on the stack of variables.
    pub place: usize,
    pub range: Node,
    pub filter: Option<Node>,
    pub body: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Collect,
}

/// An operator that evaluates both of its sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Operator {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
        }
    }
}

/// Spells the path that a node reads, for messages: `steps.a.output.x`, `line.sku`, `keys(…)[0]`.
pub(super) fn describe(node: &Node, sources: &[Source]) -> String {
    match node {
        Node::Read(read) => describe_read(&sources[read.source], &read.path),
        Node::Local(local) => local.name.to_string(),
        Node::Member(operand, field) => format!("{}.{field}", describe(operand, sources)),
        Node::Index(sides) => match &sides[1] {
            Node::Literal(key) => format!("{}[{}]", describe(&sides[0], sources), spell_key(key)),
            key => format!("{}[{}]", describe(&sides[0], sources), describe(key, sources)),
        },
        Node::Call(function, _) => format!("{}(…)", function.name),
        _ => "(…)".to_owned(),
    }
}

/// Spells a source and a path into it.
pub(super) fn describe_read(source: &Source, path: &[Segment]) -> String {
    let mut text = source.to_string();
    for segment in path {
        // Writing to a text cannot fail.
        let _ = match segment {
            Segment::Name(name) => write!(text, ".{name}"),
            Segment::Index(index) => write!(text, "[{index}]"),
        };
    }
    text
}

/// Spells a key in brackets, cut short.
pub(super) fn spell_key(key: &Value) -> String {
    match key {
        Value::Text(text) => quote(text),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => uint.to_string(),
        Value::Double(double) => double.to_string(),
        Value::Bool(flag) => flag.to_string(),
        other => other.kind().to_owned(),
    }
}
