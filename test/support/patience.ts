// Time limits that no machine is too slow for: one that elapses is a defect, and a test that is about a limit sets its own.
// CI's machine, shared, is four to five times slower than a developer's.

/** In which a condition must come true that a test waits for. */
export const patienceMs = 120_000;

/** The part of a speech process's options that a test says nothing about. */
export const patientProcess = {
  startTimeoutMs: patienceMs,
  stopGraceMs: 2_000,
  silenceLimitMs: patienceMs,
  now: Date.now,
  onOutput: () => undefined,
  onChange: () => undefined,
  warn: () => undefined,
};

/** Of engines: threads that wait for each other let go of the core. Tests have four processes at once, and spinning took a twentieth of a run. */
export const patientEngine = { OMP_WAIT_POLICY: "passive" } as const;

/** The environment of the gateways. */
export const patientLimits = {
  ...patientEngine,
  GATEWAY_DRAIN_TIMEOUT: "300",
  GATEWAY_SILENCE_LIMIT: "120",
  GATEWAY_START_TIMEOUT: "300",
  GATEWAY_STOP_GRACE: "60",
  GATEWAY_UPLOAD_STALL: "120",
  GATEWAY_WAIT_TIMEOUT: "300",
} as const;
