import { roles } from './catalog.ts';
import type { Kind, Labels, RawTags } from './model.ts';

const clean = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * A metric or tag name as it is exported: one `_` for each code point outside `[A-Za-z0-9_]`, and one in
 * front of a leading digit (spec, Rules for metric names). Runs are not collapsed. Pure, so callers may memo it.
 * Distinct names can meet; who wins is decided where they meet.
 */
export function sanitizeName(raw: string): string {
  if (clean.test(raw)) return raw;
  const name = raw.replace(/[^A-Za-z0-9_]/gu, '_');
  return /^[0-9]/.test(name) ? `_${name}` : name;
}

/** The text with each lone surrogate as U+FFFD, so that it has a UTF-8 form. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** Order of UTF-16 code units: the same on every machine, whatever its locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/**
 * What must not become a tag, by name and by value: workflow ids, run ids, timestamps and user ids (spec,
 * Metric cardinality rules; contract, Names and labels).
 */

/** Names that end so: `wf-run-id`, `parentWorkflowID`, `user.id`, `event_timestamp_ms`. */
const idEnding = /(?:workflow|wf|run|execution|user)ids?$/;
const stampEnding = /timestamps?(?:n|u|m|nano|micro|milli)?s?(?:ec|econds?)?$/;
/** Names too short to be looked for inside others: `runtime` and `tests` are fine. */
const wholeNames = new Set(['ts', 'time', 'datetime', 'unixtime', 'epoch', 'uid', 'uids', 'wid', 'rid']);

