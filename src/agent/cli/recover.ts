import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { systemClock } from '../../core/clock.ts';
import { AgentError, nearest } from '../../core/errors.ts';
import { type RecoveryProcedure, recoveryProcedures } from '../../core/reasons.ts';
import { drillName } from '../../probes/backups/backups.ts';
import { journalPath, recordRun } from '../../probes/backups/journal.ts';
import { planClusters, planDomains } from '../../probes/plan.ts';
import type { ProbeRow } from '../../probes/probe.ts';
import { probeOnce } from '../../probes/runner/runner.ts';
import type { AgentConfig } from '../config/types.ts';
import { createReadSecret } from '../read-secret.ts';
import { createChecks, type RunProbe } from '../recovery/checks.ts';
import { commandsOf, type Subject, shellText } from '../recovery/commands.ts';
import type { RunSubject } from '../recovery/journal.ts';
import { procedures, type RecoveryStep, type Situation } from '../recovery/procedures.ts';
import { type Operator, runSession } from '../recovery/session.ts';
import { lockSubject } from '../recovery/subject-lock.ts';
import { configurationOptions, configured, parseCommand, showHelp } from './arguments.ts';
import type { Io } from './io.ts';
import { openLivePages, silent } from './live-pages.ts';
import { recoverCost } from './recover-cost.ts';
import {
  longestMs,
  type OnVerification,
  planForPerson,
  verificationLine,
  verifyWithProgress,
} from './verification.ts';

const usage = `Usage: svc-agent recover PROCEDURE [--plan] [--execute] [OPTIONS] [-c FILE]

Procedures: ${recoveryProcedures.join(', ')}.
Guides you through the procedure step by step: prints the purpose of each step, checks its preconditions, prints the
commands for this configuration, and checks the result.
  --plan                print all steps, change nothing
  --cost                print what each procedure would cost now, in time and in data; needs no PROCEDURE
  --execute             run the commands here; needs recovery.allowExecute: true
  --yes                 do not ask before each command; stops at a step that must be done by hand
  --confirm NAME        with --yes: the store or domain that may be changed irreversibly
  --restart             start over after an interrupted run
  --force REASON        continue although a check refuses; the reason is recorded
  --store NAME --database persistence|visibility   what to restore
  --backup FILE         the backup to restore; default: the newest verified one
  --domain NAME --to CLUSTER                       what to fail over, and where to
  --json                the plan, or the result, as JSON
An interrupted run resumes at the step that was not finished, unless --restart is given. While a run changes a database
or a domain, a second run for the same one is refused.
Exit status: 0 done; 1 refused or failed; 2 wrong usage or an invalid configuration.
`;

const options = {
  ...configurationOptions,
  plan: { type: 'boolean' },
  cost: { type: 'boolean' },
  execute: { type: 'boolean' },
  yes: { type: 'boolean' },
  confirm: { type: 'string' },
  force: { type: 'string' },
  restart: { type: 'boolean' },
  store: { type: 'string' },
  database: { type: 'string' },
  backup: { type: 'string' },
  domain: { type: 'string' },
  to: { type: 'string' },
} as const;

const wrongUsage = (what: string, got?: string, allowed = 'see svc-agent recover --help') =>
  new AgentError('usage', { where: 'svc-agent recover', what, got, allowed });

/** `svc-agent recover`. */
export async function recover(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parseCommand('recover', args, options, 1);
  if (values.help) {
    showHelp('recover', usage, io);
    return 0;
  }
  if (values.cost) return recoverCost(values, io);
  const procedure = procedureOf(positionals);
  if (values.force?.trim() === '') throw wrongUsage('--force needs a reason');
  const { config } = await configured(values, io);
  const subject = subjectOf(procedure, values, config);
  if (values.execute && !config.recovery.allowExecute) {
    throw wrongUsage('--execute is not allowed here', undefined, 'set recovery.allowExecute: true');
  }
  const onVerification = verificationLine(io.screen, values.json ? () => {} : io.stdout);
  const tools = await openTools(config, subject, onVerification, io);
  try {
    const situation = await situationOf(subject, config, tools, onVerification, io);
    const steps = procedures[procedure].steps(situation);
    if (values.plan) {
      io.stdout(
        values.json
          ? `${JSON.stringify(planOf(procedure, situation.subject, steps), null, 2)}\n`
          : planText(procedure, steps),
      );
      return 0;
    }
    return await go(procedure, situation.subject, steps, { config, values, io, namedBackup: subject.backup });
  } finally {
    await tools.close();
  }
}

