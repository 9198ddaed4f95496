import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { cannotRead, headOf, unpackedFile } from './backup-content.ts';
import { copyBackup } from './copy-tree.ts';
import { guardLog, restoreCommand } from './postgres-log.ts';
import { postgresServers, programOf } from './programs.ts';
import { createErrorReader } from './psql-errors.ts';
import { asUnknown, CannotLook, type Phases, type RehearsalRequest, type Restored } from './rehearsal.ts';
import { lastWords, type RunningProgram, type Sandbox } from './sandbox.ts';

const administrator = 'postgres';
/** The port in the socket's name; no server of this sandbox listens on the network. */
const port = '5432';

/** Restores a dump or a base backup of PostgreSQL with its archived log into a throwaway server. */
export async function rehearsePostgres(
  request: RehearsalRequest,
  sandbox: Sandbox,
  phases: Phases,
): Promise<Restored> {
  const { backup, restore } = request;
  if (restore !== undefined) return restoreByTool(request, restore, sandbox, phases);
  let isDirectory: boolean;
  try {
    isDirectory = statSync(backup).isDirectory();
  } catch (thrown) {
    throw cannotRead(backup, thrown);
  }
  if (isDirectory && existsSync(join(backup, 'PG_VERSION'))) return restoreBase(request, sandbox, phases);
  if (isDirectory && archivesIn(backup).has('base')) return restoreArchives(request, sandbox, phases);
  if (isDirectory && !existsSync(join(backup, 'toc.dat')))
    throw new CannotLook(`${backup} is neither a dump nor a base backup`);
  return restoreDump(request, isDirectory, sandbox, phases);
}

// Dumps

async function restoreDump(
  { backup, database }: RehearsalRequest,
  isDirectory: boolean,
  sandbox: Sandbox,
  phases: Phases,
): Promise<Restored> {
  const [programs] = postgresServers();
  if (programs === undefined) throw noServer();
  const data = sandbox.makeDirectory('data');
  await phases.measure('create', async () => {
    const options = ['-U', administrator, '-A', 'trust', '--locale=C', '-E', 'UTF8', '-D', data];
    await sandbox.run([join(programs, 'initdb'), ...options]).catch(asUnknown);
    await startServer(programs, data, sandbox, []).catch(asUnknown);
    const name = `"${database.replaceAll('"', '""')}"`;
    // A new server already has this database, which is empty.
    if (database === 'postgres') return;
    const statement = `CREATE DATABASE ${name} TEMPLATE template0`;
    await question(programs, sandbox, administrator, 'postgres', statement);
  });
  await phases.measure('restore', async () => {
    const at = [...connection(sandbox, administrator), '--dbname', database];
    if (isDirectory || headOf(backup).subarray(0, 5).toString() === 'PGDMP') {
      const options = [...at, '--exit-on-error', '--no-owner', '--no-acl', '--no-tablespaces'];
      await sandbox.run([join(programs, 'pg_restore'), ...options, backup], { asAgent: true });
    } else await restoreText(programs, at, backup, sandbox);
  });
  return { ask: asker(programs, sandbox, administrator, database) };
}

async function restoreText(
  programs: string,
  at: readonly string[],
  backup: string,
  sandbox: Sandbox,
): Promise<void> {
  const { stream, fault } = unpackedFile(backup, sandbox);
  const argv = [
    join(programs, 'psql'),
    ...at,
    '--no-psqlrc',
    '--quiet',
    '--echo-errors',
    '--output=/dev/null',
  ];
  const program = sandbox.start(argv, { asAgent: true, input: stream });
  const errors = createErrorReader();
  program.child.stderr!.on('data', errors.take);
  program.child.stdout!.resume();
  const [ended, unpacked] = await Promise.all([program.ended, fault]);
  if (sandbox.signal.aborted) throw sandbox.signal.reason;
  const error = errors.end();
  const why = unpacked ?? ended ?? (error && `psql: ${error.trim().slice(0, 300)}`);
  if (why !== undefined) throw new Error(why);
}

// Base backups

