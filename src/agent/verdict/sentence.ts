import type { StatusFacts, Verdict } from '../report.ts';
import type { Explained } from './causes.ts';
import { type Begun, type Found, idOf, reasonSinceMs } from './found.ts';
import { inNumber, isKind, kinds, overPredicates } from './kinds.ts';
import { failoverOf, subjectOf } from './probe-text.ts';

const listed = (items: readonly string[]): string =>
  items.length < 2 ? (items[0] ?? '') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;

/** Nouns with the same form in the plural. */
const unchanging = /^replication$| (?:of|from)$|^the frontend$/;
/** Nouns whose first word is in the plural, too. */
const inPlural: Readonly<Record<string, string>> = {
  'the disk of store': 'the disks of stores',
  'the task queue': 'the task queues',
  'the backlog of task list': 'the backlogs of task lists',
  'the canary in domain': 'the canaries in domains',
  'the certificate of': 'the certificates of',
  'the log of role': 'the logs of roles',
  'the schema of database': 'the schemas of databases',
};

const plural = (noun: string, count: number): string => {
  if (count === 1) return noun;
  const known = inPlural[noun];
  if (known !== undefined || unchanging.test(noun)) return known ?? noun;
  return noun.endsWith('y') ? `${noun.slice(0, -1)}ies` : `${noun}s`;
};

/** Nouns whose text with a number is irregular. */
const inNumbers: Readonly<Record<string, (count: number) => string>> = {
  'requests from': (count) => `requests between ${count} pairs of roles`,
  'data of': (count) => `data of ${count} components`,
  'the certificate of': (count) => `the certificates of ${count} probes`,
  'the task queue': (count) => `${count} task queues`,
  replication: (count) => `${count} replication streams`,
};
/** A noun with a number. The number stands before what is counted: `the disks of 5 stores`. */
const numbered = (noun: string, count: number): string =>
  inNumbers[noun]?.(count) ?? plural(noun, count).replace(/^(.* (?:of|in) )?/, `$1${count} `);

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const predicateOf = ({ kind, predicate }: Found): string => predicate ?? kinds[kind].predicate;

/** A clause about one problem: `role frontend is down: refused: connection refused`. */
export function whatOf(found: Found): string {
  const { kind, subject, detail } = found;
  const clause = [kinds[kind].noun, subject, inNumber(predicateOf(found), false)].filter(Boolean).join(' ');
  return detail ? `${clause}: ${detail}` : clause;
}

/** The text about the end of an incident: `store main recovered`. The kind may be from another version of the agent. */
export function overTextOf(kind: string, subject: string, hasRestarted = false): string {
  if (!isKind(kind)) return `${subject} recovered`.trimStart();
  const predicate = overPredicates[kind];
  return [kinds[kind].noun, subject, hasRestarted ? `restarted and ${predicate}` : predicate]
    .filter(Boolean)
    .join(' ');
}

type Named = Pick<Found, 'kind' | 'subject'>;

/** The sentence for the time when all evidence looks back at causes that are over. */
export const overSentence = (causes: readonly Named[]): string => {
  const texts = causes.map((cause) => overTextOf(cause.kind, nameOf(cause)));
  return `${capital(listed([...new Set(texts)]))}; it is not known yet whether the consequences are over`;
};

/** How many subjects a sentence names, so that it stays short. */
const mostNamed = 4;
const longestName = 60;

/** The store of a subject such as `main/persistence`. */
export const storeOf = (subject: string): string => subject.split('/')[0]!;

/** The name of a subject in a sentence. Databases of one store that is down are named as one store. */
const nameOf = ({ kind, subject }: Named): string =>
  kinds[kind].noun === 'store' || kind === 'disk_full' ? storeOf(subject) : subject;

