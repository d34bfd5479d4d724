// Listens to sound by its numbers.

/** How often a tone swings in a second, by its passages through zero. */
export function pitch(samples: Int16Array, sampleRate: number): number {
  let rising = 0;
  for (let i = 1; i < samples.length; i++) if ((samples[i - 1] ?? 0) < 0 && (samples[i] ?? 0) >= 0) rising++;
  return (rising * sampleRate) / samples.length;
}

/** The loudest sample. */
export function peak(samples: Int16Array): number {
  return samples.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 0);
}