async function restoreBase(request: RehearsalRequest, sandbox: Sandbox, phases: Phases): Promise<Restored> {
  const version = readFileSync(join(request.backup, 'PG_VERSION'), 'utf8').trim();
  const programs = await programsOfVersion(version, sandbox);
  const data = await phases.measure('copy', () => copyBase(request.backup, sandbox));
  return startRestored(request, { programs, data, fetch: await fetchOf(request, sandbox) }, sandbox, phases);
}

/** A base backup in tar format, with an archive for each tablespace. */
async function restoreArchives(
  request: RehearsalRequest,
  sandbox: Sandbox,
  phases: Phases,
): Promise<Restored> {
  const data = sandbox.makeDirectory('data');
  await phases.measure('copy', async () => {
    for (const [name, path] of archivesIn(request.backup)) {
      const isTablespace = /^\d+$/.test(name);
      const target =
        name === 'base' ? data : isTablespace ? sandbox.makeDirectory(`space-${name}`) : undefined;
      if (name === 'pg_wal') await unpack(path, join(data, 'pg_wal'), sandbox);
      if (target === undefined) continue;
      await unpack(path, target, sandbox);
      if (name === 'base') cleanData(data, sandbox);
      else linkSpace(data, name, target);
    }
  });
  const version = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
  const programs = await programsOfVersion(version, sandbox);
  return startRestored(request, { programs, data, fetch: await fetchOf(request, sandbox) }, sandbox, phases);
}

/** The archives by their names without a suffix, `base` first. */
function archivesIn(backup: string): ReadonlyMap<string, string> {
  const found = readdirSync(backup).flatMap((file) => {
    const name = /^(base|pg_wal|\d+)\.tar(?:\.(?:gz|zst|lz4))?$/.exec(file)?.[1];
    return name === undefined ? [] : [[name, join(backup, file)] as const];
  });
  return new Map(found.sort(([one], [other]) => Number(other === 'base') - Number(one === 'base')));
}

async function unpack(archive: string, into: string, sandbox: Sandbox): Promise<void> {
  const { stream, fault } = unpackedFile(archive, sandbox);
  // tar runs as the server's user, so that the files belong to that user.
  const tar = sandbox.start(
    [programOf(['tar']), '--extract', '--file=-', `--directory=${into}`, '--no-same-owner'],
    {
      input: stream,
    },
  );
  tar.child.stdout!.resume();
  const [unpacked, ended] = await Promise.all([fault, tar.ended]);
  if (sandbox.signal.aborted) throw sandbox.signal.reason;
  const why = unpacked ?? ended;
  if (why !== undefined) throw new Error(why);
}

/** Removes what leads out of the restored data: settings, and the locations of tablespaces, which are in the store. */
function cleanData(data: string, sandbox: Sandbox): void {
  for (const name of [...leftOut, 'tablespace_map']) rmSync(join(data, name), { force: true });
  for (const name of readdirSync(join(data, 'pg_tblspc')))
    rmSync(join(data, 'pg_tblspc', name), { recursive: true });
  for (const entry of readdirSync(data, { withFileTypes: true, recursive: true }))
    if (entry.isSymbolicLink()) throw new CannotLook(`${entry.name} in the backup is a link`);
  makeNeeded(data, sandbox);
}

const linkSpace = (data: string, id: string, target: string) =>
  symlinkSync(target, join(data, 'pg_tblspc', id));

/** Restores a backup by its tool, which sets the command that fetches the log. */
async function restoreByTool(
  request: RehearsalRequest,
  restore: readonly string[],
  sandbox: Sandbox,
  phases: Phases,
): Promise<Restored> {
  const data = sandbox.makeDirectory('data');
  const argv = restore.map((word) =>
    word.replaceAll('{id}', () => request.backup).replaceAll('{directory}', () => data),
  );
  const [program = '', ...args] = argv;
  await phases.measure('copy', () => sandbox.run([programOf([program]), ...args]));
  const version = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
  const programs = await programsOfVersion(version, sandbox);
  const fetch = restoreCommandIn(data);
  const spaces = readdirSync(join(data, 'pg_tblspc'));
  const outside = spaces.find(
    (name) => !realpathSync(join(data, 'pg_tblspc', name)).startsWith(sandbox.path),
  );
  if (outside !== undefined)
    throw new CannotLook(`the tool restored tablespace ${outside} outside of {directory}; map it there`);
  for (const name of leftOut) rmSync(join(data, name), { force: true });
  return startRestored(request, { programs, data, fetch }, sandbox, phases);
}