/** A clause about problems of one kind and one predicate. */
function clauseOf(found: readonly Found[]): string {
  const [first] = found;
  const { noun } = kinds[first!.kind];
  const names = [...new Set(found.map(nameOf))];
  const predicate = predicateOf(first!);
  if (names[0] === '') return `${noun} ${inNumber(predicate, false)}`;
  const verb = inNumber(predicate, names.length > 1);
  const isShort = names.length <= mostNamed && names.every(({ length }) => length <= longestName);
  return isShort
    ? `${plural(noun, names.length)} ${listed(names)} ${verb}`
    : `${numbered(noun, names.length)} ${verb}`;
}

/** The nouns for the subjects of consequences, in the order in which a sentence names them. */
const counted: readonly (readonly [noun: string, of: (found: Found) => string | undefined])[] = [
  ['role', ({ about, kind }) => (kind === 'persistence_latency' ? undefined : about.role)],
  ['cluster', ({ kind, subject }) => (kind === 'cluster_down' ? subject : undefined)],
  ['domain', ({ about, kind }) => (kind === 'recovery' ? undefined : about.domain)],
  ['objective', ({ kind, subject }) => (kind === 'recovery' ? subject : undefined)],
  ['backup', ({ kind, subject }) => (kind.startsWith('backup_') ? subject : undefined)],
  ['replication', ({ kind, subject }) => (kind.startsWith('replication') ? subject : undefined)],
];

const moreText = (count: number): string => `${count} more ${plural('problem', count)}`;

type About = Pick<Found, 'kind' | 'subject' | 'about'>;

/** Subjects of consequences by their noun. A role that is among the `causes` is not a consequence of itself. */
function subjectsOf(
  all: readonly Found[],
  causes: readonly About[],
): [noun: string, subjects: Set<string>][] {
  const roles = new Set(causes.flatMap(({ kind, about }) => (kinds[kind].noun === 'role' ? about.role : [])));
  const isOwn = (noun: string, subject: string) => noun === 'role' && roles.has(subject);
  return counted.map(([noun, of]) => [
    noun,
    new Set(all.flatMap((one) => of(one) ?? []).filter((subject) => !isOwn(noun, subject))),
  ]);
}

const numbersOf = (subjects: readonly [noun: string, of: ReadonlySet<string>][]): string[] =>
  subjects.flatMap(([noun, { size }]) => (size > 0 ? [`${size} ${plural(noun, size)}`] : []));

/** The number of subjects of each noun: `4 roles, 3 domains and 2 objectives`. */
export function consequencesText(all: readonly Found[], causes: readonly About[]): string | undefined {
  const parts = numbersOf(subjectsOf(all, causes));
  if (parts.length > 0) return listed(parts);
  return all.length > 0 ? moreText(all.length) : undefined;
}

const inVerb = (parts: readonly string[], one: string, many: string): string[] => {
  if (parts.length === 0) return [];
  return [`${listed(parts)} ${parts.length === 1 && /^(?:1|the) /.test(parts[0]!) ? one : many}`];
};

/** The roles that are down because of something else in the same role, such as a large heap: `the role` or `2 of the roles`. */
function ownDown(down: readonly Found[], causes: readonly Begun[]): string[] {
  const alive = new Set(causes.flatMap(({ kind, about }) => (kinds[kind].isDown ? [] : (about.role ?? []))));
  const roles = new Set(down.flatMap(({ about: { role = '' } }) => (alive.has(role) ? role : [])));
  if (roles.size === 0) return [];
  return [causes.length === 1 ? 'the role' : `${roles.size} of the ${plural('role', 2)}`];
}

/** Whether a problem is the page of a role that is down. Such a page cannot be scraped, which a sentence need not say. */
const isOwnPage = ({ kind, about }: Found, causes: readonly Found[]): boolean =>
  kind === 'scrape_down' && causes.some((one) => kinds[one.kind].isDown && one.about.role === about.role);

