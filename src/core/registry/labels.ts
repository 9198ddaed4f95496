import { roles } from '../catalog.ts';
import type { Kind, Labels, RawTags } from '../model.ts';

const clean = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * A metric or tag name in its exported form: `_` for each code point outside `[A-Za-z0-9_]`, and one before a leading digit
 * (spec, Rules for metric names). Runs of `_` stay. Two raw names may have the same form; admission and `createLabeller` decide
 * which of them gets it.
 */
export function sanitizeName(raw: string): string {
  if (clean.test(raw)) return raw;
  const name = raw.replace(/[^A-Za-z0-9_]/gu, '_');
  return /^[0-9]/.test(name) ? `_${name}` : name;
}

/** The sanitized names of a rule's tags as one text, for comparison. */
export const tagNamesOf = (tags: readonly string[]): string =>
  [...new Set(tags.map(sanitizeName))].sort(compareText).join(',');

/** Compares by UTF-16 code units, which gives the same order on every machine, whatever its locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/**
 * Forbidden tags, by name and by value: workflow ids, run ids, timestamps and user ids (spec, Metric cardinality
 * rules).
 */

/** Matches endings of forbidden names: `wf-run-id`, `parentWorkflowID`, `user.id`, `event_timestamp_ms`. */
const idEnding = /(?:workflow|wf|run|execution|user)(?:uu)?ids?$/;
const stampEnding =
  /timestamps?(?:n|u|m|nano|micro|milli)?s?(?:ec|econds?)?$|(?:event|start|end|close|create|creation|update)d?(?:time|at)$/;
/** Names that are forbidden only as a whole: `runtime` and `tests` are allowed. */
const wholeNames = new Set(['ts', 'time', 'datetime', 'unixtime', 'epoch', 'uid', 'uids', 'wid', 'rid']);