/** The command that tools write into the settings of the data that they restore. */
function restoreCommandIn(data: string): string {
  for (const name of ['postgresql.auto.conf', 'postgresql.conf', 'recovery.conf']) {
    const path = join(data, name);
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const found = [...text.matchAll(/^\s*restore_command\s*=\s*'((?:[^'\n]|'')*)'/gm)].at(-1)?.[1];
    if (found !== undefined) return found.replaceAll("''", "'");
  }
  throw new CannotLook(
    'the tool wrote no restore_command beside what it restored; end source.command.restore with a script that writes one',
  );
}

const fetchOf = async ({ log }: RehearsalRequest, sandbox: Sandbox) =>
  log === undefined ? 'false' : restoreCommand(log.directory, sandbox);

interface RestoredData {
  programs: string;
  data: string;
  /** The setting `restore_command`. */
  fetch: string;
}

async function startRestored(
  { database, user }: RehearsalRequest,
  restored: RestoredData,
  sandbox: Sandbox,
  phases: Phases,
): Promise<Restored> {
  const { programs, data } = restored;
  const server = await phases.measure('log', async () => {
    writeFileSync(join(data, 'recovery.signal'), '');
    sandbox.give(join(data, 'recovery.signal'));
    const log = await guardLog(restored, sandbox);
    return startServer(programs, data, sandbox, [
      `restore_command=${log.fetch}`,
      'recovery_target_timeline=latest',
      'recovery_target_action=promote',
    ]).catch((thrown) => {
      throw log.fault() ?? thrown;
    });
  });
  const newest = /last completed transaction was at log time (\S+ \S+)/.exec(server.said())?.[1];
  const names = [...new Set([administrator, ...(user === undefined ? [] : [user])])];
  const admin = await firstThatAnswers(names, (name) =>
    question(programs, sandbox, name, database, 'SELECT 1'),
  );
  return {
    ask: asker(programs, sandbox, admin, database),
    newestMs: newest === undefined ? undefined : Date.parse(`${newest.slice(0, 23).replace(' ', 'T')}Z`),
  };
}

async function firstThatAnswers(
  names: readonly string[],
  ask: (name: string) => Promise<unknown>,
): Promise<string> {
  let last: unknown;
  for (const name of names) {
    try {
      await ask(name);
      return name;
    } catch (thrown) {
      last = thrown;
    }
  }
  if (last instanceof Error && /role ".*" does not exist/.test(last.message))
    throw new CannotLook(`the restored server has no role to log in as: ${last.message}`);
  throw last;
}

async function programsOfVersion(version: string, sandbox: Sandbox): Promise<string> {
  for (const folder of postgresServers()) {
    const printed = await sandbox.run([join(folder, 'postgres'), '--version']).catch(() => '');
    if (new RegExp(`\\) ${version}(?:\\D|$)`).test(printed)) return folder;
  }
  throw noServer(version);
}

const noServer = (version = '') =>
  new CannotLook(
    `this host has no server of PostgreSQL${version && ` ${version}`}; install it, or rehearse on the host of the store`,
  );

/** Settings that lead out of the data directory, or start other programs. They are left out, together with their files. */
const leftOut = new Set([
  ...['postgresql.conf', 'postgresql.auto.conf', 'pg_hba.conf', 'pg_ident.conf'],
  ...['standby.signal', 'recovery.conf', 'postmaster.pid', 'postmaster.opts'],
]);