/** The consequences as a clause: `; 4 roles are down and 1 domain suffers because of it`. */
function becauseText(consequences: readonly Found[], causes: readonly Begun[]): string {
  const all = consequences.filter((one) => !isOwnPage(one, causes));
  if (all.length === 0) return '';
  const isOne = new Set(causes.map(nameOf)).size === 1;
  const dead = all.filter(({ kind }) => kinds[kind].isDown);
  const down = new Map(subjectsOf(dead, causes));
  const suffering = subjectsOf(all, causes).map(([noun, of]): [string, Set<string>] => [
    noun,
    new Set([...of].filter((one) => !down.get(noun)!.has(one))),
  ]);
  const clauses = [
    ...inVerb([...ownDown(dead, causes), ...numbersOf([...down])], 'is down', 'are down'),
    ...inVerb(numbersOf(suffering), 'suffers', 'suffer'),
  ];
  if (clauses.length === 0) return `; ${isOne ? 'it causes' : 'they cause'} ${moreText(all.length)}`;
  return `; ${listed(clauses)} because of ${isOne ? 'it' : 'them'}`;
}

/** A time as `19:44:10 UTC`, with the day if it is not today. */
export function timeText(atMs: number, nowMs: number): string {
  const [day, time] = new Date(atMs).toISOString().split('T') as [string, string];
  const isToday = day === new Date(nowMs).toISOString().slice(0, 10);
  return `${isToday ? '' : `${day} `}${time.slice(0, 8)} UTC`;
}

/** How many clauses about causes a sentence has; the other causes are only counted. */
const mostClauses = 3;

/** Groups causes by kind and predicate, in their order. */
function grouped(roots: readonly Begun[]): Begun[][] {
  const groups = new Map<string, Begun[]>();
  for (const root of roots) {
    const key = `${root.kind} ${predicateOf(root)}`;
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(root);
  }
  return [...groups.values()];
}

/**
 * The problems of which it is unknown whether they last: problems that were causes of their own and cannot be read. If another
 * problem that is seen now follows from such a problem, it lasts: for example the full disk of a store that is down. A problem
 * that followed from it and is unknown, too, is as doubtful.
 */
export function doubtfulIn(all: readonly Explained[]): ReadonlySet<Explained> {
  const byId = new Map(all.map((one) => [idOf(one.found), one]));
  const lasting = new Set(all.flatMap(({ found, causedBy }) => (found.unread ? [] : (causedBy ?? []))));
  const isDoubtful = ({ found, causedBy = '' }: Explained): boolean => {
    if (!found.unread) return false;
    if (found.unread.wasCause) return !lasting.has(idOf(found));
    const cause = byId.get(causedBy);
    return cause !== undefined && isDoubtful(cause);
  };
  return new Set(all.filter(isDoubtful));
}

/** The text about problems that cannot be read: `it is no longer known whether the frontend answers slowly`. */
function doubtText(doubtful: readonly Begun[]): string[] {
  const groups = grouped(doubtful);
  if (groups.length === 0) return [];
  const rest = doubtful.length - groups.slice(0, mostClauses).flat().length;
  const others = rest > 0 ? [`${moreText(rest)} ${rest === 1 ? 'lasts' : 'last'}`] : [];
  return [
    `it is no longer known whether ${listed([...groups.slice(0, mostClauses).map(clauseOf), ...others])}`,
  ];
}

/** The sentence about what is wrong, with and without its times. */
export function wrongSentence(
  all: readonly Explained[],
  nowMs: number,
): Pick<Verdict, 'headline' | 'sentence'> {
  const doubtful = doubtfulIn(all);
  const sure = all.filter((one) => !doubtful.has(one));
  const roots = sure.filter(({ causedBy }) => causedBy === undefined).map(({ found }) => found);
  const groups = grouped(roots).slice(0, mostClauses);
  const shown = groups.flat();
  const ids = new Set(shown.map(idOf));
  const folded = sure.filter(({ causedBy = '' }) => ids.has(causedBy)).map(({ found }) => found);
  const rest = sure.length - shown.length - folded.length;
  const more = rest > 0 ? [moreText(rest)] : [];
  const because = becauseText(folded, shown);
  const doubts = doubtText([...doubtful].map(({ found }) => found));
  const sentenceOf = (clause: (group: readonly Begun[]) => string) =>
    capital([`${listed([...groups.map(clause), ...more])}${because}`, ...doubts].filter(Boolean).join('; '));
  const since = (group: readonly Begun[]) => {
    const start = timeText(Math.min(...group.map(({ sinceMs }) => sinceMs)), nowMs);
    // The reasons of several subjects may have begun one by one.
    const reasonMs = group.length > 1 ? undefined : reasonSinceMs(group[0]!);
    return reasonMs === undefined ? start : `${start}, for this reason since ${timeText(reasonMs, nowMs)}`;
  };
  return {
    headline: sentenceOf(clauseOf),
    sentence: `${sentenceOf((group) => `${clauseOf(group)} (since ${since(group)})`)}.`,
  };
}

