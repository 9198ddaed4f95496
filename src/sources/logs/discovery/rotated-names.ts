/** Names that a rotation gives to a log: `app.log.1`, `app.log-20260101.gz`, `app-2026-01-01.log`. */

const compressedName = /\.(?:gz|tgz|zst|xz|bz2|lz4|zip|Z)$/;

export const isCompressed = (name: string): boolean => compressedName.test(name);

/** Whether a name is the name of a gzip file, the only compressed format that is read. */
export const isGzip = (name: string): boolean => name.endsWith('.gz');

/** Whether a name is the name of an archive in a format that is not read. */
export const isForeign = (name: string): boolean => isCompressed(name) && !isGzip(name);

const plainName = (name: string): string => name.replace(compressedName, '');

/** The names that svlogd and multilog give to rotated files: finished, being processed, or unprocessed. */
const labelledName = /^@[0-9a-f]+\.[stu]$/;

/** The names that the plain file of an archive may have while the archive is written. */
export function plainNamesOf(path: string): readonly string[] {
  const stem = path.slice(0, path.lastIndexOf('.'));
  return stem.includes('/@') ? [`${stem}.u`] : [plainName(path), stem].filter((name) => name !== path);
}

/** Every name that `name` may extend, longest first. */
function basesOf(name: string): string[] {
  const bases: string[] = [];
  for (let at = name.length - 1; at > 0; at--) {
    if (/[._~@+-]/.test(name[at]!)) bases.push(name.slice(0, at));
  }
  const dated = /^(.+?)[._-]\d[\dTZ:._-]*(\.[A-Za-z]\w*)$/.exec(plainName(name));
  if (dated) bases.push(dated[1]! + dated[2]!);
  return bases;
}

const rotatedSuffix =
  /^(?:[._~@+-](?=.*\d)[\w.:~@+-]*|[._-](?:old|bak|backup|prev|previous|last|orig|copy|save|tmp)|~)$/;

const mayBeRotated = /\d|~$|[._-](?:old|bak|backup|prev|previous|last|orig|copy|save|tmp)/;
const noBases: readonly string[] = [];

/**
 * Every name that a rotation may have extended to `name`, longest first. The extension has a digit or is a word such as `old`.
 * `app.log.json` is not a rotated `app.log`, although it extends the name.
 */
export function rotatedFrom(name: string): readonly string[] {
  const known = rotatedFromCache.get(name);
  if (known) return known;
  if (rotatedFromCache.size >= cacheLimit) rotatedFromCache.clear();
  const bases = findRotatedFrom(name);
  rotatedFromCache.set(name, bases);
  return bases;
}

const rotatedFromCache = new Map<string, readonly string[]>();
const cacheLimit = 50_000;

function findRotatedFrom(name: string): readonly string[] {
  if (labelledName.test(name)) return ['current'];
  const plain = plainName(name);
  if (plain === name && !mayBeRotated.test(name)) return noBases;
  return basesOf(name).filter(
    (base) => plain === base || !plain.startsWith(base) || rotatedSuffix.test(plain.slice(base.length)),
  );
}

export const isRotationOf = (name: string, base: string): boolean => rotatedFrom(name).includes(base);

/** Whether a rotation may have given both names to files of one log. */
export function isSameLog(a: string, b: string): boolean {
  const names = [b, ...rotatedFrom(b)];
  return [a, ...rotatedFrom(a)].some((name) => names.includes(name));
}

/** The digits that distinguish generations: the digits in the part of `name` beyond `base`. */
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

/** One generation of a log, with the data that can order it by age. */
export interface Aged {
  readonly name: string;
  readonly mtimeNs: bigint;
  /** The order in which generations were first followed, if it is known. */
  readonly generation?: number;
  /** Time of the first entry in milliseconds, if the content has one. */
  readonly firstEntryMs?: number;
}

/** Numbers in names with more digits than this are dates. */
const countedDigits = 5;

/**
 * Whether the numbers in the names count upwards (`.1` is the oldest), as some writers number them. logrotate counts the other
 * way and renames the whole chain each time. The generations with a known order decide, then the entries' timestamps, then the
 * times of files that no compressor has written.
 */
