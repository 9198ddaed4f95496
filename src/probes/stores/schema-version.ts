const shape = /^\d+(?:\.\d+)*$/;

/**
 * Whether a version is at least as new as another, number by number: 0.10 is newer than 0.9, and 1.0 is 1.
 * Undefined where one of them is no version.
 */
export function isAtLeast(found: string, expected: string): boolean | undefined {
  if (!shape.test(found) || !shape.test(expected)) return undefined;
  const [one, other] = [found, expected].map((version) => version.split('.').map(BigInt)) as [
    bigint[],
    bigint[],
  ];
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    const [ours, theirs] = [one[index] ?? 0n, other[index] ?? 0n];
    if (ours !== theirs) return ours > theirs;
  }
  return true;
}

/** Two or three numbers with points between them, which are no part of an address, a date or a time. */
const version = /(?<![\w.:/-])v?(\d+\.\d+(?:\.\d+)?)(?![\w:/-]|\.\d)/;

/** The first version in what a schema tool prints; a number without points counts only if it is all there is. */
export function versionIn(output: string): string | undefined {
  const alone = /^\s*v?(\d+)\s*$/.exec(output)?.[1];
  return alone ?? version.exec(output)?.[1];
}
