//! Writes components of the world `task` around a few lines of WebAssembly text.
//!
//! The core module `$m` shares the memory of a small `$libc`, whose `realloc` only ever goes forward. In its body:
//! `$ok`, `$err` and `$say` (see below), and the host's `$write`, `$cancelled`, `$report`, `$last` and `$secret`.

/// A component to be.
pub(crate) struct Guest {
    /// The body of `run`, with the locals `$task`, `$task_len`, `$input`, `$input_len`; leaves a pointer to the result.
    run: String,
    /// Definitions beside it in the core module.
    definitions: String,
    /// Definitions before it in the component.
    component: String,
    /// Imports of the core module from what `component` defines, and the arguments for them.
    imports: String,
    arguments: String,
    memory: &'static str,
    realloc: &'static str,
    describe: &'static str,
}

/// Goes forward and grows the memory; leaves -1 when there is no more.
const REALLOC: &str = "(local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get $size)))
    (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
      (then (if (i32.eq (memory.grow (i32.const 64)) (i32.const -1)) (then unreachable))))
    (local.get $at)";

impl Guest {
    /// A guest whose `run` is `body`.
    pub(crate) fn new(body: &str) -> Self {
        Self {
            run: body.to_owned(),
            definitions: String::new(),
            component: String::new(),
            imports: String::new(),
            arguments: String::new(),
            memory: "2",
            realloc: REALLOC,
            describe: "(i32.const 1024)",
        }
    }

    /// A guest that returns `text`.
    pub(super) fn returning(text: &str) -> Self {
        let length = text.len();
        Self::new(&format!("(call $ok (i32.const 4096) (i32.const {length}))")).data(4096, text)
    }

    /// A guest that returns its input.
    pub(crate) fn echo() -> Self {
        Self::new("(call $ok (local.get $input) (local.get $input_len))")
    }

    /// A guest that never ends.
    pub(super) fn spinning() -> Self {
        Self::new("(loop $l (br $l)) unreachable")
    }

    pub(super) fn define(mut self, definitions: &str) -> Self {
        self.definitions += definitions;
        self
    }

    /// Adds definitions to the component.
    pub(super) fn component(mut self, definitions: &str) -> Self {
        self.component += definitions;
        self
    }

    /// Has the core module import functions without parameters from `instance`, which a definition made.
    pub(super) fn import(mut self, instance: &str, functions: &[&str]) -> Self {
        self.arguments += &format!("(with \"{instance}\" (instance ${instance}))");
        for name in functions {
            self.imports += &format!("(import \"{instance}\" \"{name}\" (func ${name} (result i32)))");
        }
        self
    }

    /// Has the core module import functions of the given types from `instance`, which a definition made.
    pub(super) fn import_typed(mut self, instance: &str, functions: &[(&str, &str)]) -> Self {
        self.arguments += &format!("(with \"{instance}\" (instance ${instance}))");
        for (name, ty) in functions {
            self.imports += &format!("(import \"{instance}\" \"{name}\" (func ${name} {ty}))");
        }
        self
    }

    pub(crate) fn data(self, at: usize, text: &str) -> Self {
        let bytes: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
        self.define(&format!("(data (i32.const {at}) \"{bytes}\")"))
    }

    pub(super) fn memory(self, memory: &'static str) -> Self {
        Self { memory, ..self }
    }

    pub(super) fn realloc(self, realloc: &'static str) -> Self {
        Self { realloc, ..self }
    }

    pub(super) fn describe(self, describe: &'static str) -> Self {
        Self { describe, ..self }
    }

    /// Returns the component as a binary.
    pub(crate) fn build(&self) -> Vec<u8> {
        wat::parse_str(self.text()).unwrap()
    }