function countsUpwards(base: string, known: Iterable<Aged>): boolean {
  const counted = [...known].flatMap((aged) => {
    const digits = aged.name === base ? '' : digitsBeyond(aged.name, base);
    return digits && digits.length <= countedDigits ? [{ ...aged, number: Number(digits) }] : [];
  });
  counted.sort((a, b) => a.number - b.number);
  const direction = <T>(ages: readonly (T | undefined)[]): number => {
    const given = ages.filter((age) => age !== undefined);
    const [lowest, highest] = [given.at(0), given.at(-1)];
    if (given.length < 2 || lowest === highest) return 0;
    return highest! > lowest! ? 1 : -1;
  };
  const votes = [
    direction(counted.map(({ generation }) => generation)),
    direction(counted.map(({ firstEntryMs }) => firstEntryMs)),
    direction(counted.filter(({ name }) => !isCompressed(name)).map(({ mtimeNs }) => mtimeNs)),
  ];
  return votes.find((vote) => vote !== 0) === 1;
}

/**
 * Sorts generations of `base`, oldest first: by the timestamps of their first entries, then by their names (`.2` before
 * `.1`, unless the numbers among `known` count upwards; dates), then by the times of the files. `base` is the youngest.
 */
export function byAge(base: string, known: Iterable<Aged>): (a: Aged, b: Aged) => number {
  const direction = countsUpwards(base, known) ? 1 : -1;
  return (a, b) => {
    if (a.name === base || b.name === base) return Number(a.name === base) - Number(b.name === base);
    if (a.firstEntryMs !== undefined && b.firstEntryMs !== undefined && a.firstEntryMs !== b.firstEntryMs) {
      return a.firstEntryMs - b.firstEntryMs;
    }
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
function restartNumber(name: string): number | undefined {
  const found = /^(\d+)\.log(?:\.\d|$)/.exec(name);
  return found ? Number(found[1]) : undefined;
}

/** Like `byAge`, but for logs of a container that was restarted in the meantime: the number of the restart decides first. */
export function byRestartAndAge(base: string, known: readonly Aged[]): (a: Aged, b: Aged) => number {
  const ages = new Map<string, (a: Aged, b: Aged) => number>();
  return (a, b) => {
    const [left, right] = [restartNumber(a.name), restartNumber(b.name)];
    const home = left === undefined ? base : `${left}.log`;
    if (!ages.has(home)) ages.set(home, byAge(home, known));
    return (left ?? 0) - (right ?? 0) || ages.get(home)!(a, b);
  };
}

const digits = /\d+/g;
const formOf = (name: string) => name.replace(digits, '#');

function byDigits(a: string, b: string): number {
  const [left, right] = [a, b].map((name) => (name.match(digits) ?? []).map(BigInt));
  for (let i = 0; i < Math.min(left!.length, right!.length); i++) {
    if (left![i]! !== right![i]!) return left![i]! < right![i]! ? -1 : 1;
  }
  return 0;
}

/**
 * Whether a link that pointed to `from`, and later to `to`, may have pointed to `name` in between: `name` has the same form and
 * digits between theirs, or is a rotated log of a container that started in between. Without `to`: whether the link may have
 * pointed to `name` at any time after `from`.
 */
export function isBetween(name: string, from: string, to?: string): boolean {
  const [first, at] = [restartNumber(from), restartNumber(name)];
  if (first !== undefined && at !== undefined) {
    const last = to === undefined ? Number.POSITIVE_INFINITY : restartNumber(to);
    return to === undefined || (last !== undefined && first < at && at < last);
  }
  if (!/\d/.test(name) || formOf(name) !== formOf(from)) return false;
  return (
    to === undefined || (formOf(to) === formOf(from) && byDigits(from, name) < 0 && byDigits(name, to) < 0)
  );
}

const isoTime = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?/;
const epochTime = /"(?:ts|time|timestamp)":\s*(\d{10,13}(?:\.\d+)?)/;

/** The time of the first entry in a file's beginning, in milliseconds, if it is written in a usual form. */
export function firstEntryMs(start: Buffer): number | undefined {
  const text = start.toString('latin1');
  const iso = isoTime.exec(text)?.[0];
  if (iso) {
    const ms = Date.parse(iso.replace(' ', 'T').replace(',', '.'));
    return Number.isNaN(ms) ? undefined : ms;
  }
  const epoch = epochTime.exec(text)?.[1];
  if (!epoch) return undefined;
  const value = Number(epoch);
  return value < 1e11 ? value * 1000 : value;
}
