import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { nearest, usageError } from '../../core/errors.ts';
import { type RecoveryProcedure, recoveryProcedures } from '../../core/reasons.ts';
import { drillName } from '../../probes/backups/backups.ts';
import { journalPath, recordRun } from '../../probes/backups/journal.ts';
import type { StoreOptions } from '../../probes/stores/store-options.ts';
import type { AgentConfig } from '../config/types.ts';
import type { Check } from '../recovery/check.ts';
import { type Subject, shellText } from '../recovery/commands.ts';
import { type RunSubject, type UnfinishedRun, unfinishedRun } from '../recovery/journal.ts';
import type { Operator } from '../recovery/operator.ts';
import { procedures, type RecoveryStep } from '../recovery/procedures.ts';
import { leftBy, printLeft, runSession } from '../recovery/session.ts';
import { lockSubject } from '../recovery/subject-lock.ts';
import type { Chosen } from '../recovery/target.ts';
import { command, configurationOptions, configured } from './arguments.ts';
import type { Io } from './io.ts';
import { recoverCost } from './recover-cost.ts';
import { openTools, situationOf } from './recovery-situation.ts';
import { verificationLine } from './verification.ts';

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
  --until TIME          restore only what was written before TIME, such as 2026-11-23T10:00:00Z
  --until-xid XID, --until-name NAME   PostgreSQL: the last transaction, or the restore point, to restore
  --until-timeline N    PostgreSQL: the timeline to follow; default: the latest
  --no-safety-copy      do not copy what is in the database before it is overwritten
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
  until: { type: 'string' },
  'until-xid': { type: 'string' },
  'until-name': { type: 'string' },
  'until-timeline': { type: 'string' },
  'no-safety-copy': { type: 'boolean' },
  domain: { type: 'string' },
  to: { type: 'string' },
} as const;

const wrongUsage = (what: string, got?: string, allowed = 'see svc-agent recover --help') =>
  usageError('svc-agent recover', what, got, allowed);

/** Runs `svc-agent recover`. */
export const recover = command(
  { name: 'recover', usage, options, most: 1 },
  async (values, io, positionals) => {
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
      const journal = stepsPath(procedure, subject, config);
      const earlier = unfinishedRun(journal);
      const startMs = (values.restart ? undefined : earlier?.startMs) ?? Date.now();
      const situation = await situationOf(subject, config, {
        ...{ tools, onVerification, io, startMs, held: heldBy(earlier, targetOf(subject, config)) },
        copiesFirst: !values['no-safety-copy'],
      });
      const steps = procedures[procedure].steps(situation);
      if (values.plan) {
        io.stdout(
          values.json
            ? `${JSON.stringify(planOf(procedure, situation.subject, steps), null, 2)}\n`
            : planText(procedure, steps),
        );
        return 0;
      }
      return await go(procedure, situation.subject, steps, {
        ...{ config, values, io, namedBackup: subject.backup, chosen: situation.chosen },
      });
    } finally {
      await tools.close();
    }
  },
);

function procedureOf([name]: readonly string[]): RecoveryProcedure {
  const known = recoveryProcedures.find((procedure) => procedure === name);
  if (known) return known;
  const near = name === undefined ? undefined : nearest(name, recoveryProcedures);
  const allowed = `${near ? `did you mean ${near}? ` : ''}use ${recoveryProcedures.join(', ')}`;
  throw wrongUsage(name === undefined ? 'no procedure' : 'unknown procedure', name, allowed);
}

function subjectOf(
  procedure: RecoveryProcedure,
  values: {
    [K in
      | 'store'
      | 'database'
      | 'domain'
      | 'to'
      | 'backup'
      | `until${'' | '-xid' | '-name' | '-timeline'}`]?: string;
  },
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
    ...untilOf(
      values,
      isRestore ? config.stores.find((each) => each.name === (store ?? only))?.kind : undefined,
    ),
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
    throw wrongUsage('--backup does not exist', backup, 'name a file or a directory');
  }
  return JSON.parse(JSON.stringify(subject)) as Subject;
}

/** The end of the restore. Throws `usage`. */
function untilOf(
  values: { [K in `until${'' | '-xid' | '-name' | '-timeline'}`]?: string },
  kind: StoreOptions['kind'] | undefined,
): Pick<Subject, 'until' | 'untilXid' | 'untilName' | 'untilTimeline'> {
  const { until, 'until-xid': untilXid, 'until-name': untilName, 'until-timeline': untilTimeline } = values;
  const ends = { '--until': until, '--until-xid': untilXid, '--until-name': untilName };
  const namesOf = (options: object) =>
    Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const given = namesOf(ends);
  if (given.length > 1) throw wrongUsage(`${given.join(' and ')} exclude each other`, undefined, 'use one');
  const [first] = namesOf({ ...ends, '--until-timeline': untilTimeline });
  if (first === undefined) return {};
  if (kind === undefined) throw wrongUsage(`${first} without a restore`, undefined, 'leave it out');
  if (kind === 'widecolumn')
    throw wrongUsage(
      `${first} is not possible for a wide-column store`,
      undefined,
      'name a snapshot with --backup',
    );
  if (kind !== 'postgres' && (until === undefined || untilTimeline !== undefined))
    throw wrongUsage(
      `${untilTimeline === undefined ? first : '--until-timeline'} is only possible for PostgreSQL`,
      undefined,
      'use --until TIME',
    );
  if (untilXid !== undefined && !/^\d{1,10}$/.test(untilXid))
    throw wrongUsage('--until-xid is not a transaction id', untilXid, 'use a number');
  if (untilTimeline !== undefined && !/^[1-9]\d{0,9}$/.test(untilTimeline))
    throw wrongUsage('--until-timeline is not a timeline', untilTimeline, 'use a number of 1 or more');
  if (untilName !== undefined && !/^[\x21-\x7e][\x20-\x7e]{0,62}$/.test(untilName))
    throw wrongUsage(
      '--until-name is not a restore point',
      untilName,
      'use the name given to pg_create_restore_point',
    );
  if (until === undefined) return { untilXid, untilName, untilTimeline };
  const atMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(until)
    ? Date.parse(until)
    : Number.NaN;
  if (Number.isNaN(atMs))
    throw wrongUsage('--until is not a time', until, 'use RFC 3339, such as 2026-11-23T10:00:00Z');
  if (atMs > Date.now()) throw wrongUsage('--until is in the future', until, 'use a time that has passed');
  return { until: new Date(atMs).toISOString(), untilTimeline };
}

