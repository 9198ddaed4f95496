import { once } from 'node:events';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import type { Incident, StatusReport } from '../src/agent/report.ts';
import { type Running, type RunningAgent, start, startAgent } from './e2e/process.ts';
import { newFolder } from './folder.ts';
import { makeCertificates } from './integration/pull/certificates.ts';
import { freePort, listening } from './ports.ts';
import { startPostgres } from './postgres.ts';
import { until } from './until.ts';

/**
 * A service of four processes, whose health depends on their store, and the built agent beside it. The store is a real PostgreSQL
 * behind a proxy, the door, which may be shut, silent or slow.
 */

export const roles = ['frontend', 'history', 'matching', 'worker'] as const;
type RoleName = (typeof roles)[number];

/** The state of the door to the store. `silent`: it accepts connections and never answers. */
type Door = 'open' | 'shut' | 'silent' | 'slow';
/** How long a role waits for the store, and the delay of each answer of a slow one, which is longer. */
const usualWaitMs = 500;
const slowMs = 700;

/** The program of a role. It requests TLS from the store, like a client of PostgreSQL; one byte is the answer. */
const roleProgram = `const { connect } = require('node:net');
const { appendFileSync, readFileSync } = require('node:fs');
const [port, storePort, log, waitMs, cert, key] = process.argv.slice(2);
const say = (level, msg) => {
  try {
    appendFileSync(log, JSON.stringify({ level, ts: new Date().toISOString(), msg }) + '\\n');
  } catch {}
};
const asksStore = () =>
  new Promise((resolve) => {
    const socket = connect(Number(storePort), '127.0.0.1');
    const end = (isWell) => (socket.destroy(), resolve(isWell));
    socket.setTimeout(Number(waitMs), () => end(false));
    socket.on('error', () => end(false)).on('close', () => end(false)).on('data', () => end(true));
    socket.write(Buffer.from('0000000804d2162f', 'hex'));
  });
const answer = async (_request, response) => {
  const ok = await asksStore();
  if (!ok) say('error', 'Persistent fetch operation failure');
  response.writeHead(ok ? 200 : 503, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ ok, msg: ok ? '' : 'persistence does not answer' }));
};
const files = () => ({ cert: readFileSync(cert), key: readFileSync(key) });
const server = cert ? require('node:https').createServer(files(), answer) : require('node:http').createServer(answer);
if (cert) process.on('SIGHUP', () => server.setSecureContext(files()));
server.listen(Number(port), '127.0.0.1', () => say('info', 'started'));
setInterval(() => say('info', 'works'), 500);
`;

interface LiveService {
  readonly agent: RunningAgent;
  /** Ends the agent and starts it again with its state. */
  restartAgent(signal: NodeJS.Signals): Promise<void>;
  /** The folder of the roles' logs. */
  logs: string;
  /** The agent's state directory. */
  state: string;
  setDoor(door: Door): Promise<void>;
  /** Sends a signal to the process of a role. */
  signal(role: RoleName, signal: NodeJS.Signals): void;
  /** Starts the process of a role again. */
  begin(role: RoleName): Promise<void>;
  status(): Promise<StatusReport>;
  /** Waits until the verdict is the wanted one. */
  sees(what: string, isWanted: (report: StatusReport) => boolean): Promise<StatusReport>;
  /** Waits until the cause is over and has become an incident, and all is well again. */
  isOver(cause: string): Promise<Incident>;
}

interface Options {
  /** The files of the frontend's certificate; with them the frontend serves over TLS. */
  tls?: { cert: string; key: string; ca: string };
  /** Separate folders, such as small file systems. */
  logs?: string;
  state?: string;
  /** Further variables in the agent's environment. */
  env?: Record<string, string>;
  /** How long the agent waits for a role, and how often it polls the role. Default: 3s. */
  healthTimeout?: string;
  /** How long the agent waits for the store, and how often it polls the store. Default: 4s. */
  storeTimeout?: string;
  /** How long a role waits for the store before it says that its persistence does not answer. */
  roleWaitMs?: number;
}

async function startDoor(behind: number) {
  let door: Door = 'open';
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    return socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  };
  const late = (from: Socket, to: Socket) =>
    from.on('data', (chunk) =>
      setTimeout(() => to.writable && to.write(chunk), door === 'slow' ? slowMs : 0),
    );
  const server = createServer((socket) => {
    keep(socket);
    if (door === 'silent') return void socket.resume();
    const inner = keep(connect(behind, '127.0.0.1'));
    late(inner, socket);
    socket.pipe(inner);
    socket.on('close', () => inner.destroy());
    inner.on('close', () => setTimeout(() => socket.destroy(), door === 'slow' ? slowMs : 0));
  });
  const { port } = await listening(server);
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    async set(next: Door) {
      if (next === door) return;
      const wasShut = door === 'shut';
      door = next;
      drop();
      if (next === 'shut') {
        server.close();
        await once(server, 'close');
      } else if (wasShut) {
        server.listen(port, '127.0.0.1');
        await once(server, 'listening');
      }
    },
    end() {
      drop();
      server.close();
    },
  };
}

