// Sizes of memory as people read them. Pure.

const mebibyte = 1024 ** 2;
const gibibyte = 1024 ** 3;

/** `512 MiB`, `5.1 GiB`, `24 GiB`: binary units, as memory is sold in. */
export function memoryText(bytes: number): string {
  if (bytes < 999.5 * mebibyte) return `${Math.round(bytes / mebibyte)} MiB`;
  const value = bytes / gibibyte;
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} GiB`;
}
