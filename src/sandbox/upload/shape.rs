//! The structure of a component: what it imports and exports, and how many instances, memories and tables it makes.
//!
//! Counted without compiling, because nested components multiply: a small file can ask for millions of instances.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef, Encoding,
    Instance, Parser, Payload, TypeBounds,
};

use super::{
    super::{Limits, ModuleLimits},
    Rejected,
};

/// The size of a page of linear memory.
const PAGE_BYTES: u64 = 64 * 1024;

/// What a component looks like from outside, and what an instance of it needs.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// The names of its imports.
    pub(super) imports: Vec<String>,
    /// The names of its exports, with whether each is a function.
    pub(super) exports: Vec<(String, bool)>,
    components: u64,
    needs: Needs,
}

/// What an instance needs. Sums stop at the largest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Needs {
    core_instances: u64,
    memories: u64,
    memory_bytes: u64,
    tables: u64,
    /// The largest table's elements at the start.
    table_elements: u64,
}

impl Needs {
    fn add(&mut self, other: Needs) {
        self.core_instances = self.core_instances.saturating_add(other.core_instances);
        self.memories = self.memories.saturating_add(other.memories);
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.tables = self.tables.saturating_add(other.tables);
        self.table_elements = self.table_elements.max(other.table_elements);
    }
}

/// A module or component as far as it was read. What comes from elsewhere is not known.
#[derive(Default)]
struct Frame {
    is_component: bool,
    modules: Vec<Option<Needs>>,
    components: Vec<Option<Needs>>,
    needs: Needs,
}

impl Shape {
    /// Refuses what needs more than the limits.
    pub(super) fn check(&self, module: &ModuleLimits, limits: &Limits) -> Result<(), Rejected> {
        let needs = &self.needs;
        for (what, needed, limit) in [
            ("nested components", self.components, u64::from(module.components)),
            ("core instances", needs.core_instances, u64::from(module.core_instances)),
            ("linear memories", needs.memories, u64::from(module.memories)),
            ("bytes of linear memory at the start", needs.memory_bytes, limits.memory_bytes as u64),
            ("tables", needs.tables, u64::from(module.tables)),
            ("elements of a table at the start", needs.table_elements, limits.table_elements as u64),
        ] {
            if needed > limit {
                return Err(Rejected::Structure { what, needed, limit });
            }
        }
        Ok(())
    }
}

/// Reads the structure of a component that was validated.
pub(super) fn of(bytes: &[u8]) -> Result<Shape, Rejected> {
    let mut shape = Shape::default();
    let mut frames: Vec<Frame> = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(invalid)? {
            Payload::Version { encoding, .. } => {
                let is_component = encoding == Encoding::Component;
                shape.components += u64::from(is_component && !frames.is_empty());
                frames.push(Frame { is_component, ..Frame::default() });
            }
            Payload::End(_) => {
                let Some(ended) = frames.pop() else { continue };
                match frames.last_mut() {
                    Some(outer) if ended.is_component => outer.components.push(Some(ended.needs)),
                    Some(outer) => outer.modules.push(Some(ended.needs)),
                    None => shape.needs = ended.needs,
                }
            }
            payload => read(payload, &mut frames, &mut shape)?,
        }
    }
    Ok(shape)
}

