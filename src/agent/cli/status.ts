import { systemClock } from '../../core/clock.ts';
import { AgentError, errorText, usageError } from '../../core/errors.ts';
import {
  changeText,
  type Level,
  type Problem,
  type StatusReport,
  type Undertaking,
  undertakings,
} from '../report.ts';
import { onSignals } from '../signals.ts';
import { type Alike, alike } from '../verdict/alike.ts';
import { pendingText, timeText, unknownFailoverText } from '../verdict/sentence.ts';
import { type AgentTarget, ask, targetOf, targetOptions, targetText, targetUsage } from './agent-client.ts';
import { command } from './arguments.ts';
import { type Colour, type Io, onReaderGone, paint, plain, type Screen, timeOfDay, wrapped } from './io.ts';
import { agentLines, ageOf, probesTable, rolesTable } from './status-tables.ts';

const usage = `Usage: svc-agent status [-c FILE] [--watch | --check [--for WORK]] [--json] [--url URL [--ca FILE | --insecure]]

Shows the state of everything that a running agent observes: first what is wrong, since when and what to do, then the
roles, the probes and the agent itself.
      --watch     refreshes every 2 s until Ctrl-C; with --json prints one report per line
      --check     prints one sentence, for a pipeline: whether the work may begin
      --for WORK  the work that --check is about: deploy (default), upgrade or failback
${targetUsage}Exit status: 0 nothing is known to be wrong; 1 something is wrong, or the agent does not answer; 2 wrong usage or an
invalid configuration. With --watch: 0 when it is interrupted. With --check: 0 if nothing is wrong that the work
would make worse, and everything has been checked; else 1.
`;

const everyMs = 2000;

const options = {
  ...targetOptions,
  watch: { type: 'boolean' },
  check: { type: 'boolean' },
  for: { type: 'string' },
} as const;

/** Runs `svc-agent status`: prints `/api/status` of a running agent, as one screen or as JSON. */
export const status = command({ name: 'status', usage, options }, async (values, io) => {
  const work = workOf(values);
  const target = await targetOf(values, '/api/status', io);
  if (values.watch) return watch(target, values.json === true, io);
  const report = await askStatus(target);
  if (work !== undefined) return check(report, work, values.json === true, io);
  io.stdout(values.json ? `${JSON.stringify(report)}\n` : `${statusLines(report, io.screen).join('\n')}\n`);
  return isWrong(report.verdict.level) ? 1 : 0;
});

/** The undertaking of --check; undefined without --check. Throws `usage`. */
function workOf(values: { check?: boolean; for?: string; watch?: boolean }): Undertaking | undefined {
  const where = 'svc-agent status';
  if (!values.check) {
    if (values.for === undefined) return undefined;
    throw usageError(where, '--for without --check', undefined, 'add --check');
  }
  if (values.watch) throw usageError(where, '--check with --watch', undefined, 'use one of them');
  const work = undertakings.find((one) => one === (values.for ?? 'deploy'));
  if (work) return work;
  throw usageError('--for', 'unknown work', values.for, `use ${undertakings.join(', ')}`);
}

/** A sentence as a clause within another: a word has a small letter there, but not an abbreviation. */
const asClause = (sentence: string): string =>
  sentence.replace(/^[A-Z](?=[a-z]* )/, (letter) => letter.toLowerCase());

/**
 * Whether the work may begin, with the problems that block it. A check without a result could find one, whatever other problem is
 * known.
 */
export function readinessOf(report: StatusReport, work: Undertaking) {
  const { verdict, now, ready } = report;
  const { level, problems } = verdict;
  const timeOf = (at: string) => timeText(Date.parse(at), Date.parse(now));
  const since = (problem: Problem) =>
    [problem.since, problem.reasonSince ?? []].flat().map(timeOf).join(', for this reason since ');
  const blocking = problems.filter(({ blocks }) => blocks.includes(work));
  const first = blocking.find(({ causedBy }) => causedBy === undefined) ?? blocking[0];
  const more = blocking.length - 1;
  const others = more > 0 ? `, and ${more} more ${more === 1 ? 'problem' : 'problems'}` : '';
  const blocked = first && `${first.what} (since ${since(first)})${others}`;
  // A cluster that has not caught up must not become active.
  const unknownLag = work === 'failback' ? unknownFailoverText(report) : undefined;
  const unknown = ready ? (pendingText(report) ?? unknownLag) : 'the agent is starting';
  const why = level === 'unknown' ? asClause(verdict.headline) : (blocked ?? unknown);
  const sentence = why === undefined ? `The ${work} may begin.` : `The ${work} should wait: ${why}.`;
  return { ok: why === undefined, for: work, sentence, problems: blocking.map(({ id }) => id) };
}

