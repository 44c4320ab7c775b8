// Secrets that the module was granted, by name.

import * as host from "#host";

/** Returns a handle to a secret; `reveal()` gives its value and is recorded. Both throw a sentence where there is none. */
export function get(name) {
  return host.getSecret(name);
}
