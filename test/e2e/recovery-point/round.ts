import { appendFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRandom } from '../../../examples/service/random.ts';
import { flip } from '../../flip.ts';
import { folder } from '../../run-folder.ts';
import { anyMoment, until } from '../../until.ts';
import { type RunningAgent, startAgent } from '../process.ts';

// Plays one round: a writer with a sequence, backups, a fault, the loss of the store. What the built agent claims then is
// compared with what the server's own tools restore. Nothing here knows how the agent reads a backup.

export type Random = () => number;

/** Numbers that look random and are the same in every run. */
export const seeded = (seed: number): Random => createRandom(seed).next;

export const oneOf = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)]!;

/** What the configuration says about the server from which dumps and copies of files are made. */
export const fromServer = (random: Random, isOfReplica?: true): string =>
  isOfReplica ? oneOf(random, ['', ', takenFrom: replica']) : ', takenFrom: primary';

/** Flips a bit of a file, at a random or a given place. */
export function flipByte(path: string, random: Random, from = 0, to = 1): void {
  flip(path, Math.floor(statSync(path).size * (from + (to - from) * random())));
}

/** A store with its backups. `restores` restores each backup with the tools of the store. */
export interface Bed {
  /** The blocks `stores` and `backups` of agent.yaml. */
  yaml: string;
  /** The integrity level of the backups. */
  level: string;
  /** The state directory of the agent, in which runs of jobs are recorded. Default: a new one. */
  state?: string;
  /** When the last backup, or the last archiving of the log, began; ms since the epoch. */
  begunMs?: number;
  /** Whether the configuration says in which zone dumps state local times. */
  hasZone?: boolean;
  /** Resolves when the store has started again. */
  restarts?: Promise<void>;
  /** Commits one row. */
  write(sequence: number): Promise<unknown>;
  /** Kills the store. */
  lose(): Promise<void>;
  /** What each backup restores to, by itself and with its log: the sequence numbers found. Throws nothing. */
  restores(): Promise<(readonly number[])[]>;
  remove(): Promise<void>;
}

/** What goes wrong in a round: `play` makes the backups, and `after` acts when the store is gone. */
export interface Plot<B extends Bed> {
  name: string;
  /** Settings of the server. */
  settings?: readonly string[];
  /** Set if nothing goes wrong: at the level `full` the agent must claim a recovery point, the start of the last backup. */
  isGood?: true;
  /** Set if that is so only if the configuration states the zone. */
  needsZone?: true;
  /** Set if the backups are from a replica, and the configuration does not say that they are from the primary. */
  isOfReplica?: true;
  play(bed: B, moments: Moments): Promise<void>;
  after?(bed: B, random: Random): Promise<void> | void;
}

/** A plot without special conditions: what is played, and what is damaged after it. */
export const plot = <B extends Bed>(
  name: string,
  play: Plot<B>['play'],
  after?: Plot<B>['after'],
): Plot<B> => ({ name, play, after });

interface Moments {
  random: Random;
  /** Resolves after that many more rows were committed. */
  rows(count: number): Promise<void>;
}

/** Commits rows one after the other, and records when the server had confirmed each: ms since the epoch. */
function startWriter(bed: Bed) {
  const confirmedMs = new Map<number, number>();
  let stopped = false;
  const ended = (async () => {
    for (let sequence = 1; !stopped; sequence++) {
      await bed.restarts;
      try {
        await bed.write(sequence);
      } catch {
        // Nobody knows whether this row was committed.
        if (bed.restarts !== undefined) continue;
        return;
      }
      confirmedMs.set(sequence, Date.now());
      await anyMoment(Math.random, 20);
    }
  })();
  return {
    confirmedMs,
    rows: async (count: number) => {
      const wanted = confirmedMs.size + count;
      await until(`${wanted} rows`, () => confirmedMs.size >= wanted);
    },
    async stop() {
      stopped = true;
      await ended;
    },
  };
}

/** What the agent claims. */
interface Claim {
  /** `svc_recovery_ready`; undefined if it is absent. */
  ready?: number;
  /** Each `svc_backup_recovery_point_timestamp_seconds`, by backup, and the point of the chain in `/api/status`; in ms. */
  pointsMs: Readonly<Record<string, number>>;
  msg: string;
}

/** Starts the built agent beside the store, with a new state. */
async function openAgent(bed: Bed) {
  const place = folder();
  const file = join(place.path, 'agent.yaml');
  writeFileSync(
    file,
    `stateDirectory: ${bed.state ?? join(place.path, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
roles: [history]
services: {history: {logs: {paths: [${place.path}/none.log]}}}
${bed.yaml}`,
  );
  const agent = await startAgent(file);
  return {
    claim: () => claimOf(agent),
    async close() {
      await agent.end();
      place.remove();
    },
  };
}