async function copyBase(backup: string, sandbox: Sandbox): Promise<string> {
  const spaces = existsSync(join(backup, 'pg_tblspc')) ? readdirSync(join(backup, 'pg_tblspc')) : [];
  const manifest = spaces.length > 0 ? readFileSync(join(backup, 'backup_manifest'), 'utf8') : '';
  const other = spaces.find((id) => !manifest.includes(`"pg_tblspc/${id}/`));
  // The link may lead into the store itself.
  if (other !== undefined)
    throw new CannotLook(`pg_tblspc/${other} is a link to what the manifest of the backup does not list`);
  const data = await copyBackup(backup, sandbox, (name) => leftOut.has(name) || name === 'pg_tblspc');
  makeNeeded(data, sandbox);
  // The tablespaces are copied, and never used at their original places.
  for (const id of spaces) {
    const copy = await copyBackup(
      realpathSync(join(backup, 'pg_tblspc', id)),
      sandbox,
      undefined,
      `space-${id}`,
    );
    linkSpace(data, id, copy);
  }
  return data;
}

function makeNeeded(data: string, sandbox: Sandbox): void {
  const needed = ['pg_wal', 'pg_wal/archive_status', 'pg_tblspc', 'pg_replslot'].map((name) =>
    join(data, name),
  );
  for (const path of needed.filter((each) => !existsSync(each))) {
    mkdirSync(path, { mode: 0o700 });
    sandbox.give(path);
  }
}

// The server

/**
 * Starts a server that listens only on a socket in the sandbox, and archives, replicates and loads nothing. Resolves when it
 * accepts statements; before that it replays the log.
 */
async function startServer(
  programs: string,
  data: string,
  sandbox: Sandbox,
  more: readonly string[],
): Promise<RunningProgram> {
  const [config, access] = [join(sandbox.path, 'server.conf'), join(sandbox.path, 'access.conf')];
  writeFileSync(config, '', { mode: 0o644 });
  writeFileSync(access, 'local all all trust\n', { mode: 0o644 });
  const sockets = sandbox.makeDirectory('socket');
  const settings = [
    ...[`config_file=${config}`, `hba_file=${access}`, `data_directory=${data}`],
    ...['listen_addresses=', `unix_socket_directories=${sockets}`, `port=${port}`],
    // If it accepts connections as a standby, a server requires the limits of the server that was backed up.
    ...['hot_standby=off', 'archive_mode=off', 'primary_conninfo=', 'synchronous_standby_names='],
    ...['ssl=off', 'logging_collector=off', 'log_destination=stderr', 'log_timezone=UTC', 'lc_messages=C'],
    ...[
      'shared_buffers=32MB',
      'dynamic_shared_memory_type=mmap',
      'max_worker_processes=2',
      'max_wal_senders=0',
      'autovacuum=off',
    ],
    ...more,
  ];
  const server = sandbox.start([
    join(programs, 'postgres'),
    ...['-D', data],
    ...settings.flatMap((setting) => ['-c', setting]),
  ]);
  server.child.stdin!.end();
  server.child.stdout!.resume();
  for (;;) {
    const isUp = /ready to accept connections/.test(server.said());
    if (isUp) return server;
    if (server.child.exitCode !== null || server.child.signalCode !== null) {
      await server.ended;
      if (sandbox.signal.aborted) throw sandbox.signal.reason;
      throw new Error(`the server does not start from the backup: ${lastWords(server.said())}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const connection = (sandbox: Sandbox, user: string) => [
  ...['--host', join(sandbox.path, 'socket'), '--port', port, '--username', user],
];

const question = (programs: string, sandbox: Sandbox, user: string, database: string, sql: string) =>
  sandbox.run([
    ...[join(programs, 'psql'), ...connection(sandbox, user), '--dbname', database],
    ...['--no-psqlrc', '--no-align', '--tuples-only', '--quiet', '--set=ON_ERROR_STOP=1', `--command=${sql}`],
  ]);

const asker =
  (programs: string, sandbox: Sandbox, user: string, database: string): Restored['ask'] =>
  async (sql) =>
    (await question(programs, sandbox, user, database, sql)).trim();