/** A tag name without case and punctuation: `wf-run-id`, `WfRunID` and `wf_run_id` are one. */
export function foldTag(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

/** Whether a tag of this name is forbidden; `more` are further names, folded. */
export function isForbiddenTag(name: string, more?: ReadonlySet<string>): boolean {
  const folded = foldTag(name);
  return (
    wholeNames.has(folded) ||
    idEnding.test(folded) ||
    stampEnding.test(folded) ||
    (more?.has(folded) ?? false)
  );
}

const uuid = /[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}/gi;
/** RFC 3339 §5.6, with the space that its note allows for `T`. */
const dateTime =
  /\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[t ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)/gi;
const digitRun = /(?<![\p{L}\p{N}])(?:\d{19}|\d{16}|\d{13}|\d{10})(?![\p{L}\p{N}])/gu;

const firstSecond = Date.UTC(2001, 0, 1) / 1000;
const endSecond = Date.UTC(2101, 0, 1) / 1000;
const shortestMatch = 10;

/** Runs of 10, 13, 16 and 19 digits all begin with ten digits of seconds. */
function hideTime(digits: string): string {
  const seconds = Number(digits.slice(0, 10));
  return seconds >= firstSecond && seconds < endSecond ? '_time_' : digits;
}

/**
 * A received tag value without what would make it unique: `_id_` for a UUID, `_time_` for a date-time or a
 * run of digits that is a time of the years 2001 to 2100. The same string if there is nothing of that kind.
 */
export function cleanValue(value: string): string {
  if (value.length < shortestMatch) return value;
  return value.replace(uuid, '_id_').replace(dateTime, '_time_').replace(digitRun, hideTime);
}

/** Why a tag did not become a label as it was. */
export type TagFault = 'forbidden_tag' | 'forbidden_value' | 'tag_collision';

export interface LabelRules {
  /** Global tags, unsanitized. `svc_service` among them is ignored: it is not one. */
  globalTags: RawTags;
  /** Tags come from someone else: reserved names become `exported_<name>`, values are cleaned. */
  received: boolean;
  /** The value of `svc_service` for series that come without; `''`: none is added. */
  service: string;
  /** Keys of `services`: values of `svc_service` that are never normalised. */
  serviceKeys: ReadonlySet<string>;
  /** Further forbidden names, folded. */
  forbidden: ReadonlySet<string>;
  /** Sanitized names whose values are left alone. */
  allowValues: ReadonlySet<string>;
  /** Forbidden names are let through: the agent's own closed label sets. */
  exempt: boolean;
}

export interface Labelled {
  readonly labels: Labels;
  readonly service: string;
  /** What befell tags, once for each that was dropped or changed. */
  readonly faults: readonly TagFault[];
}

export interface Labeller {
  /** The global tags' labels by name. */
  readonly globals: ReadonlyMap<string, Labels[number]>;
  isForbidden(name: string): boolean;
  label(tags: RawTags, kind: Kind): Labelled;
  /** The labels of the series that stands for all those of a service over the limit. */
  overflow(service: string): Labels;
}

const neverCleaned = new Set(['le', 'quantile', 'svc_service', 'instance']);
const roleWord = new RegExp(`^.+[-_](${roles.join('|')})$`, 's');
const maxPairs = 20_000;
const maxNames = 1000;

/** Unambiguous text of labels: whatever stands in names and values, different labels have different texts. */
export function identityOf(labels: Labels): string {
  return JSON.stringify(labels);
}

/** `<product>_frontend` and `<product>-frontend` as `frontend`, unless the value is itself a key. */
export function roleOf(value: string, serviceKeys: ReadonlySet<string>): string {
  if (serviceKeys.has(value)) return value;
  return roleWord.exec(value)?.[1] ?? value;
}

function isReserved(name: string, kind: Kind, received: boolean): boolean {
  if (name === 'le') return kind === 'histogram';
  if (name === 'quantile') return kind === 'summary';
  return received && (name === 'job' || name === 'instance' || name.startsWith('__'));
}

/**
 * Turns raw tags into labels under fixed rules. Tags that meet after sanitizing: the first raw name in order
 * wins. Empty values are absent labels.
 */
export function createLabeller(rules: LabelRules): Labeller {
  const { received, serviceKeys } = rules;
  const globals = globalPairs(rules.globalTags);
  const pair = createPairs();

  const isForbidden = (name: string) => !rules.exempt && isForbiddenTag(name, rules.forbidden);
  const nameOf = createNames((raw) => {
    const name = sanitizeName(raw);
    return isForbidden(name) ? '' : name;
  });
  const shownValue = (name: string, value: string) =>
    !received || neverCleaned.has(name) || rules.allowValues.has(name) ? value : cleanValue(value);

  /** Tags by sanitized name, forbidden and meeting ones gone. */
  const ownTags = (tags: RawTags, faults: TagFault[]): Map<string, string> => {
    const named = new Map<string, string>();
    for (const raw of Object.keys(tags).sort()) {
      const value = wellFormed(tags[raw]!);
      if (value === '') continue;
      const name = nameOf(raw);
      if (name === '') faults.push('forbidden_tag');
      else if (named.has(name)) faults.push('tag_collision');
      else {
        const shown = shownValue(name, value);
        if (shown !== value) faults.push('forbidden_value');
        named.set(name, shown);
      }
    }
    return named;
  };

  /** Moves tags whose name is taken to `exported_<name>`, the prefix repeated until that is free. */
  const rename = (named: Map<string, string>, kind: Kind) => {
    for (const [name, value] of [...named]) {
      if (!globals.has(name) && !isReserved(name, kind, received)) continue;
      named.delete(name);
      let free = `exported_${name}`;
      while (named.has(free) || globals.has(free)) free = `exported_${free}`;
      named.set(free, value);
    }
  };

  const serve = (named: Map<string, string>) => {
    const sent = named.get('svc_service');
    if (sent !== undefined) named.set('svc_service', received ? roleOf(sent, serviceKeys) : sent);
    else if (rules.service !== '') named.set('svc_service', rules.service);
  };

  const sorted = (named: ReadonlyMap<string, string>): Labels => {
    const labels = [...named].map(([name, value]) => pair(name, value));
    for (const global of globals.values()) if (!named.has(global[0])) labels.push(global);
    return labels.sort(([a], [b]) => compareText(a, b));
  };

  return {
    globals,
    isForbidden,
    label(tags, kind) {
      const faults: TagFault[] = [];
      const named = ownTags(tags, faults);
      rename(named, kind);
      serve(named);
      return { labels: sorted(named), service: named.get('svc_service') ?? '', faults };
    },
    overflow(service) {
      const named = new Map([['overflow', 'true']]);
      if (service !== '') named.set('svc_service', service);
      return sorted(named);
    },
  };
}

/** Remembers what becomes of tag names: they are few, and asked for with every series. */
function createNames(read: (raw: string) => string): (raw: string) => string {
  const known = new Map<string, string>();
  return (raw) => {
    const name = known.get(raw) ?? read(raw);
    if (known.size < maxNames) known.set(raw, name);
    return name;
  };
}

type Pair = Labels[number];

function globalPairs(tags: RawTags): ReadonlyMap<string, Pair> {
  const pairs = new Map<string, Pair>();
  for (const raw of Object.keys(tags).sort()) {
    const [name, value] = [sanitizeName(raw), wellFormed(tags[raw]!)];
    if (name !== '' && value !== '' && name !== 'svc_service' && !pairs.has(name))
      pairs.set(name, [name, value]);
  }
  return pairs;
}

/** One pair for equal pairs: the same few values stand on very many series. */
export function createPairs(): (name: string, value: string) => Pair {
  const known = new Map<string, Map<string, Pair>>();
  let count = 0;
  return (name, value) => {
    if (count > maxPairs) {
      known.clear();
      count = 0;
    }
    const values = known.get(name) ?? new Map<string, Pair>();
    const pair = values.get(value) ?? [name, value];
    if (!values.has(value)) {
      known.set(name, values.set(value, pair));
      count += 1;
    }
    return pair;
  };
}
