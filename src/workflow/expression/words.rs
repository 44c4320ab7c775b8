//! Words that CEL keeps for itself.

/// Literals, the `in` operator and CEL's reserved identifiers.
const WORDS: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Names that stand for a type in an expression.
const TYPE_NAMES: &[&str] = &["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

/// Returns whether `name` is a word of CEL, which no step may be called.
pub fn is_cel_word(name: &str) -> bool {
    WORDS.contains(&name)
}

/// Returns whether `name` cannot be read as a root: a word of CEL, the name of a type, or `steps`. A loop variable may
/// not be called so.
pub fn is_reserved_name(name: &str) -> bool {
    is_cel_word(name) || TYPE_NAMES.contains(&name) || name == "steps"
}