function procedureOf([name]: readonly string[]): RecoveryProcedure {
  const known = recoveryProcedures.find((procedure) => procedure === name);
  if (known) return known;
  const near = name === undefined ? undefined : nearest(name, recoveryProcedures);
  const allowed = `${near ? `did you mean ${near}? ` : ''}use ${recoveryProcedures.join(', ')}`;
  throw wrongUsage(name === undefined ? 'no procedure' : 'unknown procedure', name, allowed);
}

function subjectOf(
  procedure: RecoveryProcedure,
  values: { [K in keyof Subject]?: string | undefined },
  config: AgentConfig,
): Subject {
  const { store, database, domain, to, backup } = values;
  const stores = config.stores.map(({ name }) => name);
  const only = stores.length === 1 ? stores[0] : undefined;
  const isRestore = procedures[procedure].needs.includes('store');
  const watched = isRestore ? config.domains?.watch[0] : undefined;
  const subject = {
    store: isRestore ? (store ?? only) : store,
    database,
    domain: domain ?? watched,
    to,
    backup,
  };
  for (const need of procedures[procedure].needs) {
    if (subject[need] === undefined) throw wrongUsage(`--${need} is missing`);
  }
  if (subject.store !== undefined && !stores.includes(subject.store)) {
    throw wrongUsage('no such store', subject.store, `there is ${stores.join(', ') || 'none'}`);
  }
  if (database !== undefined && database !== 'persistence' && database !== 'visibility') {
    throw wrongUsage('unknown --database', database, 'use persistence or visibility');
  }
  const databases = config.stores.find(({ name }) => name === subject.store)?.databases;
  if (databases && database !== undefined && databases[database] === undefined) {
    const allowed = `set stores[].databases.${database} of ${subject.store}; it has ${Object.keys(databases).join(', ') || 'none'}`;
    throw wrongUsage('the store has no such database', database, allowed);
  }
  if (backup !== undefined && !existsSync(backup)) {
    throw wrongUsage('--backup is not there', backup, 'name a file or a directory');
  }
  return JSON.parse(JSON.stringify(subject)) as Subject;
}

interface Tools {
  rows: readonly ProbeRow[];
  runProbe: RunProbe;
  close(): Promise<void>;
}

/**
 * The probes of the configuration, and what a failover needs besides: a probe of each cluster, this one included, and
 * the domain as the future active cluster describes it, then as each of the others does.
 */
function rowsOf(config: AgentConfig, { domain, to }: Subject, onVerification: OnVerification): ProbeRow[] {
  const { clusterGroupMetadata: group, domains } = config;
  const rows = planForPerson(config, onVerification, true);
  if (domain === undefined || !group || !domains) return rows;
  const { currentClusterName: own, clusters } = group;
  const reachable = clusters
    .filter(({ enabled, rpcAddress }) => enabled && rpcAddress)
    .map(({ name }) => name);
  const first = [to, own].filter((name) => name !== undefined && reachable.includes(name)) as string[];
  const views = [...new Set([...first, ...reachable])];
  if (views.length === 0) views.push(own);
  const seenBy = (name: string) => ({ ...group, currentClusterName: name });
  return [
    ...rows.filter(({ name, kind }) => kind !== 'cluster' && name !== `domain/${domain}`),
    ...planClusters({ clusterGroupMetadata: seenBy('') }),
    ...views.flatMap((name) =>
      planDomains({ domains: { ...domains, watch: [domain] }, clusterGroupMetadata: seenBy(name) }),
    ),
  ];
}

