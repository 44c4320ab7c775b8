//! Compares the types of exports with the world of modules, and shows both where they differ.

use std::fmt::Write;

use wasmtime::component::{
    Component, ComponentExportIndex,
    types::{ComponentFunc, ComponentItem, Type},
};

use super::{super::inert, Rejected};

/// How deep a type is shown; both sides are the same up to there or differ before.
const DEPTH_MAX: usize = 8;
/// How much of a type is shown, in bytes.
const TYPE_BYTES_MAX: usize = 1024;

const DESCRIBE: &str = "func() -> list<record { name: string, version: string, description: option<string>, \
                        input-schema: option<string>, output-schema: option<string> }>";
const RUN: &str = "func(task: string, input: string) -> result<string, record { code: string, message: string, \
                   retryable: bool, retry-after-ms: option<u64>, details: option<string> }>";

/// Returns where `run` and `describe` are.
pub(in super::super) fn exports(
    component: &Component,
) -> Result<(ComponentExportIndex, ComponentExportIndex), Rejected> {
    let mut differences = Vec::new();
    let run = export(component, "run", RUN).map_err(|difference| differences.push(difference));
    let describe = export(component, "describe", DESCRIBE).map_err(|difference| differences.push(difference));
    match (run, describe) {
        (Ok(run), Ok(describe)) => Ok((run, describe)),
        _ => Err(Rejected::World { differences }),
    }
}

fn export(component: &Component, name: &str, wanted: &str) -> Result<ComponentExportIndex, String> {
    match component.get_export(None, name) {
        Some((ComponentItem::ComponentFunc(function), index)) => {
            let found = shown(&function);
            if found == wanted {
                return Ok(index);
            }
            let found = inert::line(found, TYPE_BYTES_MAX);
            Err(format!("its export `{name}` is `{found}` and not `{wanted}`"))
        }
        Some(_) => Err(format!("its export `{name}` is not a function")),
        None => Err(format!("it does not export `{name}`")),
    }
}

/// Writes the type of a function as WIT does, with records in place of their names.
fn shown(function: &ComponentFunc) -> String {
    let mut text = if function.async_() { "async func(" } else { "func(" }.to_owned();
    for (at, (name, ty)) in function.params().enumerate() {
        separate(&mut text, at, "");
        text.push_str(name);
        text.push_str(": ");
        write_type(&mut text, &ty, DEPTH_MAX);
    }
    text.push(')');
    for result in function.results() {
        text.push_str(" -> ");
        write_type(&mut text, &result, DEPTH_MAX);
    }
    text
}

fn write_type(text: &mut String, ty: &Type, depth: usize) {
    // A type may mean another many times over, so its text can be far longer than the component.
    if depth == 0 || text.len() > TYPE_BYTES_MAX {
        text.push('…');
        return;
    }
    match ty {
        Type::List(list) => write_of(text, "list", &[Some(list.ty())], depth),
        Type::Option(option) => write_of(text, "option", &[Some(option.ty())], depth),
        Type::Result(result) => match (result.ok(), result.err()) {
            (ok, None) => write_of(text, "result", &[ok], depth),
            (ok, err) => write_of(text, "result", &[ok, err], depth),
        },
        Type::Tuple(tuple) => write_of(text, "tuple", &tuple.types().map(Some).collect::<Vec<_>>(), depth),
        Type::Record(record) => {
            text.push_str("record {");
            for (at, field) in record.fields().enumerate() {
                separate(text, at, " ");
                text.push_str(field.name);
                text.push_str(": ");
                write_type(text, &field.ty, depth - 1);
            }
            text.push_str(" }");
        }
        other => text.push_str(plain(other)),
    }
}

/// Writes `name<a, b>`, with `_` for what is absent.
fn write_of(text: &mut String, name: &str, types: &[Option<Type>], depth: usize) {
    write!(text, "{name}<").expect("a string takes what is written");
    for (at, ty) in types.iter().enumerate() {
        separate(text, at, "");
        match ty {
            Some(ty) => write_type(text, ty, depth - 1),
            None => text.push('_'),
        }
    }
    text.push('>');
}

fn separate(text: &mut String, at: usize, first: &str) {
    text.push_str(if at == 0 { first } else { ", " });
}

fn plain(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::S8 => "s8",
        Type::U8 => "u8",
        Type::S16 => "s16",
        Type::U16 => "u16",
        Type::S32 => "s32",
        Type::U32 => "u32",
        Type::S64 => "s64",
        Type::U64 => "u64",
        Type::Float32 => "f32",
        Type::Float64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::Variant(_) => "variant",
        Type::Enum(_) => "enum",
        Type::Flags(_) => "flags",
        Type::Own(_) => "own",
        Type::Borrow(_) => "borrow",
        Type::Future(_) => "future",
        Type::Stream(_) => "stream",
        _ => "another type",
    }
}
