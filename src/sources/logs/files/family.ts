/** How rotated files are called after the one they come from: `app.log.1`, `app.log-20260101.gz`, `app-2026-01-01.log`. */

const compressedName = /\.(?:gz|tgz|zst|xz|bz2|lz4|zip|Z)$/;

/** Compressed files are no streams of lines; rotated ones are looked into only to find what is missing. */
export const isCompressed = (name: string): boolean => compressedName.test(name);

const plainName = (name: string) => name.replace(compressedName, '');

/** Every name that `name` may extend, longest first. */
export function basesOf(name: string): string[] {
  const bases: string[] = [];
  for (let at = name.length - 1; at > 0; at--) {
    if (/[._~@+-]/.test(name[at]!)) bases.push(name.slice(0, at));
  }
  const dated = /^(.+?)[._-]\d[\dTZ:._-]*(\.[A-Za-z]\w*)$/.exec(plainName(name));
  if (dated) bases.push(dated[1]! + dated[2]!);
  return bases;
}

export const extendsName = (name: string, base: string): boolean => basesOf(name).includes(base);

const rotatedSuffix =
  /^(?:[._~@+-](?=.*\d)[\w.:~@+-]*|[._-](?:old|bak|backup|prev|previous|last|orig|copy|save)|~)$/;

/**
 * Every name that a rotation may have given `name` from, longest first: what it has beyond has a digit or is a
 * word such as `old`. `app.log.json` is no rotated `app.log`, though it extends the name.
 */
export function rotatedFrom(name: string): string[] {
  const plain = plainName(name);
  return basesOf(name).filter(
    (base) => plain === base || !plain.startsWith(base) || rotatedSuffix.test(plain.slice(base.length)),
  );
}

export const isRotationOf = (name: string, base: string): boolean => rotatedFrom(name).includes(base);

/** The digits that tell generations apart: what `name` has beyond `base`. */
function digitsBeyond(name: string, base: string): string {
  const plain = plainName(name);
  const stem = /^(.+)(\.[A-Za-z]\w*)$/.exec(base);
  const beyond = plain.startsWith(base)
    ? plain.slice(base.length)
    : stem && plain.startsWith(stem[1]!)
      ? plain.slice(stem[1]!.length, plain.length - stem[2]!.length)
      : '';
  return beyond.replace(/\D/g, '');
}

/** Something that was found in a directory. */
export interface Aged {
  readonly name: string;
  readonly mtimeNs: bigint;
}

/** Names with more digits are dates. */
const countedDigits = 5;

/**
 * Whether the counted names among `known` count upwards (`.1` is the oldest), as some writers do, and not the
 * way of logrotate, which renames the whole family each time: told by the times of the lowest and the highest.
 */
function countsUpwards(base: string, known: Iterable<Aged>): boolean {
  const counted = [...known].flatMap((aged) => {
    const digits = aged.name === base ? '' : digitsBeyond(aged.name, base);
    return digits && digits.length <= countedDigits
      ? [{ number: Number(digits), mtimeNs: aged.mtimeNs }]
      : [];
  });
  counted.sort((a, b) => a.number - b.number);
  const [lowest, highest] = [counted.at(0), counted.at(-1)];
  return lowest !== undefined && highest !== undefined && highest.mtimeNs > lowest.mtimeNs;
}

/**
 * Sorts generations of `base`, oldest first: counted names (`.2` before `.1`, unless the family `known` counts
 * upwards) and dated ones by their names, for compressing and copying change the times; the rest by time. `base`
 * itself is the youngest.
 */
export function byAge(base: string, known: Iterable<Aged>): (a: Aged, b: Aged) => number {
  const direction = countsUpwards(base, known) ? 1 : -1;
  return (a, b) => {
    if (a.name === base || b.name === base) return Number(a.name === base) - Number(b.name === base);
    const [left, right] = [digitsBeyond(a.name, base), digitsBeyond(b.name, base)];
    if (left && right && left !== right) {
      if (left.length <= countedDigits && right.length <= countedDigits)
        return direction * (Number(left) - Number(right));
      if (left.length === right.length) return left < right ? -1 : 1;
    }
    return a.mtimeNs < b.mtimeNs ? -1 : Number(a.mtimeNs > b.mtimeNs);
  };
}

/** The number of a container's log (`0.log`, `1.log.20260101-000000`): it counts the container's restarts. */
export function restartNumber(name: string): number | undefined {
  const found = /^(\d+)\.log(?:\.\d|$)/.exec(name);
  return found ? Number(found[1]) : undefined;
}

/** As `byAge`, of logs of a container that was started again in the meantime: first by the number of its start. */
export function byRestartAndAge(base: string, known: readonly Aged[]): (a: Aged, b: Aged) => number {
  return (a, b) => {
    const [left, right] = [restartNumber(a.name), restartNumber(b.name)];
    const home = left === undefined ? base : `${left}.log`;
    return (left ?? 0) - (right ?? 0) || byAge(home, known)(a, b);
  };
}
