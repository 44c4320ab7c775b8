//! Why an operation was refused or failed, as edges tell it: a closed set of codes, each with its HTTP and gRPC status.

use std::sync::Arc;

use crate::{
    engine::Refusal,
    model::{Payload, id, json},
    store,
};

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident $text:literal $http:literal $grpc:literal;)*) => {
        /// The stable code of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[ErrorCode] = &[$(Self::$variant),*];

            /// Returns its text on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns its HTTP status.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$variant => $http,)* }
            }

            /// Returns the number of its gRPC status.
            pub fn grpc_status(self) -> i32 {
                match self { $(Self::$variant => $grpc,)* }
            }
        }
    };
}

error_codes! {
    /// The request itself is wrong.
    InvalidRequest "INVALID_REQUEST" 400 3;
    /// The document has problems; all are listed.
    InvalidIr "INVALID_IR" 400 3;
    /// The start input or a signal does not fit its schema.
    InputContractViolation "INPUT_CONTRACT_VIOLATION" 400 3;
    /// A query's expression failed.
    ExpressionError "EXPRESSION_ERROR" 400 3;
    /// No credential, or a bad one.
    Unauthenticated "UNAUTHENTICATED" 401 16;
    /// Too little right.
    Forbidden "FORBIDDEN" 403 7;
    /// The task token is forged, cut, or of another database, tenant or worker.
    TokenInvalid "TOKEN_INVALID" 403 7;
    /// There is no such route or thing.
    NotFound "NOT_FOUND" 404 5;
    /// There is no such workflow or version.
    WorkflowNotFound "WORKFLOW_NOT_FOUND" 404 5;
    /// There is no such execution.
    ExecutionNotFound "EXECUTION_NOT_FOUND" 404 5;
    /// The execution has no such unit.
    UnitNotFound "UNIT_NOT_FOUND" 404 5;
    /// The workflow declares no such signal.
    SignalNotFound "SIGNAL_NOT_FOUND" 404 5;
    /// The workflow declares no such query.
    QueryNotFound "QUERY_NOT_FOUND" 404 5;
    /// There is no such session; register again.
    SessionNotFound "SESSION_NOT_FOUND" 404 5;
    /// There is no such module, digest or alias.
    ModuleNotFound "MODULE_NOT_FOUND" 404 5;
    /// The route exists, the method does not.
    MethodNotAllowed "METHOD_NOT_ALLOWED" 405 12;
    /// Same name and version, other content.
    WorkflowConflict "WORKFLOW_CONFLICT" 409 6;
    /// A run that is not terminal uses the workflow.
    WorkflowInUse "WORKFLOW_IN_USE" 409 9;
    /// Same id, other content.
    ExecutionConflict "EXECUTION_CONFLICT" 409 6;
    /// The execution is terminal.
    ExecutionClosed "EXECUTION_CLOSED" 409 9;
    /// Same `Idempotency-Key`, other content.
    IdempotencyConflict "IDEMPOTENCY_CONFLICT" 409 6;
    /// Same tenant, other content.
    TenantConflict "TENANT_CONFLICT" 409 6;
    /// A second live module describes the task, or a built-in does.
    TaskAmbiguous "TASK_AMBIGUOUS" 409 6;
    /// The module is needed by an alias or a live execution.
    ModuleInUse "MODULE_IN_USE" 409 9;
    /// The execution is not done, so it has no result.
    NotFinished "NOT_FINISHED" 409 9;
    /// The body or a payload is larger than its limit.
    PayloadTooLarge "PAYLOAD_TOO_LARGE" 413 8;
    /// The body's content type is not served.
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" 415 3;
    /// The component cannot be hosted; the reason names what and the remedy.
    ModuleRejected "MODULE_REJECTED" 422 3;
    /// A bound of the server or tenant is reached for now.
    ResourceExhausted "RESOURCE_EXHAUSTED" 429 8;
    /// The server failed; the request id leads to the log.
    Internal "INTERNAL" 500 13;
    /// The server cannot do it now.
    Unavailable "UNAVAILABLE" 503 14;
}

/// Why an operation was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The stable code.
    pub code: ErrorCode,
    /// For people; holds nothing internal.
    pub message: String,
    /// Anything more, as JSON.
    pub details: Option<Payload>,
    /// When it is worth another try, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The truth, for the log.
    #[source]
    pub cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Returns an error with a code and a sentence.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, retry_after_ms: None, cause: None }
    }

    /// Returns `INVALID_REQUEST`.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// Returns `INTERNAL`, whose cause is only logged.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { cause: Some(cause.into().into()), ..Self::new(ErrorCode::Internal, "internal error") }
    }

    /// Adds details.
    pub fn with_details(mut self, details: &serde_json::Value) -> Self {
        self.details = Some(Payload::from_value(details));
        self
    }

    /// Adds when another try is worth it.
    pub fn retry_after(mut self, millis: u64) -> Self {
        self.retry_after_ms = Some(millis);
        self
    }

    /// Returns whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        matches!(self.code, ErrorCode::Unavailable | ErrorCode::ResourceExhausted)
    }

    /// Returns whether a lane refused what is about something that is over: a run that is not the present one, a delivery
    /// that was decided. What cannot be read has a cause.
    pub(super) fn is_of_the_past(&self) -> bool {
        matches!(self.code, ErrorCode::ExecutionNotFound | ErrorCode::Internal) && self.cause.is_none()
    }
}

impl From<id::Invalid> for Error {
    fn from(invalid: id::Invalid) -> Self {
        Self::invalid(invalid.to_string())
    }
}

impl From<json::Error> for Error {
    fn from(error: json::Error) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        let (message, retry_after) = match &error {
            store::Error::Full { .. } => ("the database is full; nothing was changed", 5_000),
            store::Error::Closed => ("the server is stopping", 1_000),
            store::Error::Database(_) | store::Error::Io { .. } => {
                ("the database cannot be used now; nothing was changed", 1_000)
            }
            _ => return Self::internal(error),
        };
        Self { cause: Some(Arc::new(error)), ..Self::new(ErrorCode::Unavailable, message).retry_after(retry_after) }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::Conflict => ErrorCode::ExecutionConflict,
            Refusal::NotFound => ErrorCode::ExecutionNotFound,
            Refusal::Closed(_) => ErrorCode::ExecutionClosed,
            Refusal::UnknownSignal(_) => ErrorCode::SignalNotFound,
            Refusal::NoModule(_) => ErrorCode::ModuleNotFound,
            Refusal::Unfit(_) => ErrorCode::InvalidRequest,
            Refusal::Limit(_) => ErrorCode::ResourceExhausted,
            Refusal::Over | Refusal::NotDue(_) => ErrorCode::Internal,
        };
        Self::new(code, refusal.to_string())
    }
}
