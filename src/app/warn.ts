// A warning as the parts of a gateway give it, message first, for a logger that takes the fields first.
export type Warn = (message: string, fields: object) => void;

export function warnTo(logger: { warn(fields: object, message: string): void }): Warn {
  return (message, fields) => logger.warn(fields, message);
}
