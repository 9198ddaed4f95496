import { roles } from './catalog.ts';
import { cleanValue, isForbiddenTag } from './forbidden.ts';
import type { Kind, Labels, RawTags } from './model.ts';
import { compareText, sanitizeName, wellFormed } from './names.ts';

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
