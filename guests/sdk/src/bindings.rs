//! The bindings that wit-bindgen makes of the contract in `wit/`.
//!
//! Public so that [`tasks!`](crate::tasks!) can name them, and for a module that needs the raw contract: such a one
//! implements `Guest` itself and calls `export_module!`.

#![allow(unsafe_code, reason = "the canonical ABI is pointers and lengths")]
#![allow(missing_docs, reason = "the contract is documented in its WIT")]

wit_bindgen::generate!({
    path: "../../wit",
    world: "task",
    default_bindings_module: "sandkeep_sdk::bindings",
    export_macro_name: "export_module",
    pub_export_macro: true,
});