/** Probes by name, each run when it is requested. */
async function openTools(
  config: AgentConfig,
  subject: Subject,
  onVerification: OnVerification,
  io: Io,
): Promise<Tools> {
  const rows = rowsOf(config, subject, onVerification);
  // The clock's timers let a process end; this one does not until the procedure is over.
  const awake = setInterval(() => {}, 60_000);
  const pages = rows.some(({ kind }) => kind === 'replication') ? await openLivePages(config, io) : [];
  const readings = { values: (family: string) => pages.flatMap(({ scrape }) => [...scrape.values(family)]) };
  const deps = { readSecret: createReadSecret(io.env), readings, clock: systemClock, log: silent };
  const run = async (row: ProbeRow) => {
    // Backups are assessed first: a database is assessed by what they found.
    const first = row.kind === 'recovery' ? rows.filter(({ kind }) => kind === 'backup') : [];
    if (row.kind === 'replication') await Promise.all(pages.map(({ scrape }) => scrape.scrapeNow()));
    const { finding, result } = (await probeOnce([...first, row], deps)).at(-1)!;
    return { ...finding, ok: result.ok };
  };
  return {
    rows,
    async runProbe(name) {
      const candidates = rows.filter((each) => each.name === name);
      let first: Awaited<ReturnType<typeof run>> | undefined;
      for (const row of candidates) {
        const result = await run(row);
        if (result.gauges?.length) return result;
        first ??= result;
      }
      return first;
    },
    async close() {
      clearInterval(awake);
      await Promise.all(pages.map(({ close }) => close()));
    },
  };
}

