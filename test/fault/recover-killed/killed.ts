import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { mainFile, type Running, start } from '../../e2e/process.ts';
import type { Role } from '../../e2e/role.ts';
import { until } from '../../until.ts';

// `svc-agent recover` is killed after a line of its journal, which is written before and after everything that it does, and run
// again. The result must be the right data, and services that are up, or reported to be down.

export type RestoreProcedure = 'database-corruption' | 'cluster-loss';

export interface Stage {
  procedure: RestoreProcedure;
  /** The folder of the configuration `agent.yaml` and of the state. */
  place: string;
  role: Role;
  /** Restores the state before the first round: the backups, the archive of the log. */
  reset?(): Promise<void> | void;
  /** Damages the database. */
  damage(): Promise<void>;
  /** What must be in the database after the restore; leaves no session behind. */
  content(): Promise<unknown>;
  /** Does what schedules do between the kill and the next run, such as a backup of the present data. */
  meanwhile?(): Promise<void> | void;
}

/** The moment at which a run is killed. */
interface KillPoint {
  /** The number of journal lines that are written by then. */
  line: number;
  /** Exactly after this line, before anything else happens. Otherwise more lines may be written meanwhile, and a command has begun. */
  exactly?: boolean;
  /** Whether the processes of the command are killed, too, as when the host ends. */
  withCommand?: boolean;
  /** A further condition before the kill. */
  reached?(): boolean;
  /** The options of the next run. */
  args?: readonly string[];
}

interface JournalLine {
  event: string;
  step?: string;
}

const linesOf = (file: string): JournalLine[] => {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line) => {
        try {
          return [JSON.parse(line) as JournalLine];
        } catch {
          return [];
        }
      });
  } catch {
    return [];
  }
};

/** Ends every process of the command on record. */
function killCommand(runs: string, lock: string): void {
  let mark: string;
  try {
    ({ mark } = JSON.parse(readFileSync(join(runs, lock, 'command.json'), 'utf8')) as { mark: string });
  } catch {
    return;
  }
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
      if (variables.includes(`SVC_AGENT_RECOVERY_COMMAND=${mark}`)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // The process has ended meanwhile.
    }
  }
}

export function startRecover({ procedure, place }: Stage, args: readonly string[], env = {}): Running {
  const words = ['recover', procedure, '-c', join(place, 'agent.yaml'), '--store', 'main'];
  const run = start(
    process.execPath,
    [mainFile, ...words, '--database', 'persistence', '--execute', '--yes', '--confirm', 'main', ...args],
    env,
  );
  run.child.stdin?.end();
  return run;
}

/** The environment of a run that kills itself after a line of its journal. */
const killsItself = (line: number) => ({
  NODE_OPTIONS: `--import ${new URL('at-line.mjs', import.meta.url)}`,
  KILLED_AT_LINE: String(line),
});

/** The last line of the journal at the kill; undefined if the run ended by itself before. */
export async function killedAt(
  stage: Stage,
  whole: unknown,
  { line, exactly, withCommand, reached, args = [] }: KillPoint,
  env: Record<string, string> = {},
): Promise<JournalLine | undefined> {
  const runs = join(stage.place, 'state', 'recovery-runs');
  const journal = join(runs, `${stage.procedure}.main.persistence.steps.jsonl`);
  rmSync(runs, { recursive: true, force: true });
  await stage.reset?.();
  await stage.damage();
  const killed = startRecover(stage, [], exactly ? { ...env, ...killsItself(line) } : env);
  const gone = once(killed.child, 'exit');
  const hasEnded = () => killed.child.exitCode !== null;
  if (!exactly) {
    await until(
      `line ${line}`,
      () => hasEnded() || (linesOf(journal).length >= line && (reached?.() ?? true)) || undefined,
    );
    killed.child.kill('SIGKILL');
  }
  await gone;
  if (withCommand) killCommand(runs, 'store.main.persistence.lock');
  const last = linesOf(journal).at(-1);
  const at = `after a kill at line ${line} (${last?.event} ${last?.step ?? ''}${withCommand ? ', with its command' : ''})`;
  const hasFinished = last?.event === 'done';
  if (!hasFinished) await goesOn(stage, args, at);
  else if (killed.child.exitCode !== null) expect(killed.child.exitCode, killed.output()).toBe(0);
  expect(await stage.content(), at).toEqual(whole);
  expect(await stage.role.isUp(), at).toBe(true);
  return hasFinished && hasEnded() ? undefined : last;
}

async function goesOn(stage: Stage, args: readonly string[], at: string): Promise<void> {
  const runs = join(stage.place, 'state', 'recovery-runs');
  const journal = join(runs, `${stage.procedure}.main.persistence.steps.jsonl`);
  const isDatabaseOnly = stage.procedure === 'database-corruption';
  const said = isDatabaseOnly
    ? /The services (?:are stopped|may be down: .*)\. To start them: \$ /
    : /The services are not deployed\./;
  await stage.meanwhile?.();
  // The next run waits for a command that outlived its run.
  const { status, output, isDown, hasBegun } = await until(`the run goes on ${at}`, async () => {
    const before = {
      isDown: !(await stage.role.isUp()),
      hasBegun: linesOf(journal).some(({ event }) => event === 'command_started'),
    };
    const again = startRecover(stage, args);
    const ended = { status: await again.ended, output: again.output() };
    return ended.output.includes('is still running') ? undefined : { ...before, ...ended };
  });
  if (isDown && hasBegun) expect(output, at).toMatch(said);
  expect(status, `${at}: ${output}`).toBe(0);
}

/** Kills after every line of the journal, and at every command while it runs: the run alone, and both. */
export async function killedEverywhere(stage: Stage): Promise<number> {
  const whole = await stage.content();
  for (let line = 1; ; line++) {
    const last = await killedAt(stage, whole, { line, exactly: true });
    if (last === undefined) return line - 1;
    if (last.event !== 'command_started') continue;
    await killedAt(stage, whole, { line });
    await killedAt(stage, whole, { line, withCommand: true });
  }
}