/** Lets the agent check what is there, and reads its claim. */
async function claimOf(agent: RunningAgent): Promise<Claim> {
  const get = async (path: string) => (await fetch(`http://${agent.address('admin')}${path}`)).json();
  const names = ((await get('/probes')) as { name: string }[]).map(({ name }) => name);
  // The tables of the store are known from the poll with which its schedule begins.
  const metrics = async () => (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
  await until('the store was polled', async () => (await metrics()).includes('\nsvc_store_up{'));
  // The next check sees what a verification finds, and the end of a log.
  const checked = async () => {
    let said = '';
    for (const name of names.filter((each) => /^(?:store|backup|recovery)\//.test(each)))
      said += JSON.stringify(await get(`/probe?name=${encodeURIComponent(name)}`));
    return said;
  };
  for (let round = 0; round < 2; round++) await checked();
  const awaited = /being verified|not been (?:asked|verified) yet/;
  await until('the verification has ended', async () => !awaited.test(await checked()));
  const shown = JSON.stringify(await get('/probe?name=recovery%2Fmain%2Fpersistence&debug=1'));
  const page = await metrics();
  const pointsMs: Record<string, number> = {};
  const points = page.matchAll(
    /^svc_backup_recovery_point_timestamp_seconds\{(?=[^}]*backup="(\w+)")[^}]*\} (\S+)$/gm,
  );
  for (const [, name, value] of points) pointsMs[name!] = Number(value) * 1000;
  const chain = shown.match(/"recoveryPoint":"([^"]+)"/)?.[1];
  if (chain !== undefined) pointsMs.chain = Date.parse(chain);
  const ready = /^svc_recovery_ready\{[^}]*\} (\d)$/m.exec(page)?.[1];
  return {
    ...(ready === undefined ? {} : { ready: Number(ready) }),
    pointsMs,
    msg: shown.match(/"msg":"([^"]*)"/)?.[1] ?? '',
  };
}

interface Verdict {
  /** The claims while the store is there, unless its fault comes later, and when it is gone. */
  claims: Claim[];
  /** The number of rows that the best restore has, and of rows that the server had confirmed. */
  restored: number;
  confirmed: number;
  /** When the server had confirmed the first row that the best restore lacks; Infinity if it lacks none. */
  firstLostMs: number;
  /** What is wrong with the claims, for the message of the test; empty if they are right. */
  broken: string[];
}

/**
 * Plays a round. The promise is that what was confirmed before the claimed point is there after a restore. A claim is compared
 * with the best of all restores, so that an operator's choice never refutes it.
 */
export async function playRound<B extends Bed>(bed: B, plot: Plot<B>, random: Random): Promise<Verdict> {
  const writer = startWriter(bed);
  try {
    await writer.rows(5 + Math.floor(random() * 20));
    await plot.play(bed, { random, rows: writer.rows });
    await writer.rows(Math.floor(random() * 30));
    const claims: Claim[] = [];
    // Either an agent watched all the time, or one is started when the store is gone.
    let agent = plot.after ? undefined : await openAgent(bed);
    try {
      if (agent) claims.push(await agent.claim());
      await bed.lose();
      await writer.stop();
      await plot.after?.(bed, random);
      agent ??= await openAgent(bed);
      claims.push(await agent.claim());
    } finally {
      await agent?.close();
    }
    const restores = await bed.restores();
    const verdict = verdictOf(claims, writer.confirmedMs, restores);
    if (plot.isGood && bed.level === 'full' && (!plot.needsZone || bed.hasZone))
      verdict.broken.push(...claims.flatMap((claim) => earlyFault(bed, claim, writer.confirmedMs)));
    noteRound(plot, bed, verdict);
    return verdict;
  } finally {
    await writer.stop();
  }
}

/** The fault of a claim that is true and useless: rows are missing that were confirmed well before the last backup began. */
function earlyFault(
  { begunMs = 0 }: Bed,
  { pointsMs: { chain } }: Claim,
  confirmedMs: ReadonlyMap<number, number>,
): string[] {
  if (chain === undefined) return ['claims no point of a good backup'];
  // Times are stated in whole seconds, and a row is committed before it is confirmed.
  const before = [...confirmedMs.values()].filter((atMs) => atMs < begunMs - 1000).sort((a, b) => a - b);
  const lateMs = (before.at(-2) ?? 0) - chain;
  return lateMs > 0 ? [`claims ${Math.round(lateMs)} ms too little of a good backup`] : [];
}

/** Appends a line for each round to the file RECOVERY_POINT_LOG. */
function noteRound({ name }: { name: string }, { level, hasZone }: Bed, verdict: Verdict): void {
  const file = process.env.RECOVERY_POINT_LOG;
  if (file === undefined) return;
  const { claims, restored, confirmed, firstLostMs, broken } = verdict;
  const last = claims.at(-1)!;
  const { chain } = last.pointsMs;
  const aheadMs = chain === undefined ? undefined : Math.round(firstLostMs - chain);
  const line = {
    plot: name,
    level,
    hasZone,
    restored,
    confirmed,
    aheadMs,
    msgs: claims.map(({ msg }) => msg),
    broken,
  };
  appendFileSync(file, `${JSON.stringify(line)}\n`);
}

function verdictOf(
  claims: Claim[],
  confirmedMs: ReadonlyMap<number, number>,
  restores: readonly (readonly number[])[],
): Verdict {
  let restored = 0;
  let firstLostMs = Number.NEGATIVE_INFINITY;
  for (const restore of restores) {
    const found = new Set(restore);
    const lost = [...confirmedMs].filter(([sequence]) => !found.has(sequence)).map(([, atMs]) => atMs);
    const lostMs = found.size === 0 ? Number.NEGATIVE_INFINITY : Math.min(...lost);
    if (lostMs < firstLostMs) continue;
    firstLostMs = lostMs;
    restored = found.size;
  }
  const broken = claims.flatMap(({ ready, pointsMs }) => [
    ...(restored === 0 && ready === 1 ? ['ready, and nothing can be restored'] : []),
    ...Object.entries(pointsMs).flatMap(([name, pointMs]) =>
      pointMs > firstLostMs ? [`${name} claims ${Math.round(pointMs - firstLostMs)} ms too much`] : [],
    ),
  ]);
  return { claims, restored, confirmed: confirmedMs.size, firstLostMs, broken };
}