/** Starts the service. Everything ends with the test. */
export async function startLiveService({
  tls,
  logs,
  state,
  env,
  healthTimeout = '3s',
  storeTimeout = '4s',
  roleWaitMs = usualWaitMs,
}: Options = {}): Promise<LiveService> {
  const folder = newFolder();
  const store = await startPostgres({ settings: ['fsync=on'] });
  onTestFinished(() => store.stop());
  await store.query(`CREATE TABLE schema_version (db_name text, curr_version text);
    INSERT INTO schema_version VALUES ('postgres', '0.8')`);
  const door = await startDoor(store.port);
  onTestFinished(() => door.end());
  const places = { logs: logs ?? join(folder, 'logs'), state: state ?? join(folder, 'state') };
  for (const place of Object.values(places)) mkdirSync(place, { recursive: true });
  const program = join(folder, 'role.cjs');
  writeFileSync(program, roleProgram);

  const running = new Map<RoleName, Running>();
  onTestFinished(async () => {
    for (const role of running.values()) await role.end('SIGKILL');
  });
  const ports = new Map<RoleName, number>();
  for (const role of roles) ports.set(role, await freePort());
  const isTls = (role: RoleName) => tls !== undefined && role === 'frontend';
  const begin = async (role: RoleName) => {
    const port = ports.get(role)!;
    const files = isTls(role) ? [tls!.cert, tls!.key] : [];
    const log = join(places.logs, `${role}.log`);
    running.set(
      role,
      start(process.execPath, [program, `${port}`, `${door.port}`, log, `${roleWaitMs}`, ...files]),
    );
    await until(`${role} listens`, async () => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      socket.destroy();
      return true;
    });
  };
  await Promise.all(roles.map(begin));

  const health = (role: RoleName) => ({
    // A busy machine delays an answer by a second or two, which is no fault of the role.
    ...{ interval: healthTimeout, timeout: healthTimeout },
    ...(isTls(role)
      ? { url: `https://localhost:${ports.get(role)}/health`, tls: { caFile: tls!.ca } }
      : { url: `http://127.0.0.1:${ports.get(role)}/health` }),
  });
  const file = join(folder, 'agent.yaml');
  writeFileSync(
    file,
    stringify({
      stateDirectory: places.state,
      metrics: { pullmetrics: { listenAddress: '127.0.0.1:0' } },
      admin: { listenAddress: '127.0.0.1:0' },
      services: Object.fromEntries(
        roles.map((role) => [
          role,
          { health: health(role), logs: { paths: [join(places.logs, `${role}.log`)], startAt: 'beginning' } },
        ]),
      ),
      stores: [
        {
          ...{ name: 'main', kind: 'postgres', address: `127.0.0.1:${door.port}`, user: 'postgres' },
          ...{
            databases: { persistence: 'postgres' },
            schema: { persistence: '0.8' },
            interval: storeTimeout,
            timeout: storeTimeout,
          },
        },
      ],
    }),
  );
  let agent = await startAgent(file, [], env);
  onTestFinished(() => void agent.end('SIGKILL'));
  const status = async () =>
    (await (await fetch(`http://${agent.address('admin')}/api/status`)).json()) as StatusReport;
  const sees: LiveService['sees'] = (what, isWanted) =>
    until(what, async () => {
      const report = await status();
      if (isWanted(report)) return report;
      throw new Error(report.verdict.sentence);
    });
  const isQuiet = ({ verdict }: StatusReport) => verdict.level === 'ok';
  await sees('all is well', isQuiet);
  return {
    ...{ ...places, begin, status, sees },
    get agent() {
      return agent;
    },
    async restartAgent(signal) {
      await agent.end(signal);
      agent = await startAgent(file, [], env);
    },
    setDoor: door.set,
    signal: (role, signal) => void running.get(role)!.child.kill(signal),
    async isOver(cause) {
      const report = await sees(
        `${cause} is over`,
        (one) => isQuiet(one) && one.incidents.some(({ id }) => id === cause),
      );
      return report.incidents.find(({ id }) => id === cause)!;
    },
  };
}

/** Matches the text about the end of a role's outage. The restart is seen only with the role's next page. */
export const recovered = (role: string) =>
  expect.stringMatching(new RegExp(`^role ${role} (?:restarted and )?recovered$`));

/** Starts the service with TLS. Its frontend can change its certificate while it runs, to a good one or an expired one. */
export async function startServiceWithTls() {
  const made = makeCertificates();
  const authority = made.authority('ours', 60);
  const [served, good] = [
    made.signed('served', authority, { days: 60 }),
    made.signed('good', authority, { days: 60 }),
  ];
  const ended = made.signed('ended', authority, { days: -1 });
  const service = await startLiveService({
    tls: { ...served, ca: authority.cert },
    healthTimeout: '6s',
  });
  const serve = (files: typeof good) => {
    copyFileSync(files.cert, served.cert);
    copyFileSync(files.key, served.key);
    service.signal('frontend', 'SIGHUP');
  };
  return { service, serve, good, ended };
}