const shown = (checks: readonly Check[] = []) => checks.map(({ id, text }) => ({ id, text }));

const planOf = (procedure: RecoveryProcedure, subject: Subject, steps: readonly RecoveryStep[]) => ({
  procedure,
  title: procedures[procedure].title,
  subject,
  steps: steps.map(({ needs, requires, proves, isDone, watches, ...step }) => ({
    ...step,
    ...{ needs: shown(needs), requires: shown(requires), proves: shown(proves) },
    ...(watches && { watches: shown([watches])[0] }),
    ...(isDone && { isDone: shown([isDone])[0] }),
  })),
});

function planText(procedure: RecoveryProcedure, steps: readonly RecoveryStep[]): string {
  const lines = [`${procedure}: ${procedures[procedure].title}`];
  for (const [index, step] of steps.entries()) {
    const { title, text, needs = [], requires = [], commands = [], byHand, proves = [] } = step;
    lines.push('', `${index + 1}. ${title}`, `   ${text}`);
    for (const check of needs) lines.push(`   check at the start: ${check.text}`);
    for (const check of requires) lines.push(`   check before: ${check.text}`);
    for (const command of commands) lines.push(`   $ ${shellText(command)}`);
    if (commands.length === 0 && byHand) lines.push(`   by hand: ${byHand}`);
    for (const check of proves) lines.push(`   check after: ${check.text}`);
  }
  return `${lines.join('\n')}\n`;
}

interface RecoverContext {
  config: AgentConfig;
  namedBackup?: string;
  chosen: Chosen;
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

/** What an earlier run restored, if it has changed anything: a run that continues it or starts over restores the same. */
function heldBy(earlier: UnfinishedRun | undefined, target: RunSubject['target']): Chosen | undefined {
  const { chosen, begun, subject } = earlier ?? {};
  const isSame = ['store', 'address', 'database'].every((key) => subject?.target[key] === target[key]);
  return isSame && (chosen?.isKept || begun?.size) ? chosen : undefined;
}

const drillOf = (procedure: RecoveryProcedure, { store, database, domain = '' }: Subject): string =>
  store === undefined ? drillName(procedure, domain, '') : drillName(procedure, store, database ?? '');

/** The file with the journal of the steps. */
const stepsPath = (procedure: RecoveryProcedure, subject: Subject, { stateDirectory }: AgentConfig): string =>
  journalPath(stateDirectory, 'recovery', `${drillOf(procedure, subject)}.steps`);

async function go(
  procedure: RecoveryProcedure,
  subject: Subject,
  steps: readonly RecoveryStep[],
  { config, values, io, namedBackup, chosen }: RecoverContext,
): Promise<number> {
  const terminal = openOperator(values, io);
  const journal = stepsPath(procedure, subject, config);
  const beganMs = performance.now();
  const lock = await lockSubject(config.stateDirectory, procedure, subject).catch((thrown: unknown) => {
    printLeft(leftBy(unfinishedRun(journal), steps), terminal);
    throw thrown;
  });
  try {
    const result = await runSession(
      {
        ...{
          procedure,
          subject: { target: targetOf(subject, config), backup: namedBackup },
          chosen,
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
    const isDrill = result.ok && result.notProved.length === 0;
    await recordRun(journalPath(config.stateDirectory, 'recovery', drillOf(procedure, subject)), {
      startMs: Math.round(endMs - tookMs),
      endMs,
      status: isDrill ? 0 : 1,
      msg: isDrill || !result.ok ? result.msg : `not proved: ${result.notProved.join('; ')}`,
    });
    const seconds = Math.round(tookMs / 1000);
    if (values.json) io.stdout(`${JSON.stringify({ procedure, subject, ...result, isDrill, seconds })}\n`);
    else {
      terminal.print(`\n${result.ok ? `Done in ${seconds} s.` : `Stopped: ${result.msg}`}`);
      printLeft(result.left, terminal);
      for (const line of result.notProved) terminal.print(`Not proved: ${line}`);
      if (result.ok && !isDrill) terminal.print('This run is not recorded as a drill.');
    }
    return result.ok ? 0 : 1;
  } finally {
    await lock.release();
  }
}

/** What the procedure changes, including its address: the configuration may be different when a run resumes. */
function targetOf(subject: Subject, config: AgentConfig): RunSubject['target'] {
  const { store: name, database, domain, to, until, untilXid, untilName, untilTimeline } = subject;
  if (name === undefined) {
    const cluster = config.clusterGroupMetadata?.clusters.find((each) => each.name === to);
    return { domain, to, address: cluster?.rpcAddress };
  }
  const store = config.stores.find((each) => each.name === name);
  const point = { until, untilXid, untilName, untilTimeline };
  return { store: name, address: store?.address, database: database && store?.databases[database], ...point };
}

/** The person at the terminal. With `--yes` there is no prompt, and only the confirmed name may be changed irreversibly. */
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
