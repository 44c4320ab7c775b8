//! The macro that makes a module of plain functions.

/// Lists the tasks of a module, each as `"NAME" "VERSION" => FUNCTION`, its doc comment being its description.
///
/// Makes the static `TASKS` (see [`Task`](crate::Task)) and, for `wasm32`, the exports that the host calls. To be used
/// once in a module, at the top of its crate.
#[macro_export]
macro_rules! tasks {
    ($($(#[doc = $doc:literal])* $name:literal $version:literal => $function:path),+ $(,)?) => {
        /// The tasks of this module.
        pub static TASKS: &[$crate::Task] = &[$($crate::Task {
            name: $name,
            version: $version,
            doc: &[$($doc),*],
            input_schema: || $crate::input_schema($function),
            output_schema: || $crate::output_schema($function),
            call: |input| $crate::call($function, input),
        }),+];

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Module;

            impl $crate::bindings::Guest for Module {
                fn describe() -> Vec<$crate::bindings::TaskSpec> {
                    $crate::guest::describe(TASKS)
                }

                fn run(task: String, input: String) -> Result<String, $crate::bindings::TaskError> {
                    $crate::guest::run(TASKS, &task, &input)
                }
            }

            $crate::bindings::export_module!(Module with_types_in $crate::bindings);
        };
    };
}
