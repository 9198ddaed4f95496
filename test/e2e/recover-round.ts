import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { folder } from '../run-folder.ts';
import { command, mainFile, type Running, start } from './process.ts';
import { type Role, startRole } from './role.ts';

// Runs of `svc-agent recover database-corruption` with the built program, for the tests of each kind of store. They are about the
// database `persistence` of the store `main`.

/** Starts a run with the configuration in `file`. Nobody answers it. */
export function startRecovery(file: string, ...args: readonly string[]): Running {
  const subject = ['-c', file, '--store', 'main', '--database', 'persistence'];
  const words = [mainFile, 'recover', 'database-corruption', ...subject, ...args];
  const run = start(process.execPath, words);
  run.child.stdin?.end();
  return run;
}

export const unattended = ['--execute', '--yes', '--confirm', 'main'];

export const endOf = async (run: Running) => ({ status: await run.ended, output: run.output() });

/** Restores the database, confirmed. */
export const recoverMain = (file: string, ...args: readonly string[]) =>
  endOf(startRecovery(file, ...unattended, ...args));

/** Takes a backup by a command, as the job `nightly`. */
export const runBackup = (file: string, ...words: readonly string[]) =>
  command(['backup', 'run', '--job', 'nightly', '-c', file, '--', ...words]);

export function takeBackup(file: string, ...words: readonly string[]): void {
  const { status, stderr } = runBackup(file, ...words);
  expect(status, stderr).toBe(0);
}

/** A new folder with a role in it, until the test ends. */
export async function openRole(): Promise<{ path: string; role: Role }> {
  const { path, remove } = folder();
  onTestFinished(remove);
  const role = await startRole(path);
  onTestFinished(role.remove);
  return { path, role };
}

const schema = ", schema: {persistence: '0.8'}";
export const postgresStore = (port: number, expects = schema) =>
  `{name: main, kind: postgres, address: '127.0.0.1:${port}', user: postgres, databases: {persistence: svc}${expects}}`;
export const mariadbStore = (port: number) =>
  `{name: main, kind: mysql, address: '127.0.0.1:${port}', user: full, password: swordfish, databases: {persistence: svc_main}${schema}}`;

/** The entry of `backups` for dumps, whose times are those of this host. */
export const dumpsIn = (directory: string, { isSql = false, more = '' } = {}) => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const files = `directory: ${directory}, pattern: '\\.${isSql ? 'sql\\.gz' : 'dump'}$', settle: 1ms, takenFrom: primary`;
  return `  - {name: nightly, store: main, database: persistence, type: full, source: {files: {${files}, timeZone: '${zone}'}}${more}}\n`;
};

/** The entry of `backups` for an archived log. */
export const logIn = (directory: string, log: 'wal' | 'binlog') =>
  `  - {name: log, store: main, type: log, source: {segments: {directory: ${directory}, log: ${log}, settle: 1ms}}}\n`;

/** The entries of `backups` for base backups and their log. */
export const basesIn = (directory: string, wal: string, more = '') =>
  `  - {name: base, store: main, type: full, source: {files: {directory: ${directory}, pattern: '^base-', settle: 1ms}}${more}}\n${logIn(wal, 'wal')}`;

interface RecoverySettings {
  store: string;
  backups: string;
  /** The state directory. Default: in the folder of the configuration. */
  state?: string;
  services?: string;
  /** Commands beside those that stop and start the role, each with a comma behind it. */
  commands?: string;
  stop?: string;
  begin?: string;
}

/** Writes a configuration that may recover the store beside a role; returns its path. */
export function writeRecovery(
  place: string,
  role: Pick<Role, 'health' | 'start' | 'stop'>,
  { store, backups, state, services, commands = '', stop, begin }: RecoverySettings,
): string {
  const file = join(place, 'agent.yaml');
  writeFileSync(
    file,
    `stateDirectory: ${state ?? join(place, 'state')}
${services ?? `roles: [history]\nservices: {history: {health: '${role.health}'}}`}
stores: [${store}]
backups:
${backups}recovery: {allowExecute: true, commands: {${commands}stopServices: ${stop ?? `[${role.stop}]`}, startServices: ${begin ?? `[${role.start}]`}, deploy: [${role.start}]}}
`,
  );
  return file;
}
