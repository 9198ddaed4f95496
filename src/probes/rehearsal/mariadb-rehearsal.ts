import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Transform } from 'node:stream';
import { cannotRead, unpackedFile } from './backup-content.ts';
import { copyBackup } from './copy-tree.ts';
import { programOf } from './programs.ts';
import { asUnknown, CannotLook, type Phases, type RehearsalRequest, type Restored } from './rehearsal.ts';
import { lastWords, type Sandbox } from './sandbox.ts';

/** The position in the log that follows a backup. */
interface LogPosition {
  file: string;
  position: string;
}

/** Restores a dump, or a copy of the files by mariadb-backup, together with the binary log into a throwaway server. */
export async function rehearseMariadb(
  request: RehearsalRequest,
  sandbox: Sandbox,
  phases: Phases,
): Promise<Restored> {
  const { backup, database, log } = request;
  let isDirectory: boolean;
  try {
    isDirectory = statSync(backup).isDirectory();
  } catch (thrown) {
    throw cannotRead(backup, thrown);
  }
  const data = isDirectory ? await restoreFiles(backup, sandbox, phases) : await newData(sandbox, phases);
  await phases.measure(isDirectory ? 'restore' : 'create', () => startServer(data, sandbox, isDirectory));
  const client = [programOf(['mariadb', 'mysql']), ...connection(sandbox)];
  const from = isDirectory ? positionOfFiles(data) : await restoreDump(client, request, sandbox, phases);
  const newestMs =
    log === undefined || from === undefined
      ? undefined
      : await phases.measure('log', () => applyLog(client, from, log, database, sandbox));
  const ask: Restored['ask'] = async (sql) =>
    (
      await sandbox.run([...client, '--batch', '--skip-column-names', `--execute=${sql}`, database], asAgent)
    ).trim();
  return { ask, ...(newestMs === undefined ? {} : { newestMs }) };
}

const asAgent = { asAgent: true };
/** The path of the socket. Beside its data, the server's user may write only to this directory. */
const socketIn = ({ scratch }: Sandbox) => join(scratch, 'socket');
const connection = (sandbox: Sandbox) => [
  ...['--no-defaults', `--socket=${socketIn(sandbox)}`, '--user=root'],
];

async function newData(sandbox: Sandbox, phases: Phases): Promise<string> {
  const program = programOf(['mariadb-install-db', 'mysql_install_db']);
  return phases.measure('create', async () => {
    const data = sandbox.makeDirectory('data');
    const kind = ['--auth-root-authentication-method=normal', '--skip-test-db'];
    await sandbox.run([program, '--no-defaults', `--datadir=${data}`, ...kind]).catch(asUnknown);
    return data;
  });
}

/** Copies the files and prepares them. */
async function restoreFiles(backup: string, sandbox: Sandbox, phases: Phases): Promise<string> {
  if (!existsSync(join(backup, 'xtrabackup_checkpoints')))
    throw new CannotLook(`${backup} is neither a dump nor a backup by mariadb-backup`);
  refuseFilesElsewhere(backup);
  const program = programOf(['mariadb-backup', 'mariabackup']);
  const data = await phases.measure('copy', () => copyBackup(backup, sandbox));
  keepInside(data);
  await phases.measure('restore', () =>
    sandbox.run([program, '--no-defaults', '--prepare', `--target-dir=${data}`]),
  );
  return data;
}

/** The path of the file that states the layout of the InnoDB files. */
const layoutIn = (data: string) => join(data, 'backup-my.cnf');

/** Throws CannotLook if a table has a DATA DIRECTORY: the dictionary in the backup names the store's own file for it. */
function refuseFilesElsewhere(backup: string): void {
  const names = readdirSync(backup, { recursive: true, encoding: 'utf8' });
  const linked = names.find((name) => name.endsWith('.isl'));
  if (linked === undefined) return;
  const table = linked.slice(0, -'.isl'.length).replace('/', '.');
  throw new CannotLook(
    `table ${table} has a DATA DIRECTORY, in which a throwaway server would open the file of the store`,
  );
}

