import { accessSync, constants, mkdirSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname } from 'node:path';
import { parseAddress } from '../../core/address.ts';
import { systemClock } from '../../core/clock.ts';
import { AgentError, errorText, type Fault, faultLine, systemCode } from '../../core/errors.ts';
import { makeDirectorySync } from '../../core/make-directory.ts';
import { withoutUrlSecrets } from '../../core/redacted.ts';
import type { ProbeRow } from '../../probes/probe.ts';
import type { ProbeResult } from '../../probes/runner/probe-state.ts';
import { probeOnce } from '../../probes/runner/runner.ts';
import { checkPattern, surveyLogPaths } from '../config/log-paths.ts';
import { type AgentConfig, blocksOf, type ReadyConfig } from '../config/types.ts';
import { mostOpenFiles, wantedOpenFiles } from '../open-files.ts';
import { reasonOf } from '../verdict/probe-text.ts';
import { command, configurationOptions, configured, withNamedFile } from './arguments.ts';
import { type Io, keepAwake, type Screen, table, wrapped } from './io.ts';
import { openLivePages, probeDeps } from './live-pages.ts';
import { createProbeProgress, type ProbeProgress, planForPerson } from './verification.ts';

const usage = `Usage: svc-agent doctor [FILE | -c FILE] [--service-config FILE]... [--role ROLE]... [--json]

Checks what the agent needs on this host: the configuration, permissions and paths, the clock, ports, kernel buffers,
limits, and the permissions of its users in the stores. Prints what to do for each finding. Changes nothing.
Exit status: 0 no problem; 1 a problem was found; 2 wrong usage or an invalid configuration.
`;

/** The result of an examination. `advice`: it works, but could work better. */
type DiagnosisResult = 'ok' | 'advice' | 'fault';

interface Diagnosis {
  check: string;
  result: DiagnosisResult;
  msg: string;
  /** What to do about the result. */
  fix?: string;
}

type Examination = (
  loaded: ReadyConfig,
  io: Io,
  progress: ProbeProgress,
) => Promise<Diagnosis[]> | Diagnosis[];

const ok = (check: string, msg: string): Diagnosis => ({ check, result: 'ok', msg });
const advice = (check: string, msg: string, fix: string): Diagnosis => ({
  check,
  result: 'advice',
  msg,
  fix,
});
const fault = (check: string, msg: string, fix: string): Diagnosis => ({ check, result: 'fault', msg, fix });

/** The examinations, one row per kind, in the order in which they are shown. */
const examinations: readonly Examination[] = [
  examineConfiguration,
  examineUser,
  examineStateDirectory,
  examineLogs,
  examinePorts,
  examineBuffers,
  examineLimits,
  examineClock,
  examinePages,
  examineProbes,
];

const form = { name: 'doctor', usage, options: configurationOptions, most: 1 } as const;

/** Runs `svc-agent doctor`. */
export const doctor = command(form, async (values, io, files) => {
  const loaded = await configured(withNamedFile(values, files), io);
  const sleep = keepAwake();
  const progress = createProbeProgress(io.screen, values.json ? () => {} : io.stdout);
  const diagnoses: Diagnosis[] = [];
  try {
    for (const examine of examinations) diagnoses.push(...(await examine(loaded, io, progress)));
  } finally {
    sleep();
  }
  io.stdout(values.json ? `${JSON.stringify(diagnoses)}\n` : text(diagnoses, io.screen));
  return diagnoses.some(({ result }) => result === 'fault') ? 1 : 0;
});

function text(diagnoses: readonly Diagnosis[], screen: Screen): string {
  const rows = diagnoses.map(({ check, result, msg }) => [check, result === 'fault' ? 'FAULT' : result, msg]);
  const columns = screen.size()?.columns ?? Infinity;
  const fixes = diagnoses
    .flatMap(({ check, fix }) => (fix === undefined ? [] : [`${check}: ${fix}`]))
    .flatMap((line) => wrapped(line, columns - 4).map((part, i) => `${i === 0 ? '  ' : '    '}${part}\n`));
  const what = fixes.length === 0 ? '\nNothing to do.\n' : `\nWhat to do:\n${fixes.join('')}`;
  return table(['CHECK', 'RESULT', 'WHAT'], rows, screen) + what;
}