async function situationOf(
  asked: Subject,
  config: AgentConfig,
  { rows, runProbe }: Tools,
  onVerification: OnVerification,
  io: Io,
): Promise<Situation> {
  const subject = { ...asked, backup: asked.backup ?? (await newestBackup(asked, config, runProbe)) };
  const named = asked.backup;
  const verifyNamed =
    named === undefined || asked.store === undefined
      ? undefined
      : () =>
          verifyWithProgress(onVerification)(
            { path: named, level: 'full', bytesPerSecond: Number.MAX_SAFE_INTEGER },
            AbortSignal.timeout(longestMs),
            () => {},
          );
  const commands = commandsOf(subject, config);
  const env = Object.fromEntries(
    Object.entries(io.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  return {
    subject,
    commands,
    checks: createChecks(subject, { config, rows, runProbe, verifyNamed, commands, env }),
  };
}

/**
 * Path of the full backup that the chain of evidence begins with. The backup with the latest recovery point may
 * be a base backup with its log, which is restored by hand; --backup names a dump instead.
 */
async function newestBackup(
  { store, database }: Subject,
  config: AgentConfig,
  runProbe: RunProbe,
): Promise<string | undefined> {
  if (store === undefined) return undefined;
  const finding = await runProbe(`recovery/${store}/${database}`);
  const chain = finding?.details?.chain as
    | { links?: { type: string; what: string; backup: string }[] }
    | undefined;
  const full = chain?.links?.find(({ type }) => type === 'full');
  const source = config.backups.find(({ name }) => name === full?.backup)?.source;
  if (!full || !source || !('directory' in source)) return full?.what;
  return `${source.directory}/${full.what}`;
}

const planOf = (procedure: RecoveryProcedure, subject: Subject, steps: readonly RecoveryStep[]) => ({
  procedure,
  title: procedures[procedure].title,
  subject,
  steps: steps.map(({ requires = [], proves = [], ...step }) => ({
    ...step,
    requires: requires.map(({ id, text }) => ({ id, text })),
    proves: proves.map(({ id, text }) => ({ id, text })),
  })),
});

function planText(procedure: RecoveryProcedure, steps: readonly RecoveryStep[]): string {
  const lines = [`${procedure}: ${procedures[procedure].title}`];
  for (const [index, { title, text, requires = [], commands = [], byHand, proves = [] }] of steps.entries()) {
    lines.push('', `${index + 1}. ${title}`, `   ${text}`);
    for (const check of requires) lines.push(`   before: ${check.text}`);
    for (const command of commands) lines.push(`   $ ${shellText(command)}`);
    if (commands.length === 0 && byHand) lines.push(`   by hand: ${byHand}`);
    for (const check of proves) lines.push(`   after: ${check.text}`);
  }
  return `${lines.join('\n')}\n`;
}

interface RecoverContext {
  config: AgentConfig;
  namedBackup?: string;
  values: {
    execute?: boolean;
    yes?: boolean;
    confirm?: string;
    force?: string;
    restart?: boolean;
    json?: boolean;
  };
  io: Io;
}

async function go(
  procedure: RecoveryProcedure,
  subject: Subject,
  steps: readonly RecoveryStep[],
  { config, values, io, namedBackup }: RecoverContext,
): Promise<number> {
  const terminal = openOperator(values, io);
  const what =
    subject.store !== undefined ? [subject.store, subject.database ?? ''] : [subject.domain ?? '', ''];
  const name = drillName(procedure, what[0]!, what[1]!);
  const journal = journalPath(config.stateDirectory, 'recovery', `${name}.steps`);
  const beganMs = performance.now();
  const lock = await lockSubject(config.stateDirectory, procedure, subject);
  try {
    const result = await runSession(
      {
        ...{
          procedure,
          subject: { target: targetOf(subject, config), backup: namedBackup },
          steps,
          journal,
          lock,
        },
        execute: values.execute ?? false,
        restart: values.restart,
        force: values.force,
        commandOutput: values.json ? 'stderr' : 'stdout',
      },
      terminal,
    );
    const endMs = Date.now();
    // The clock may have been set back since.
    const tookMs = Math.max(endMs - result.startMs, performance.now() - beganMs);
    await recordRun(journalPath(config.stateDirectory, 'recovery', name), {
      startMs: Math.round(endMs - tookMs),
      endMs,
      status: result.ok ? 0 : 1,
      msg: result.msg,
    });
    const seconds = Math.round(tookMs / 1000);
    if (values.json) io.stdout(`${JSON.stringify({ procedure, subject, ...result, seconds })}\n`);
    else {
      terminal.print(`\n${result.ok ? `Done in ${seconds} s.` : `Stopped: ${result.msg}`}`);
      for (const line of result.notProved) terminal.print(`Not proved: ${line}`);
    }
    return result.ok ? 0 : 1;
  } finally {
    await lock.release();
  }
}

/** What the procedure changes, by its address too: the configuration may be another one when a run resumes. */
function targetOf({ store: name, database, domain, to }: Subject, config: AgentConfig): RunSubject['target'] {
  if (name === undefined) {
    const cluster = config.clusterGroupMetadata?.clusters.find((each) => each.name === to);
    return { domain, to, address: cluster?.rpcAddress };
  }
  const store = config.stores.find((each) => each.name === name);
  return { store: name, address: store?.address, database: database && store?.databases[database] };
}

/**
 * The person at the terminal; with `--yes` there is no prompt, and only the confirmed name may be changed irreversibly.
 */
function openOperator({ yes, confirm, json }: RecoverContext['values'], io: Io): Operator {
  const print = (line: string) => (json ? io.stderr(`${line}\n`) : io.stdout(`${line}\n`));
  if (yes) {
    return { print, isAway: true, ask: async () => true, confirmName: async (_, name) => confirm === name };
  }
  return {
    print,
    ask: async (question) => /^y(?:es)?$/i.test(await answerTo(`  ${question} [y/N] `)),
    confirmName: async (what, name) => (await answerTo(`  ${what}. Type ${name} to continue: `)) === name,
  };
}

/**
 * A line from the terminal; empty after Ctrl-C, Ctrl-D and the end of the input. The terminal is back in its usual
 * mode afterwards, so that Ctrl-C reaches a command.
 */
async function answerTo(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return (await Promise.race([lines.question(question).catch(() => ''), closed])).trim();
  } finally {
    lines.close();
  }
}