    /// Returns the component as text.
    pub(super) fn text(&self) -> String {
        let Self { run, definitions, component, imports, arguments, memory, realloc, describe } = self;
        format!(
            r#"(component
  (import "sandkeep:task/types@0.1.0" (instance $types
    (type $spec (record (field "name" string) (field "version" string) (field "description" (option string))
      (field "input-schema" (option string)) (field "output-schema" (option string))))
    (export "task-spec" (type (eq $spec)))
    (type $error (record (field "code" string) (field "message" string) (field "retryable" bool)
      (field "retry-after-ms" (option u64)) (field "details" (option string))))
    (export "task-error" (type (eq $error)))))
  (alias export $types "task-spec" (type $spec'))
  (import "task-spec" (type $spec (eq $spec')))
  (alias export $types "task-error" (type $error'))
  (import "task-error" (type $error (eq $error')))
  (import "sandkeep:task/log@0.1.0" (instance $log
    (type $level' (enum "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $level')))
    (export "write" (func (param "level" $level) (param "message" string) (param "fields" (option string))))))
  (import "sandkeep:task/attempt@0.1.0" (instance $attempt
    (export "cancelled" (func (result bool)))
    (export "report-progress" (func (param "details" string)))
    (export "last-progress" (func (result (option string))))))
  (import "sandkeep:task/secrets@0.1.0" (instance $secrets
    (export "secret" (type $secret (sub resource)))
    (export "get" (func (param "name" string) (result (result (own $secret) (error string)))))))

  (core module $libc
    (memory (export "memory") {memory})
    (global $next (mut i32) (i32.const 65536))
    (func (export "realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
      {realloc}))
  (core instance $libc (instantiate $libc))
  (alias core export $libc "memory" (core memory $memory))
  (alias core export $libc "realloc" (core func $realloc))
  (core func $write (canon lower (func $log "write") (memory $memory)))
  (core func $cancelled (canon lower (func $attempt "cancelled")))
  (core func $report (canon lower (func $attempt "report-progress") (memory $memory)))
  (core func $last (canon lower (func $attempt "last-progress") (memory $memory) (realloc $realloc)))
  (core func $secret (canon lower (func $secrets "get") (memory $memory) (realloc $realloc)))
  {component}

  (core module $m
    (import "libc" "memory" (memory 0))
    (import "host" "write" (func $write (param i32 i32 i32 i32 i32 i32)))
    (import "host" "cancelled" (func $cancelled (result i32)))
    (import "host" "report" (func $report (param i32 i32)))
    (import "host" "last" (func $last (param i32)))
    (import "host" "secret" (func $secret (param i32 i32 i32)))
    {imports}

    ;; The list of one task, `test` in version `1.0.0`.
    (data (i32.const 1024) "\10\04\00\00\01\00\00\00")
    (data (i32.const 1040) "\00\05\00\00\04\00\00\00\10\05\00\00\05\00\00\00")
    (data (i32.const 1280) "test")
    (data (i32.const 1296) "1.0.0")

    ;; Makes the result out of an output.
    (func $ok (param $at i32) (param $length i32) (result i32)
      (i32.store (i32.const 2048) (i32.const 0))
      (i32.store (i32.const 2056) (local.get $at))
      (i32.store (i32.const 2060) (local.get $length))
      (i32.const 2048))
    ;; Makes the result out of a code; the message is the code.
    (func $err (param $at i32) (param $length i32) (result i32)
      (i32.store (i32.const 2048) (i32.const 1))
      (i32.store (i32.const 2056) (local.get $at))
      (i32.store (i32.const 2060) (local.get $length))
      (i32.store (i32.const 2064) (local.get $at))
      (i32.store (i32.const 2068) (local.get $length))
      (i32.store (i32.const 2072) (i32.const 1))
      (i32.const 2048))
    ;; Logs a message at level info, without fields.
    (func $say (param $at i32) (param $length i32)
      (call $write (i32.const 1) (local.get $at) (local.get $length) (i32.const 0) (i32.const 0) (i32.const 0)))
    {definitions}
    (func (export "describe") (result i32) {describe})
    (func (export "run") (param $task i32) (param $task_len i32) (param $input i32) (param $input_len i32) (result i32)
      {run}))
  (core instance $m (instantiate $m (with "libc" (instance $libc)) (with "host" (instance
    (export "write" (func $write)) (export "cancelled" (func $cancelled)) (export "report" (func $report))
    (export "last" (func $last)) (export "secret" (func $secret)))) {arguments}))

  (func (export "describe") (result (list $spec))
    (canon lift (core func $m "describe") (memory $memory) (realloc $realloc)))
  (func (export "run") (param "task" string) (param "input" string) (result (result string (error $error)))
    (canon lift (core func $m "run") (memory $memory) (realloc $realloc))))"#
        )
    }
}

/// What lets a guest wait and print, as a part of a component.
pub(super) const IO: &str = r#"
  (import "wasi:io/error@0.2.3" (instance $io-error (export "error" (type (sub resource)))))
  (alias export $io-error "error" (type $io-err))
  (import "wasi:io/poll@0.2.3" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
    (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
  (alias export $poll "pollable" (type $pollable'))"#;

/// A clock that wakes, after [`IO`].
const CLOCK: &str = r#"
  (import "wasi:clocks/monotonic-clock@0.2.3" (instance $clock
    (alias outer 1 $pollable' (type $pollable'))
    (export "pollable" (type $pollable (eq $pollable')))
    (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))
    (export "subscribe-instant" (func (param "when" u64) (result (own $pollable))))))
  (core func $subscribe-duration (canon lower (func $clock "subscribe-duration")))
  (core func $subscribe-instant (canon lower (func $clock "subscribe-instant")))
  (core func $block (canon lower (func $poll "[method]pollable.block")))
  (core func $poll' (canon lower (func $poll "poll") (memory $memory) (realloc $realloc)))
  (core func $drop (canon resource.drop $pollable'))
  (core instance $clocks
    (export "subscribe-duration" (func $subscribe-duration)) (export "subscribe-instant" (func $subscribe-instant))
    (export "block" (func $block)) (export "poll" (func $poll')) (export "drop" (func $drop)))"#;

/// Guests that several tests have.
impl Guest {
    /// A guest that makes handles without end.
    pub(super) fn hoarding() -> Self {
        let resources = r#"
            (type $resource (resource (rep i32)))
            (core func $new (canon resource.new $resource))
            (core module $maker
              (import "resource" "new" (func $new (param i32) (result i32)))
              (func (export "make") (result i32) (loop $l (drop (call $new (i32.const 7))) (br $l)) unreachable))
            (core instance $maker (instantiate $maker (with "resource" (instance (export "new" (func $new))))))"#;
        Self::new("(call $make)").component(resources).import("maker", &["make"])
    }

    /// A guest with timers: `$subscribe-duration` and `$subscribe-instant` make one, `$block` waits for it, `$poll` for many,
    /// `$drop` forgets it.
    pub(super) fn with_clock(body: &str) -> Self {
        Self::new(body).data(4096, "[]").component(&format!("{IO}{CLOCK}")).import_typed(
            "clocks",
            &[
                ("subscribe-duration", "(param i64) (result i32)"),
                ("subscribe-instant", "(param i64) (result i32)"),
                ("block", "(param i32)"),
                ("poll", "(param i32 i32 i32)"),
                ("drop", "(param i32)"),
            ],
        )
    }

    /// A guest with `$get-stdout` and `$get-stderr`, and `$print`, which prints on one of them what is at an address.
    pub(super) fn printing(body: &str) -> Self {
        let component = r#"
          (import "wasi:io/streams@0.2.3" (instance $streams
            (export "output-stream" (type $stream (sub resource)))
            (alias outer 1 $io-err (type $io-err))
            (export "error" (type $error (eq $io-err)))
            (type $stream-error' (variant (case "last-operation-failed" (own $error)) (case "closed")))
            (export "stream-error" (type $stream-error (eq $stream-error')))
            (export "[method]output-stream.blocking-write-and-flush"
              (func (param "self" (borrow $stream)) (param "contents" (list u8)) (result (result (error $stream-error)))))))
          (alias export $streams "output-stream" (type $stream'))
          (import "wasi:cli/stdout@0.2.3" (instance $stdout
            (alias outer 1 $stream' (type $stream')) (export "output-stream" (type $stream (eq $stream')))
            (export "get-stdout" (func (result (own $stream))))))
          (import "wasi:cli/stderr@0.2.3" (instance $stderr
            (alias outer 1 $stream' (type $stream')) (export "output-stream" (type $stream (eq $stream')))
            (export "get-stderr" (func (result (own $stream))))))
          (core func $get-stdout (canon lower (func $stdout "get-stdout")))
          (core func $get-stderr (canon lower (func $stderr "get-stderr")))
          (core func $print (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
            (memory $memory) (realloc $realloc)))
          (core instance $stdio (export "get-stdout" (func $get-stdout)) (export "get-stderr" (func $get-stderr))
            (export "print" (func $print)))"#;
        Self::new(body).component(&format!("{IO}{component}")).import_typed(
            "stdio",
            &[("get-stdout", "(result i32)"), ("get-stderr", "(result i32)"), ("print", "(param i32 i32 i32 i32)")],
        )
    }
}