/** Places of faults that the examinations below find themselves. */
const examinedBelow = /(?:^|[: ])(?:stateDirectory|services\.[^.]+\.logs\.paths\[\d+\])$/;

function examineConfiguration({ files, findings, warnings }: ReadyConfig): Diagnosis[] {
  const diagnosed = (result: DiagnosisResult) => (found: Fault) => {
    const { allowed = 'svc-agent check shows the place', ...rest } = found;
    // The key tells several findings of one kind apart.
    const key = rest.where.split(': ').at(-1)!;
    return { check: 'configuration', result, msg: faultLine(rest), fix: `${key}: ${allowed}` };
  };
  const isOwn = ({ where }: Fault) => !examinedBelow.test(where);
  const found = [
    ...findings.filter(isOwn).map(diagnosed('fault')),
    ...warnings.filter(isOwn).map(diagnosed('advice')),
  ];
  return found.length > 0 ? found : [ok('configuration', files.join(', '))];
}

/** Examines permissions, which are those of the user who runs the command. */
function examineUser(): Diagnosis[] {
  if (process.getuid?.() !== 0) return [];
  const msg = 'root can read everything; run doctor as the agent’s user to check the rights of that user';
  return [ok('user', msg)];
}

function examineStateDirectory({ config: { stateDirectory } }: ReadyConfig): Diagnosis[] {
  const check = 'state directory';
  try {
    makeDirectorySync(mkdirSync, stateDirectory, 0o750);
    accessSync(stateDirectory, constants.R_OK | constants.W_OK | constants.X_OK);
    return [ok(check, stateDirectory)];
  } catch (thrown) {
    const fix = `create ${stateDirectory} for the agent’s user, or set stateDirectory; without it counts do not survive a restart`;
    return [fault(check, errorText(thrown), fix)];
  }
}

async function examineLogs({ config }: ReadyConfig, io: Io): Promise<Diagnosis[]> {
  const found: Diagnosis[] = [];
  for (const surveyed of await surveyLogPaths(config, io.cwd)) {
    const { pattern, services, files } = surveyed;
    const check = `logs of ${services.join(', ')}`;
    const troubles = checkPattern(surveyed);
    for (const { isFault, what, allowed } of troubles) {
      found.push((isFault ? fault : advice)(check, `${pattern}: ${what}`, allowed));
    }
    const count = `${files.length} ${files.length === 1 ? 'file' : 'files'}`;
    if (troubles.length === 0) found.push(ok(check, `${pattern}: ${count}`));
  }
  const { outputFile } = config.log;
  if (outputFile) {
    const check = 'own log';
    try {
      accessSync(dirname(outputFile), constants.W_OK | constants.X_OK);
      found.push(ok(check, outputFile));
    } catch (thrown) {
      found.push(
        fault(check, errorText(thrown), `create ${dirname(outputFile)}, writable for the agent’s user`),
      );
    }
  }
  return found;
}

/** Addresses that the agent will listen on, with the key that names each. */
function listenersOf(config: AgentConfig): [string, string][] {
  const pulls = blocksOf(config).flatMap(({ name, metrics: { reporter } }): [string, string][] =>
    reporter?.kind === 'pullmetrics' ? [[`${name}.pullmetrics`, reporter.options.listenAddress]] : [],
  );
  const { admin } = config;
  return [
    ...pulls,
    ...(admin ? ([['admin', admin.listenAddress]] as [string, string][]) : []),
    ...(admin?.health ? ([['admin.health', admin.health]] as [string, string][]) : []),
  ];
}

async function examinePorts({ config }: ReadyConfig): Promise<Diagnosis[]> {
  const found: Diagnosis[] = [];
  for (const [place, address] of listenersOf(config)) {
    const { host, port } = parseAddress(address) ?? { host: '', port: 0 };
    if (port === 0) continue;
    const check = `port of ${place}`;
    const code = await bindError(host, port);
    if (code === undefined) found.push(ok(check, `${address} is free`));
    else if (code === 'EADDRINUSE' && (await isAgent(host, port)))
      found.push(ok(check, `${address}: a running svc-agent`));
    else {
      const fix =
        code === 'EADDRINUSE'
          ? `another program has ${address}; ss -ltnp 'sport = :${port}' shows which. Set another port in ${place}`
          : `${address} cannot be bound (${code}); set an address of this host in ${place}`;
      found.push(fault(check, `${address}: ${code}`, fix));
    }
  }
  return found;
}

