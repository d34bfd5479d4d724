// What a pure reader of requests refuses, and why.
import { GatewayError } from "../../src/core/errors.ts";

/** The message of the `invalid_request` that the call throws; undefined: it throws none. Throws any other error. */
export function refusalOf(call: () => unknown): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError && error.code === "invalid_request") return error.message;
    throw error;
  }
}