/** Removes the store's directories from the layout of a copy: a server would open the files of the store in them. */
function keepInside(data: string): void {
  const layout = layoutIn(data);
  if (!existsSync(layout)) return;
  const lines = readFileSync(layout, 'utf8').split('\n');
  const inside = lines.flatMap((line) => {
    const [, name = '', value = ''] = /^\s*(innodb[\w-]+)\s*=\s*(.*)$/.exec(line) ?? [];
    if (!value.includes('/')) return [line];
    const files = value.split(';').map((file) => file.replace(/^.*\//, ''));
    return /^innodb.data.file.path$/.test(name) ? [`${name}=${files.join(';')}`] : [];
  });
  writeFileSync(layout, inside.join('\n'));
}

function positionOfFiles(data: string): LogPosition | undefined {
  const path = ['mariadb_backup_binlog_info', 'xtrabackup_binlog_info']
    .map((name) => join(data, name))
    .find((each) => existsSync(each));
  const [file, position] = path === undefined ? [] : readFileSync(path, 'utf8').split(/\s+/);
  return file && position ? { file, position } : undefined;
}

/** Starts the server. Resolves once it accepts statements, only on a socket in the sandbox. */
async function startServer(data: string, sandbox: Sandbox, isCopy: boolean): Promise<void> {
  const program = programOf(['mariadbd', 'mysqld']);
  const layout = layoutIn(data);
  const defaults = isCopy && existsSync(layout) ? `--defaults-file=${layout}` : '--no-defaults';
  const directories = ['innodb-data-home-dir', 'innodb-undo-directory', 'innodb-log-group-home-dir'];
  const server = sandbox.start([
    ...[program, defaults, `--datadir=${data}`, `--socket=${socketIn(sandbox)}`],
    ...[...directories, 'loose-aria-log-dir-path'].map((name) => `--${name}=${data}`),
    ...[`--tmpdir=${sandbox.scratch}`, `--secure-file-priv=${sandbox.scratch}`],
    // The DATA DIRECTORY of a table in a dump or in the log is one of the store: a server without symbolic links ignores it.
    '--skip-symbolic-links',
    ...[`--pid-file=${join(data, 'pid')}`, '--skip-networking'],
    ...['--skip-log-bin', '--skip-slave-start', '--event-scheduler=OFF', '--innodb-buffer-pool-size=64M'],
    ...['--default-time-zone=+00:00', ...(isCopy ? ['--skip-grant-tables'] : [])],
  ]);
  server.child.stdin!.end();
  server.child.stdout!.resume();
  while (!/ready for connections/.test(server.said())) {
    if (server.child.exitCode !== null || server.child.signalCode !== null) {
      await server.ended;
      if (sandbox.signal.aborted) throw sandbox.signal.reason;
      const why = `the server does not start from the backup: ${lastWords(server.said())}`;
      throw isCopy ? new Error(why) : new CannotLook(`no throwaway server can be made: ${why}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function restoreDump(
  client: readonly string[],
  { backup, database }: RehearsalRequest,
  sandbox: Sandbox,
  phases: Phases,
): Promise<LogPosition | undefined> {
  return phases.measure('restore', async () => {
    const name = `\`${database.replaceAll('`', '``')}\``;
    await sandbox.run([...client, `--execute=CREATE DATABASE IF NOT EXISTS ${name}`], asAgent);
    const { stream, fault } = unpackedFile(backup, sandbox);
    const tap = new PassThrough();
    let head = '';
    tap.on('data', (chunk: Buffer) => {
      if (head.length < headBytes) head += chunk.toString('latin1');
    });
    stream.on('error', (thrown) => tap.destroy(thrown)).pipe(tap);
    const program = sandbox.start([...client, '--binary-mode', database], { ...asAgent, input: tap });
    program.child.stdout!.resume();
    const [ended, unpacked] = await Promise.all([program.ended, fault]);
    if (sandbox.signal.aborted) throw sandbox.signal.reason;
    const why = unpacked ?? ended;
    if (why !== undefined) throw new Error(why);
    const [, file, position] =
      /(?:MASTER|SOURCE)_LOG_FILE='([^']+)',\s*(?:MASTER|SOURCE)_LOG_POS=(\d+)/.exec(head) ?? [];
    return file && position ? { file, position } : undefined;
  });
}

/** How much of a dump is read to find the position of the log, which is near its beginning. */
const headBytes = 256 << 10;

/**
 * Applies the log up to its last file; returns the time of the last commit, ms since the epoch. The log has the changes of every
 * database of the server: statements for databases that are not restored fail, and do not count. A filter by database would leave
 * out statements that name this database while another one is the default.
 */
async function applyLog(
  client: readonly string[],
  { file, position }: LogPosition,
  { directory, last }: NonNullable<RehearsalRequest['log']>,
  database: string,
  sandbox: Sandbox,
): Promise<number | undefined> {
  const files = logFiles(directory, file, last);
  const program = programOf(['mariadb-binlog', 'mysqlbinlog']);
  const options = ['--no-defaults', `--start-position=${position}`];
  const reader = sandbox.start([program, ...options, ...files], asAgent);
  reader.child.stdin!.end();
  const statements = readStatements();
  const input = reader.child.stdout!.pipe(statements.stream);
  const writer = sandbox.start([...client, '--binary-mode', '--force'], { ...asAgent, input });
  writer.child.stdout!.resume();
  let fault: string | undefined;
  let rest = '';
  writer.child.stderr!.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop()!;
    fault ??= lines.find((line) => /^ERROR/.test(line) && !isOfOther(line, database));
  });
  // With --force the client fails if any statement was refused, even a statement for another database.
  const [read] = await Promise.all([reader.ended, writer.ended]);
  if (sandbox.signal.aborted) throw sandbox.signal.reason;
  const why = fault ?? read;
  if (why !== undefined) throw new Error(why.slice(0, 300));
  return statements.newestMs();
}