function bindError(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (thrown) => resolve(systemCode(thrown) ?? 'failed'));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

/** Whether an agent listens on this address. */
async function isAgent(host: string, port: number): Promise<boolean> {
  const dialled = ['0.0.0.0', '::', ''].includes(host) ? '127.0.0.1' : host;
  const isOpen = await new Promise<boolean>((resolve) => {
    const socket = connect({ host: dialled, port, timeout: 1000 });
    const end = (open: boolean) => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
    socket.once('timeout', () => end(false));
  });
  if (!isOpen) return false;
  const answer = await fetch(`http://${dialled}:${port}/health`, { signal: AbortSignal.timeout(2000) }).catch(
    () => undefined,
  );
  const body = (await answer?.json().catch(() => undefined)) as { ok?: unknown; msg?: unknown } | undefined;
  return typeof body?.ok === 'boolean' && typeof body.msg === 'string';
}

const wantedBufferBytes = 4 * 1024 * 1024;

function kernelNumber(name: string): number | undefined {
  try {
    return Number(readFileSync(`/proc/sys/${name.replaceAll('.', '/')}`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Examines the receive buffers. The default buffer holds 256 datagrams: at 50,000 a second these are 5 ms. */
function examineBuffers({ config }: ReadyConfig): Diagnosis[] {
  if (!config.services.some(({ selected, statsd }) => selected && statsd)) return [];
  const check = 'receive buffer';
  const most = kernelNumber('net.core.rmem_max');
  if (most === undefined) return [];
  const msg = `net.core.rmem_max is ${most}`;
  if (most >= wantedBufferBytes) return [ok(check, msg)];
  return [
    advice(
      check,
      msg,
      `sysctl -w net.core.rmem_max=${wantedBufferBytes}: otherwise the kernel drops bursts of datagrams`,
    ),
  ];
}

function examineLimits({ config }: ReadyConfig): Diagnosis[] {
  if (!config.services.some(({ selected, logs }) => selected && logs)) return [];
  const found: Diagnosis[] = [];
  const files = mostOpenFiles();
  if (files !== undefined && files < wantedOpenFiles) {
    found.push(
      advice(
        'open files',
        `at most ${files}`,
        `raise LimitNOFILE or ulimit -n to ${wantedOpenFiles}: log files beyond the limit are opened in turns`,
      ),
    );
  }
  const watches = kernelNumber('fs.inotify.max_user_watches');
  if (watches !== undefined && watches < 8192) {
    const fix =
      'sysctl -w fs.inotify.max_user_watches=8192: directories that are not watched are noticed at the next scan';
    found.push(advice('inotify', `fs.inotify.max_user_watches is ${watches}`, fix));
  }
  return found.length > 0 ? found : [ok('limits', 'the limits of open files and inotify watches suffice')];
}

/** If the clocks of two hosts differ by more than this, ages and failover times are misleading. */
const clockToleranceMs = 2_000;

/** Compares this host's clock with the dates in the responses of the roles' endpoints. */
async function examineClock({ config }: ReadyConfig): Promise<Diagnosis[]> {
  const urls = config.services.flatMap(({ selected, health, scrape }) =>
    selected
      ? [health?.url, scrape?.url].filter((url): url is string => url?.startsWith('http') ?? false)
      : [],
  );
  for (const url of urls) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(3000) }).catch(() => undefined);
    const date = Date.parse(answer?.headers.get('date') ?? '');
    await answer?.body?.cancel();
    if (Number.isNaN(date)) continue;
    // The header has whole seconds.
    const aheadMs = systemClock.nowMs() - date - 500;
    const { host } = new URL(url);
    const offSeconds = Math.round(Math.abs(aheadMs) / 1000);
    const msg =
      offSeconds === 0 ? `as on ${host}` : `${offSeconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} ${host}`;
    if (Math.abs(aheadMs) <= clockToleranceMs) return [ok('clock', msg)];
    return [
      fault(
        'clock',
        msg,
        'synchronize both clocks (chrony, systemd-timesyncd): ages and the order of events are wrong',
      ),
    ];
  }
  return [];
}

/** Fetches each role's own metrics once. */
async function examinePages({ config }: ReadyConfig, io: Io): Promise<Diagnosis[]> {
  const pages = await openLivePages(config, io);
  return Promise.all(
    pages.map(async ({ service: { name, scrape }, result, close }) => {
      await close();
      const check = `metrics of ${name}`;
      if (result.ok) return ok(check, withoutUrlSecrets(scrape!.url));
      const fix = `is the role up, and does it serve its metrics there? Otherwise correct services.${name}.scrape`;
      return fault(check, result.what, fix);
    }),
  );
}

/** The key that names the target of a probe, by its kind. */
const keyOf: Readonly<Record<string, (subject: string) => string>> = {
  health: (role) => `services.${role}.health`,
  store: (store) => `the entry ${store.split('/')[0]} of stores`,
  cluster: (cluster) => `clusterGroupMetadata.clusterGroup.${cluster}`,
  domain: () => 'domains.describe',
  archive: (archive) => `archival.${archive}`,
};

const secretFix =
  'the agent reads the secret from there: set it for the user that runs the agent, then run doctor again';

/** What to do about a probe that fails. It follows the message of the finding. */
function probeFix({ name, kind }: ProbeRow, reason: string | undefined): string {
  const key = keyOf[kind]?.(name.slice(name.indexOf('/') + 1));
  const more = `svc-agent probe ${name} shows more`;
  if (key === undefined) return more;
  if (reason === 'credentials')
    return `correct the user or the password in ${key}; svc-agent probe --print-grants prints the rights that the user needs`;
  if (reason?.startsWith('tls')) return `correct tls in ${key}; ${more}`;
  if (reason === 'resolve') return `correct the name of the host in ${key}`;
  if (['refused', 'unreachable', 'reset', 'connect_timeout', 'too_slow'].includes(reason ?? ''))
    return `start it, allow the connection, or correct the address in ${key}`;
  if (reason === 'invalid_answer' || reason === 'http_status') return `is ${key} the right address? ${more}`;
  return more;
}

/** Runs the probes and gives advice for each finding. */
async function examineProbes({ config }: ReadyConfig, io: Io, progress: ProbeProgress): Promise<Diagnosis[]> {
  const rows = planForPerson(config, progress.onVerification, false).filter(
    ({ kind }) => kind !== 'replication',
  );
  progress.begin(rows);
  const deps = probeDeps(io.env);
  /** The reasons why a secret cannot be read, by the message that the probe shows. */
  const unread = new Map<string, string>();
  const readSecret: typeof deps.readSecret = (secret) =>
    deps.readSecret(secret).catch((thrown) => {
      if (thrown instanceof AgentError) unread.set(thrown.message, thrown.fault.what);
      throw thrown;
    });
  const onResult = (row: ProbeRow) => progress.done(row.name);
  const polled = await probeOnce(rows, { ...deps, readSecret, onResult }).finally(progress.clear);
  return polled.flatMap(({ row, result }): Diagnosis[] => {
    const own = result.ok
      ? ok(row.name, result.msg)
      : fault(
          row.name,
          reasonOf({ last: { ...result, msg: unread.get(result.msg) ?? result.msg } }),
          unread.has(result.msg) ? secretFix : probeFix(row, result.reason),
        );
    const unchecked = uncheckedIn(result);
    return unchecked ? [own, advice(row.name, unchecked.what, unchecked.fix)] : [own];
  });
}

/**
 * What to do about checks of a store that have no result. All of them share one piece of advice, because one right may solve
 * several.
 */
function uncheckedIn({ details }: ProbeResult): { what: string; fix: string } | undefined {
  const checks = (details?.checks ?? []) as { check: string; holds: unknown; found: string }[];
  const unknown = checks.filter(({ holds }) => holds === 'unknown');
  if (unknown.length === 0) return undefined;
  const isOfHost = ({ check }: { check: string }) => check === 'free_space';
  const fixes: string[] = [];
  if (!unknown.every(isOfHost))
    fixes.push('if a right is missing, svc-agent probe --print-grants prints the statement that grants it');
  if (unknown.some(isOfHost))
    fixes.push('for free_space run an agent on the host of the store, where it can see the directories');
  const what = unknown.map(({ check, found }) => `${check} (${found})`).join(', ');
  return { what: `cannot be checked: ${what}`, fix: fixes.join('; ') };
}
