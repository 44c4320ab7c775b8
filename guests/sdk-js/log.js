// Log lines, kept with the attempt's result. `fields` is an object of whatever belongs to the line.

import * as host from "#host";

function write(level, message, fields) {
  host.write(level, String(message), fields === undefined ? undefined : JSON.stringify(fields));
}

export const debug = (message, fields) => write("debug", message, fields);
export const info = (message, fields) => write("info", message, fields);
export const warn = (message, fields) => write("warn", message, fields);
export const error = (message, fields) => write("error", message, fields);