/** A tag name without case and punctuation: `wf-run-id`, `WfRunID` and `wf_run_id` are equal. */
export function foldTag(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

/** Whether a tag with this name is forbidden; `more` are further names, folded. */
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
/** Matches times of RFC 3339 §5.6, including the space that its note allows instead of `T`. */
const dateTime =
  /\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[t ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)/gi;
const digitRun = /(?<![\p{L}\p{N}])(?:\d{19}|\d{16}|\d{13}|\d{10})(?![\p{L}\p{N}])/gu;

const firstSecond = Date.UTC(2001, 0, 1) / 1000;
const endSecond = Date.UTC(2101, 0, 1) / 1000;
const shortestMatch = 10;

/** Replaces digits that are a time. Runs of 10, 13, 16 and 19 digits all start with ten digits of seconds. */
function replaceTime(digits: string): string {
  const seconds = Number(digits.slice(0, 10));
  return seconds >= firstSecond && seconds < endSecond ? '_time_' : digits;
}

/**
 * A received tag value without ids and times: `_id_` for a UUID, `_time_` for a date-time or a run of digits that is a
 * time of the years 2001 to 2100. Returns the same string if there are none.
 */
function cleanValue(value: string): string {
  if (value.length < shortestMatch) return value;
  return value.replace(uuid, '_id_').replace(dateTime, '_time_').replace(digitRun, replaceTime);
}

/** Why a tag was dropped or its value rewritten. */
export type TagFault = 'forbidden_tag' | 'forbidden_value' | 'tag_collision';

export interface LabelRules {
  /** Global tags, unsanitized. `svc_service` is not a global tag and is ignored. */
  globalTags: RawTags;
  /** Whether tags come from a sender: then reserved names become `exported_<name>`, and values are checked for ids and times. */
  received: boolean;
  /** The value of `svc_service` for series that have none; `''` adds none. */
  service: string;
  /** The keys of `services`: values of `svc_service` that are never normalised. */
  serviceKeys: ReadonlySet<string>;
  /** Further forbidden names, folded. */
  forbidden: ReadonlySet<string>;
  /** Sanitized names whose values are not checked. */
  allowValues: ReadonlySet<string>;
  /** Whether forbidden names are allowed, as for the agent's own closed label sets. */
  exempt: boolean;
}

interface Labelled {
  readonly labels: Labels;
  readonly service: string;
  /** One entry for each tag that was dropped or rewritten. */
  readonly faults: readonly TagFault[];
}

export interface Labeller {
  /** The labels of the global tags, by name. */
  readonly globals: ReadonlyMap<string, Labels[number]>;
  isForbidden(name: string): boolean;
  /** The labels for raw tags. `isKept` is false for labels that are only compared: they are not interned. */
  label(tags: RawTags, kind: Kind, isKept?: boolean): Labelled;
  /** The labels of the overflow series of a service. */
  overflow(service: string): Labels;
}

const neverCleaned = new Set(['le', 'quantile', 'svc_service', 'instance']);
const maxPairs = 20_000;
const maxNames = 1000;

/**
 * Joins texts into one text: different lists result in different texts, whatever characters they contain. The result is flat. The
 * result of `JSON.stringify` or of a concatenation is a tree of its parts in V8, which takes twice the memory.
 */
export function joinTexts(texts: readonly string[]): string {
  const parts: (string | number)[] = [];
  for (const text of texts) parts.push(text.length, ':', text);
  return parts.join('');
}

/** Unambiguous text of labels. */
export function identityOf(labels: Labels): string {
  const texts: string[] = [];
  for (const [name, value] of labels) texts.push(name, value);
  return joinTexts(texts);
}

/** The text of `identityOf` for a look-up, which is not stored: a tree of its parts costs less to create. */
export function identityToFind(labels: Labels): string {
  let text = '';
  for (const [name, value] of labels) text += `${name.length}:${name}${value.length}:${value}`;
  return text;
}

/**
 * Returns `frontend` for `<product>_frontend` and `<product>-frontend`, and likewise for every role and every key of `services`,
 * such as `bench`, unless the value is itself a key. The longest match is used: `my-bench`, not `bench`.
 */
export function roleOf(value: string, serviceKeys: ReadonlySet<string>): string {
  if (serviceKeys.has(value)) return value;
  let found = '';
  for (const name of [...roles, ...serviceKeys]) {
    const before = value.at(-name.length - 1);
    const ends = value.length > name.length + 1 && value.endsWith(name) && (before === '_' || before === '-');
    if (ends && name.length > found.length) found = name;
  }
  return found || value;
}

function isReserved(name: string, kind: Kind, received: boolean): boolean {
  if (name === 'le') return kind === 'histogram';
  if (name === 'quantile') return kind === 'summary';
  return received && (name === 'job' || name === 'instance' || name.startsWith('__'));
}

/**
 * Converts raw tags into labels. Of two tags with the same sanitized name, the one whose raw name sorts first is used. Tags with
 * an empty value are dropped.
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

  /** Tags by sanitized name, without forbidden and colliding ones. */
  const ownTags = (tags: RawTags, faults: TagFault[]): Map<string, string> => {
    const named = new Map<string, string>();
    const raws = Object.keys(tags);
    if (raws.length > 1) raws.sort();
    for (const raw of raws) {
      // A lone surrogate has no form in UTF-8.
      const value = tags[raw]!.toWellFormed();
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

  /** Renames tags with a reserved name to `exported_<name>`, and repeats the prefix until the name is free. */
  const rename = (named: Map<string, string>, kind: Kind) => {
    const taken: string[] = [];
    for (const name of named.keys()) {
      if (globals.has(name) || isReserved(name, kind, received)) taken.push(name);
    }
    for (const name of taken) {
      const value = named.get(name)!;
      named.delete(name);
      let free = `exported_${name}`;
      while (named.has(free) || globals.has(free)) free = `exported_${free}`;
      named.set(free, value);
    }
  };

  const addService = (named: Map<string, string>) => {
    const sent = named.get('svc_service');
    if (sent !== undefined) named.set('svc_service', received ? roleOf(sent, serviceKeys) : sent);
    else if (rules.service !== '') named.set('svc_service', rules.service);
  };

  const sorted = (named: ReadonlyMap<string, string>, isKept = true): Labels => {
    const labels: Label[] = isKept ? [...named].map(([name, value]) => pair(name, value)) : [...named];
    for (const global of globals.values()) if (!named.has(global[0])) labels.push(global);
    return labels.sort(([a], [b]) => compareText(a, b));
  };

  return {
    globals,
    isForbidden,
    label(tags, kind, isKept) {
      const faults: TagFault[] = [];
      const named = ownTags(tags, faults);
      rename(named, kind);
      addService(named);
      return { labels: sorted(named, isKept), service: named.get('svc_service') ?? '', faults };
    },
    overflow(service) {
      const named = new Map([['overflow', 'true']]);
      if (service !== '') named.set('svc_service', service);
      return sorted(named);
    },
  };
}

/** Caches values that are derived from names, such as their sanitized form: there are few names, and every series has some. */
export function createNames(read: (raw: string) => string): (raw: string) => string {
  const known = new Map<string, string>();
  return (raw) => {
    const name = known.get(raw) ?? read(raw);
    if (known.size < maxNames) known.set(raw, name);
    return name;
  };
}

type Label = Labels[number];

function globalPairs(tags: RawTags): ReadonlyMap<string, Label> {
  const pairs = new Map<string, Label>();
  for (const raw of Object.keys(tags).sort()) {
    const [name, value] = [sanitizeName(raw), tags[raw]!.toWellFormed()];
    if (name !== '' && value !== '' && name !== 'svc_service' && !pairs.has(name))
      pairs.set(name, [name, value]);
  }
  return pairs;
}

/**
 * Interns label pairs: a large number of series share few of them. Once there are too many, the pairs of the label with the most
 * values are removed, because they repeat least.
 */
export function createPairs(): (name: string, value: string) => Label {
  const known = new Map<string, Map<string, Label>>();
  let count = 0;
  const forget = () => {
    const [most] = [...known].sort(([, a], [, b]) => b.size - a.size);
    const [name, { size }] = most!;
    // With many names that have few values each, removing one name at a time would take too long.
    if (2 * size < maxPairs) known.clear();
    else known.delete(name);
    count = known.size === 0 ? 0 : count - size;
  };
  return (name, value) => {
    if (count > maxPairs) forget();
    const values = known.get(name) ?? new Map<string, Label>();
    const pair = values.get(value) ?? [name, value];
    if (!values.has(value)) {
      known.set(name, values.set(value, pair));
      count += 1;
    }
    return pair;
  };
}