fn read(payload: Payload<'_>, frames: &mut [Frame], shape: &mut Shape) -> Result<(), Rejected> {
    let is_outermost = frames.len() == 1;
    let Some((frame, outer)) = frames.split_last_mut() else { return Ok(()) };
    match payload {
        Payload::MemorySection(memories) => {
            for memory in memories {
                frame.needs.memories += 1;
                let bytes = memory.map_err(invalid)?.initial.saturating_mul(PAGE_BYTES);
                frame.needs.memory_bytes = frame.needs.memory_bytes.saturating_add(bytes);
            }
        }
        Payload::TableSection(tables) => {
            for table in tables {
                frame.needs.tables += 1;
                frame.needs.table_elements = frame.needs.table_elements.max(table.map_err(invalid)?.ty.initial);
            }
        }
        Payload::InstanceSection(instances) => {
            for instance in instances {
                if let Instance::Instantiate { module_index, .. } = instance.map_err(invalid)? {
                    let needs = known(&frame.modules, module_index)?;
                    frame.needs.add(Needs { core_instances: 1, ..Needs::default() });
                    frame.needs.add(needs);
                }
            }
        }
        Payload::ComponentInstanceSection(instances) => {
            for instance in instances {
                if let ComponentInstance::Instantiate { component_index, .. } = instance.map_err(invalid)? {
                    let needs = known(&frame.components, component_index)?;
                    frame.needs.add(needs);
                }
            }
        }
        Payload::ComponentAliasSection(aliases) => {
            for alias in aliases {
                read_alias(&alias.map_err(invalid)?, frame, outer);
            }
        }
        Payload::ComponentImportSection(imports) => {
            for import in imports {
                let import = import.map_err(invalid)?;
                match import.ty {
                    ComponentTypeRef::Module(_) => frame.modules.push(None),
                    ComponentTypeRef::Component(_) => frame.components.push(None),
                    _ => {}
                }
                // A name for a type that is known asks for nothing: `use` in a world makes such imports.
                let asks_for_nothing = matches!(import.ty, ComponentTypeRef::Type(TypeBounds::Eq(_)));
                if is_outermost && !asks_for_nothing {
                    shape.imports.push(import.name.name.to_owned());
                }
            }
        }
        Payload::ComponentExportSection(exports) => {
            for export in exports {
                let export = export.map_err(invalid)?;
                // An export gives what it exports a second index.
                match export.kind {
                    ComponentExternalKind::Module => {
                        frame.modules.push(known(&frame.modules, export.index).ok());
                    }
                    ComponentExternalKind::Component => {
                        frame.components.push(known(&frame.components, export.index).ok());
                    }
                    _ => {}
                }
                if is_outermost {
                    let is_function = export.kind == ComponentExternalKind::Func;
                    shape.exports.push((export.name.name.to_owned(), is_function));
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// An alias gives an index to what an outer component has, or to what an instance exports, of which nothing is known.
fn read_alias(alias: &ComponentAlias<'_>, frame: &mut Frame, outer: &[Frame]) {
    match *alias {
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. } => frame.modules.push(None),
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => frame.components.push(None),
        ComponentAlias::Outer { kind: ComponentOuterAliasKind::CoreModule, count, index } => {
            let needs = known(&enclosing(frame, outer, count).modules, index).ok();
            frame.modules.push(needs);
        }
        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
            let needs = known(&enclosing(frame, outer, count).components, index).ok();
            frame.components.push(needs);
        }
        _ => {}
    }
}

/// Returns the component `count` levels further out.
fn enclosing<'a>(frame: &'a Frame, outer: &'a [Frame], count: u32) -> &'a Frame {
    let at = (outer.len() as u64).checked_sub(u64::from(count)).and_then(|at| usize::try_from(at).ok());
    at.and_then(|at| outer.get(at)).unwrap_or(frame)
}

fn known(needs: &[Option<Needs>], index: u32) -> Result<Needs, Rejected> {
    needs.get(index as usize).copied().flatten().ok_or(Rejected::Dynamic)
}

fn invalid(error: wasmparser::BinaryReaderError) -> Rejected {
    Rejected::Invalid { problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Result<Shape, Rejected> {
        of(&wat::parse_str(text).unwrap())
    }

    #[test]
    fn nested_components_multiply() {
        let shape = shape(
            r#"(component
                (core module $m (memory 2) (table 7 funcref))
                (component $inner
                    (alias outer 1 $m (core module $m))
                    (core instance (instantiate $m)) (core instance (instantiate $m)))
                (component $middle
                    (alias outer 1 $inner (component $inner))
                    (instance (instantiate $inner)) (instance (instantiate $inner)) (instance (instantiate $inner)))
                (core instance (instantiate $m))
                (instance (instantiate $middle)) (instance (instantiate $middle)))"#,
        )
        .unwrap();
        let instances = 1 + 2 * 3 * 2;
        let needs = Needs {
            core_instances: instances,
            memories: instances,
            memory_bytes: instances * 2 * PAGE_BYTES,
            tables: instances,
            table_elements: 7,
        };
        assert_eq!(shape.needs, needs);
        assert_eq!(shape.components, 2);
    }

    #[test]
    fn doubling_stops_at_the_largest_number() {
        let mut text = "(component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
        for level in 1..80 {
            let inner = level - 1;
            text += &format!(
                "(component $c{level} (alias outer 1 $c{inner} (component $c))
                    (instance (instantiate $c)) (instance (instantiate $c)))"
            );
        }
        text += "(instance (instantiate $c79))";
        let shape = shape(&format!("(component {text})")).unwrap();
        assert_eq!(shape.needs.core_instances, u64::MAX);
        assert!(shape.check(&ModuleLimits::default(), &Limits::default()).is_err());
    }

    #[test]
    fn what_comes_from_elsewhere_cannot_be_counted() {
        let refused =
            shape(r#"(component (import "m" (core module $m)) (core instance (instantiate $m)))"#).unwrap_err();
        assert_eq!(refused, Rejected::Dynamic);
    }
}