/** Whether an error is about a database that was not restored. */
function isOfOther(line: string, database: string): boolean {
  const name =
    /Unknown database '(.+?)'/.exec(line)?.[1] ?? /(?:Table|PROCEDURE|VIEW) '?([^.']+)\./i.exec(line)?.[1];
  return name !== undefined && name !== database;
}

/** The files of one log from `first` to `last`. Throws at the first missing file. */
function logFiles(directory: string, first: string, last: string): string[] {
  const base = first.slice(0, first.lastIndexOf('.'));
  const numberOf = (name: string) => Number(name.slice(name.lastIndexOf('.') + 1));
  const names = readdirSync(directory)
    .filter((name) => name.startsWith(`${base}.`) && /\.\d+$/.test(name))
    .filter((name) => numberOf(name) >= numberOf(first) && numberOf(name) <= numberOf(last))
    .sort((one, other) => numberOf(one) - numberOf(other));
  const at = names.findIndex((name, index) => numberOf(name) !== numberOf(first) + index);
  if (names.length === 0 || at >= 0)
    throw new Error(
      `the binary log has a gap: ${at < 0 ? first : `before ${names[at]}`} is not in ${directory}`,
    );
  return names.map((name) => join(directory, name));
}

/**
 * Reads the output of mariadb-binlog, and creates each database before it becomes the default: if that step failed, the following
 * statements would reach the previous default database. Remembers the time of the last commit, which is printed in UTC and whole
 * seconds.
 */
function readStatements() {
  let rest = '';
  let newest: string | undefined;
  const stream = new Transform({
    transform(chunk: Buffer, _, done) {
      const text = rest + chunk.toString('latin1');
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      const whole = text.slice(0, end);
      for (const [, time] of whole.matchAll(/^#(\d{6} +\d+:\d\d:\d\d) server id .*\tXid = /gm)) newest = time;
      const created = whole.replace(
        /^use (`(?:[^`\n]|``)+`)\/\*!\*\/;$/gm,
        (use, name: string) => `CREATE DATABASE IF NOT EXISTS ${name}/*!*/;\n${use}`,
      );
      done(null, Buffer.from(created, 'latin1'));
    },
    flush: (done) => done(null, Buffer.from(rest, 'latin1')),
  });
  return {
    stream,
    newestMs() {
      const [, year, month, day, time] = /^(\d\d)(\d\d)(\d\d) +(\S+)$/.exec(newest ?? '') ?? [];
      if (time === undefined) return undefined;
      return Date.parse(`20${year}-${month}-${day}T${time.padStart(8, '0')}Z`);
    },
  };
}