/** The nouns for what is watched, by the kind of the probe. They are used when all is well. */
const watchedNouns: Readonly<Record<string, string>> = {
  health: 'role',
  store: 'store',
  cluster: 'cluster',
  domain: 'domain',
  archive: 'archive',
  backup: 'backup',
};

/** The list of what is watched, with numbers. */
function watched({ probes, scrapes, statsd, logs }: StatusFacts): string[] {
  const roles = new Set([...scrapes, ...statsd].map(({ service }) => service));
  const counts = new Map([['role', roles]]);
  for (const probe of probes) {
    const noun = watchedNouns[probe.kind];
    if (noun === undefined) continue;
    const subject = probe.kind === 'store' ? subjectOf(probe).split('/')[0]! : subjectOf(probe);
    counts.set(noun, (counts.get(noun) ?? new Set()).add(subject));
  }
  counts.set('log file', new Set(logs.map(({ path }) => path)));
  return [...counts].flatMap(([noun, { size }]) => (size > 0 ? [`${size} ${plural(noun, size)}`] : []));
}

/** How many checks have no result yet, as a clause; undefined if every check has a result. */
export function pendingText({
  probes,
  scrapes,
}: Pick<StatusFacts, 'probes' | 'scrapes'>): string | undefined {
  const pending = [
    ...probes.filter(({ last }) => !last),
    ...scrapes.filter(({ up, lastFailure }) => !up && !lastFailure),
  ].length;
  const checks = probes.length + scrapes.length;
  if (pending === 0) return undefined;
  return `${pending} of ${checks} checks ${pending === 1 ? 'has' : 'have'} no result yet`;
}

/**
 * The domains of which it is not known whether they can fail over, as a clause with the reason for the first domain; undefined if
 * it is known for every domain. A local domain has no readiness.
 */
export function unknownFailoverText({ probes }: Pick<StatusFacts, 'probes'>): string | undefined {
  const unknown = probes.flatMap((probe) => {
    const readiness = probe.kind === 'domain' && probe.last?.ok === true ? failoverOf(probe) : undefined;
    return readiness && readiness.ready === undefined ? [{ probe, ...readiness }] : [];
  });
  const [first] = unknown;
  if (!first) return undefined;
  const { length } = unknown;
  const names =
    length > mostNamed
      ? `${length} domains`
      : `${plural('domain', length)} ${listed(unknown.map((one) => subjectOf(one.probe)))}`;
  return `it is not known whether ${names} can fail over: ${first.why}`;
}

/** Why nothing is watched: logs are counted when a file is found. */
function nothingWatched({ roles }: StatusFacts): string {
  if (roles.length === 0) return 'Nothing is watched: the configuration names no role, store or log';
  const whose = `${plural('role', roles.length)} ${listed(roles)}`;
  return `No log file of ${whose} has been found yet, and nothing else is watched`;
}

/** The verdict if no problem is known. */
export function verdictWithoutProblems(facts: StatusFacts): Pick<Verdict, 'level' | 'headline'> {
  const all = watched(facts);
  if (!facts.ready) return { level: 'unknown', headline: 'The agent is starting' };
  if (all.length === 0) return { level: 'unknown', headline: nothingWatched(facts) };
  const pending = pendingText(facts);
  if (pending !== undefined) return { level: 'unknown', headline: `Nothing is wrong so far; ${pending}` };
  return { level: 'ok', headline: `All is well: ${listed(all)}` };
}
