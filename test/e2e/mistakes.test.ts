import { spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dispatch } from '../../src/agent/cli/dispatch.ts';
import { fakeIo } from '../unit/cli/fake-io.ts';
import { mainFile } from './process.ts';

const fixtures = fileURLToPath(new URL('../fixtures/mistakes', import.meta.url));

/** `mistakes.txt`, written by hand: a command, what it prints about the mistake, and its exit status. */
const table = readFileSync(`${fixtures}.txt`, 'utf8')
  .trim()
  .split('\n\n')
  .map((block) => {
    const [command = '', ...lines] = block.split('\n');
    const [, name, ...args] = command.replace(/^\$ svc-agent /, '').split(' ');
    return { name: name!.replace('.yaml', ''), command, args, expected: lines.join('\n') };
  });

const box = mkdtempSync(join(tmpdir(), 'svc-agent-mistakes-'));
/** Permissions do not apply to root: the agent runs as another user there, if that user can read the program. */
const nobody = { uid: 65_534, gid: 65_534 };
const isRoot = process.getuid?.() === 0;
const canBeNobody = isRoot && spawnSync(process.execPath, [mainFile, '--version'], nobody).status === 0;
const needPermissions = new Set(['log-unreadable', 'state-directory-unwritable']);
/**
 * The mistakes that another user must run, and a few that test the processes through which the built program's `check` reports.
 */
const needBuilt = new Set([...needPermissions, 'brace-not-closed', 'certificate-missing', 'comma-missing']);
/** The ports in the files of mistakes, and the ports that stand for them here: another run may have those. */
const ports = new Map<string, string>();
const withPorts = (text: string, pairs: readonly (readonly [from: string, to: string])[]) =>
  pairs.reduce((left, [from, to]) => left.replaceAll(`127.0.0.1:${from}`, `127.0.0.1:${to}`), text);
const closers: (() => unknown)[] = [() => rmSync(box, { recursive: true, force: true })];
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

beforeAll(async () => {
  const line = '{"level":"info","ts":"2026-01-01T00:00:00Z","msg":"started"}\n';
  mkdirSync(join(box, 'logs/old'), { recursive: true });
  mkdirSync(join(box, 'state-in-use'));
  writeFileSync(join(box, 'logs/frontend.log'), line);
  writeFileSync(join(box, 'logs/old/frontend.log.1.gz'), gzipSync(line));
  cpSync(fixtures, box, { recursive: true });
  const secrets = join(box, 'secrets-here');
  mkdirSync(secrets);
  writeFileSync(join(secrets, 'empty'), '');
  writeFileSync(join(secrets, 'token'), 's3cret\n');
  const pair = ['-keyout', join(secrets, 'agent.key'), '-out', join(secrets, 'agent.pem')];
  const made = [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '30',
    '-subj',
    '/CN=localhost',
    ...pair,
  ];
  expect(spawnSync('openssl', made).status).toBe(0);
  chmodSync(join(secrets, 'agent.key'), 0o644);
  if (canBeNobody)
    for (const path of ['', 'state-in-use', 'logs', 'logs/frontend.log', 'logs/old'])
      chownSync(join(box, path), nobody.uid, nobody.gid);
  writeFileSync(join(box, 'logs/private.log'), line);
  chmodSync(join(box, 'logs/private.log'), 0o000);
  mkdirSync(join(box, 'read-only'), { mode: 0o555 });

  const taken = createServer().listen(0, '127.0.0.1');
  const udp = createSocket('udp4').bind(0, '127.0.0.1');
  const page = createHttpServer((_, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>Service</title>');
  }).listen(0, '127.0.0.1');
  const servers = { 29464: taken, 29465: page, 29466: udp };
  await Promise.all(Object.values(servers).map((server) => once(server, 'listening')));
  for (const [shown, server] of Object.entries(servers))
    ports.set(shown, String((server.address() as AddressInfo).port));
  for (const name of readdirSync(fixtures)) {
    const text = readFileSync(join(fixtures, name), 'utf8');
    writeFileSync(join(box, name), withPorts(text, [...ports]));
  }
  writeFileSync(join(box, 'holder.yaml'), 'admin: ~\nstateDirectory: state-in-use\n');
  const holder = agent(['run', '-c', 'holder.yaml']);
  await new Promise<void>((resolve) => {
    holder.stderr.on('data', (data) => String(data).includes('"ready"') && resolve());
  });
  closers.push(
    () => {
      for (const server of [taken, udp, page]) server.close();
    },
    () => {
      holder.kill();
      return once(holder, 'exit');
    },
  );
});

function agent(args: readonly string[], env: Record<string, string> = {}) {
  return spawn(process.execPath, [mainFile, ...args], {
    cwd: box,
    env: { PATH: process.env.PATH, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(canBeNobody ? nobody : {}),
  });
}

interface Outcome {
  out: string;
  err: string;
  status: number;
}

/** Runs a command of the built program. */
async function ranBuilt(args: readonly string[], env: Record<string, string>): Promise<Outcome> {
  const child = agent(args, env);
  let out = '';
  let err = '';
  child.stdout.on('data', (data) => (out += data));
  child.stderr.on('data', (data) => (err += data));
  const [status] = await once(child, 'close');
  return { out, err, status };
}

/** Runs a command of the sources in this process, which takes a hundredth of the time. */
async function ranHere(args: readonly string[], env: Record<string, string>): Promise<Outcome> {
  const io = fakeIo(box, env);
  const status = await dispatch(args, io);
  return { out: io.out(), err: io.err(), status };
}

/** What a command says about the mistake: all of stderr except the log, and the findings and the verdict of a report. */
async function said(command: string, name: string, args: readonly string[]): Promise<string> {
  const ran = command === 'check' && !needBuilt.has(name) ? ranHere : ranBuilt;
  const { out, err, status } = await ran([command, '-c', `${name}.yaml`, ...args], {
    STATE_DIRECTORY: join(box, `state-${name}`),
  });
  const lines = [
    ...err.split('\n').filter((line) => line !== '' && !line.startsWith('{')),
    ...out.split('\n').filter((line) => /^ +\S+\.yaml:\d|^(?:in)?valid|FAILED/.test(line)),
    `exit ${status}`,
  ];
  const shown = [...ports].map(([from, to]) => [to, from] as const);
  return lines
    .map((line) => withPorts(line, shown))
    .map((line) =>
      line
        .trim()
        .replaceAll(box, 'DIR')
        .replace(/\(pid \d+\)/, '(pid N)'),
    )
    .join('\n');
}

test.each(table.map((row) => [row.command, row] as const))(
  '%s',
  async (_, { name, command, args, expected }) => {
    const output = await said(command.split(' ')[2]!, name, args);
    expect(output).not.toContain('s3cret');
    if (needPermissions.has(name) && isRoot && !canBeNobody) return;
    expect(output).toBe(expected);
  },
);

test('each file has its line in the table', () => {
  expect(table.map(({ name }) => `${name}.yaml`).sort()).toEqual(readdirSync(fixtures).sort());
});
