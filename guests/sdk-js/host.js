// The host in a module: the contract's imports.

export { cancelled, current, lastProgress, reportProgress } from "sandkeep:task/attempt@0.1.0";
export { write } from "sandkeep:task/log@0.1.0";
export { get as getSecret } from "sandkeep:task/secrets@0.1.0";