/** Prints whether the work may begin, as one sentence; the exit status says the same. */
function check(report: StatusReport, work: Undertaking, isJson: boolean, { stdout }: Io): number {
  const readiness = readinessOf(report, work);
  stdout(`${isJson ? JSON.stringify(readiness) : plain(readiness.sentence)}\n`);
  return readiness.ok ? 0 : 1;
}

const isWrong = (level: Level) => level === 'critical' || level === 'warning';

/** The status of a running agent. Throws `internal` if there is none. */
export async function askStatus(target: AgentTarget): Promise<StatusReport> {
  const where = targetText(target.url);
  const report = (await ask(target).catch((cause: unknown) => {
    const allowed = 'is the agent running, and is the address that of its admin listener?';
    throw new AgentError('internal', { where, what: `no answer, ${errorText(cause)}`, allowed }, cause);
  })) as Partial<StatusReport> | null;
  if (report?.verdict) return report as StatusReport;
  const allowed = 'name the admin listener of an agent of this version, such as http://127.0.0.1:9465';
  throw new AgentError('internal', { where, what: 'the answer is not the status of an agent', allowed });
}

/** Refreshes the report until a signal ends it, even while the agent does not answer. */
async function watch(target: AgentTarget, isJson: boolean, { screen, stdout }: Io): Promise<number> {
  const isLive = screen.size() !== undefined && !isJson;
  let undo = () => {};
  let cancel = () => {};
  // The previous screen and the cursor are restored at the end.
  if (isLive) stdout('\u001b[?1049h\u001b[?25l');
  try {
    let ended = false;
    const end = new Promise<void>((resolve) => {
      const stop = () => {
        ended = true;
        resolve();
      };
      const undoSignals = onSignals({ stop, reload: stop });
      const undoReader = onReaderGone(stop);
      undo = () => {
        undoSignals();
        undoReader();
      };
    });
    while (!ended) {
      const text = await askStatus(target).then(
        (report) => (isJson ? [JSON.stringify(report)] : statusLines(report, screen)),
        (error: unknown) => noAnswer(error, isJson, screen),
      );
      if (ended) break;
      stdout(isLive ? frame(text, screen) : `${text.join('\n')}\n${isJson ? '' : '\n'}`);
      const pause = new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, everyMs);
        cancel = () => clearTimeout(timer);
      });
      await Promise.race([end, pause]);
    }
    return 0;
  } finally {
    cancel();
    undo();
    if (isLive) stdout('\u001b[?25h\u001b[?1049l');
  }
}

function noAnswer(error: unknown, isJson: boolean, screen: Screen): string[] {
  const what = errorText(error);
  if (isJson) return [JSON.stringify({ error: what })];
  return wrapped(`NO ANSWER  ${plain(what)}`, screen.size()?.columns ?? 80).map((line) =>
    paint(line, 'red', screen),
  );
}

