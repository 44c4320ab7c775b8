//! Writing modules: `module new` makes a project, `module build` makes a component of one.
//!
//! - `new`: files from the templates that are embedded in this program, the SDK among them
//! - `build`: what both ends of a build share: the manifest, the component, what is found in it
//! - `rust`, `javascript`, `python`: what a build in each language takes
//! - `component`: core modules become components; `tool`: programs that are found and run

mod build;
mod component;
mod javascript;
mod manifest;
mod new;
mod python;
mod rust;
mod template;
mod tool;

pub(super) use build::{Build, build};
pub(super) use new::{New, create};
