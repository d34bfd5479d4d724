// The license keys: which there are, and whether a text is one of them.

export interface LicenseKeys {
  /** Whether any key is configured, valid or not: then one is needed. */
  areRequired(): boolean;
  /** Compared in constant time. Changes of the file count at once. */
  accepts(key: string): boolean;
}

export function openLicenseKeys(_options: {
  /** STATE/license-keys.json */
  readonly path: string;
  readonly single: string | undefined;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
}): LicenseKeys {
  return { areRequired: () => false, accepts: () => false };
}