/** Draws the lines at the top left of the terminal, and nothing below them. */
function frame(lines: readonly string[], screen: Screen): string {
  const rows = (screen.size()?.rows ?? 24) - 1;
  const time = timeOfDay(systemClock.nowMs());
  const shown = [...lines.slice(0, rows - 1), paint(`${time}, every 2 s; Ctrl-C ends`, 'dim', screen)];
  return `\u001b[H${shown.map((line) => `${line}\u001b[K`).join('\n')}\u001b[J`;
}

const colourOf: Readonly<Record<Level, Colour>> = {
  ok: 'green',
  unknown: 'bold',
  warning: 'yellow',
  critical: 'red',
};

/** A report for people, on a terminal at most one screen: the verdict first, and the agent itself last. */
export function statusLines(report: StatusReport, screen: Screen): string[] {
  const { columns, rows } = screen.size() ?? { columns: Infinity, rows: Infinity };
  const { level, sentence, problems } = report.verdict;
  const nowMs = Date.parse(report.now);
  const head = wrapped(`${level.toUpperCase()}  ${plain(sentence)}`, columns).map((line) =>
    paint(line, colourOf[level], screen),
  );
  const own = agentLines(report, columns);
  // On a small screen only the end of this part is shown, so that problems have room.
  const tail = own.slice(-Math.max(1, Math.floor(rows / 4)));
  const tables = [rolesTable(report, screen), probesTable(report, nowMs, screen)].filter(
    (lines) => lines.length > 0,
  );
  // A live screen has one more line below, and a shell has its prompt there.
  const room = rows - head.length - tail.length - 3;
  // Of tables that are cut anyway, problems may take half of the screen: they say what to do.
  const below = Math.min(
    tables.reduce((sum, lines) => sum + lines.length + 1, 0),
    Math.floor(room / 2),
  );
  const shown = shortened(
    alike(problems.filter(({ causedBy }) => causedBy === undefined)).flatMap((row) =>
      problemLines(row, problems, nowMs, screen),
    ),
    Math.max(4, room - below),
  );
  const left = room - shown.length;
  const listed = tables.flatMap((lines) => ['', ...lines]);
  return [...head, ...shown, ...(left >= 4 ? shortened(listed, left) : []), '', ...tail];
}

function shortened(lines: readonly string[], most: number): readonly string[] {
  if (lines.length <= most) return lines;
  return [...lines.slice(0, most - 1), '  and more; --json shows all'];
}

/**
 * The order of the evidence beside a problem's own text: conflicts, values and last log entries come before results of probes.
 */
const evidenceOrder = ['conflict', 'exit', 'log', 'value', 'probe'];
const mostEvidence = 2;

/** The lines below a problem: its evidence, the changes before it, and what it takes down. */
function reasonsOf(
  { what, evidence, changes = [], consequences }: Problem,
  all: readonly Problem[],
  nowMs: number,
): string[] {
  const shown = evidence
    .filter(({ text }) => !what.includes(text))
    .sort((a, b) => evidenceOrder.indexOf(a.source) - evidenceOrder.indexOf(b.source))
    .slice(0, mostEvidence);
  const [change] = changes;
  const folded = all.filter(({ id }) => consequences.includes(id));
  return [
    ...shown.map(({ text }) => text),
    ...(change
      ? [`shortly before, at ${timeText(Date.parse(change.at), nowMs)}: ${changeText(change)}`]
      : []),
    ...foldedText(
      'because of it',
      folded.filter(({ unreadSince }) => unreadSince === undefined),
    ),
    ...foldedText(
      'cannot be checked because of it',
      folded.filter(({ unreadSince }) => unreadSince !== undefined),
    ),
  ];
}

const mostFolded = 3;

function foldedText(label: string, folded: readonly Problem[]): string[] {
  if (folded.length === 0) return [];
  // The details of consequences repeat the cause, so they are left out.
  const shown = folded.slice(0, mostFolded).map(({ what }) => what.split(': ')[0]!);
  const more = folded.length > mostFolded ? ` and ${folded.length - mostFolded} more` : '';
  return [`${label}: ${shown.join(', ')}${more}`];
}

function problemLines(row: Alike, all: readonly Problem[], nowMs: number, screen: Screen): string[] {
  const { problem, others, last } = row;
  const { severity, what, fix, firstSteps, since, reasonSince, unreadSince, runbook } = problem;
  const columns = screen.size()?.columns ?? Infinity;
  const mark = screen.unicode ? '●' : severity === 'critical' ? '!' : '-';
  const more = [
    `for ${ageOf(since, nowMs)}`,
    ...(reasonSince ? [`for this reason for ${ageOf(reasonSince, nowMs)}`] : []),
    ...(unreadSince ? [`state unknown for ${ageOf(unreadSince, nowMs)}`] : []),
    ...(runbook ? [`runbook ${runbook}`] : []),
  ].join(', ');
  const [first, ...rest] = wrapped(`${plain(what)}${more && ` (${more})`}`, columns - 4);
  const alikeText =
    others.length > 0 ? [`${others.length} more of this kind, the last for ${ageOf(last, nowMs)}`] : [];
  // An agent of an earlier version has no first steps.
  const toDo = [fix ?? firstSteps ?? ''].filter(Boolean);
  const advice = [...alikeText, ...toDo, ...reasonsOf(problem, all, nowMs)].flatMap((text) =>
    wrapped(plain(text), columns - 6),
  );
  return [
    `  ${paint(mark, colourOf[severity], screen)} ${first}`,
    ...rest.map((line) => `    ${line}`),
    ...advice.map((line) => `      ${line}`),
  ];
}

const healthcheckUsage = `Usage: svc-agent healthcheck [-c FILE] [--ready] [--url URL [--ca FILE | --insecure]]

Requests /health (or /ready) from a running agent and exits with 0 if it is healthy (or ready), else with 1.
For HEALTHCHECK instructions and exec probes: the image needs no curl.
${targetUsage}`;

const healthcheckForm = {
  name: 'healthcheck',
  usage: healthcheckUsage,
  options: { ...targetOptions, ready: { type: 'boolean' } },
} as const;

/** Runs `svc-agent healthcheck`: asks for the agent's own health over HTTP. */
export const healthcheck = command(healthcheckForm, async (values, io) => {
  const target = await targetOf(values, values.ready ? '/ready' : '/health', io);
  const answer = await healthOf(target);
  io.stdout(values.json ? `${JSON.stringify(answer)}\n` : `${answer.ok ? 'ok' : 'not ok'}: ${answer.msg}\n`);
  return answer.ok ? 0 : 1;
});

async function healthOf(target: AgentTarget): Promise<{ ok: boolean; msg: string }> {
  try {
    const { ok, msg } = (await ask(target)) as { ok?: unknown; msg?: unknown };
    return { ok: ok === true, msg: typeof msg === 'string' ? msg : 'an answer without msg' };
  } catch (error) {
    return { ok: false, msg: `${targetText(target.url)}: ${errorText(error)}` };
  }
}
