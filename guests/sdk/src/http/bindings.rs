//! The bindings that wit-bindgen makes of `wit/outgoing.wit`.

#![allow(unsafe_code, reason = "the canonical ABI is pointers and lengths")]
#![allow(missing_docs, reason = "the interfaces are documented by WASI")]

wit_bindgen::generate!({
    path: "wit/outgoing.wit",
    world: "outgoing",
    generate_all,
});
