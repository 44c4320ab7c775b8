// Why an attempt failed, as a task says it.

/** Why an attempt failed. Workflows decide by the code, people read the message. */
export class TaskError extends Error {
  /**
   * @param {string} code a stable code in capitals, such as `OUT_OF_STOCK`
   * @param {string} message a sentence for people
   * @param {{retryable?: boolean, retryAfterMs?: number, details?: unknown}} [more] whether another attempt may succeed;
   *   how long to wait before it, which makes the error retryable; whatever JSON helps to handle the error
   */
  constructor(code, message, { retryAfterMs, retryable = retryAfterMs !== undefined, details } = {}) {
    super(message);
    this.name = "TaskError";
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
    this.details = details;
  }

  /** Makes an error that another attempt would meet again. */
  static permanent(code, message, details) {
    return new TaskError(code, message, { details });
  }

  /** Makes an error that another attempt may not meet. */
  static transient(code, message, { retryAfterMs, details } = {}) {
    return new TaskError(code, message, { retryable: true, retryAfterMs, details });
  }

  /** Returns the record that the contract has for it. */
  toRecord() {
    return {
      code: this.code,
      message: this.message,
      retryable: this.retryable,
      retryAfterMs: this.retryAfterMs === undefined ? undefined : BigInt(Math.max(0, Math.round(this.retryAfterMs))),
      details: this.details === undefined ? undefined : JSON.stringify(this.details),
    };
  }
}
