import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentConfig } from '../config/types.ts';
import { shellText } from './commands.ts';

/** The restore of a base backup of PostgreSQL and its archived log, on the server's host, with the server stopped. */

/** Where a restore ends before the end of the log. */
export interface RestoreUntil {
  time?: Date;
  /** PostgreSQL only: the last transaction, or the name of a restore point. */
  xid?: string;
  name?: string;
  /** PostgreSQL only: the timeline to follow instead of the latest. */
  timeline?: number;
}

/**
 * Whether a folder is a base backup as a data directory. A backup in tar format has a manifest, too, and is no data directory.
 */
export const isBaseBackup = (folder: string): boolean =>
  ['backup_manifest', 'PG_VERSION'].every((name) => existsSync(join(folder, name)));

/** The directory with the archived segments of a store's log; undefined if no entry of `backups` observes it. */
export function walArchive(store: string, { backups }: Pick<AgentConfig, 'backups'>): string | undefined {
  const sources = backups.filter((each) => each.store === store).map(({ source }) => source);
  const archive = sources.find((source) => source.kind === 'segments' && source.log === 'wal');
  return archive && 'directory' in archive ? archive.directory : undefined;
}

/** The programs that unpack archived segments, by suffix. */
const unpackers: Readonly<Record<string, string>> = {
  gz: 'gzip -dc',
  zst: 'zstd -dc',
  lz4: 'lz4 -dc',
  xz: 'xz -dc',
  bz2: 'bzip2 -dc',
};

/**
 * Shell text that fetches `%f` as `%p`. Segments may be compressed, or be in the folder of their log file, as Barman stores them.
 * Undefined for the archive of a tool, because only that tool can restore from it.
 */
export function restoreCommand(archive: string): string | undefined {
  const names = existsSync(archive) ? readdirSync(archive) : [];
  const folder = names.find((name) => /^[0-9A-F]{16}$/.test(name));
  const inside = folder === undefined ? names : [...names, ...readdirSync(join(archive, folder))];
  const segments = inside.filter((name) => /^[0-9A-F]{24}/.test(name) && !name.includes('.backup'));
  if (segments.some((name) => !/^[0-9A-F]{24}(?:\.(?:gz|zst|lz4|xz|bz2|partial))?$/.test(name)))
    return undefined;
  const suffixes = Object.keys(unpackers).filter((each) => inside.some((name) => name.endsWith(`.${each}`)));
  // A percent sign begins a placeholder, so it is doubled.
  const place = shellText([archive]).replaceAll('%', '%%');
  const places = [`${place}/%f`, ...(folder === undefined ? [] : [`${place}/$(printf %%.16s %f)/%f`])];
  const ways = places.flatMap((path) => [
    `cp ${path} %p`,
    ...suffixes.map(
      (suffix) => `{ test -f ${path}.${suffix} && ${unpackers[suffix]} ${path}.${suffix} > %p; }`,
    ),
  ]);
  return ways.join(' || ');
}

const settingText = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** The settings for the end of the replay. Transactions that were committed exactly at the target time are left out, too. */
const untilLines = ({ time, xid, name, timeline }: RestoreUntil): readonly string[] => [
  ...(time
    ? [
        `recovery_target_time = '${time.toISOString().replace('T', ' ').replace('Z', '+00')}'`,
        'recovery_target_inclusive = off',
      ]
    : []),
  ...(xid === undefined ? [] : [`recovery_target_xid = '${xid}'`]),
  ...(name === undefined ? [] : [`recovery_target_name = ${settingText(name)}`]),
  ...(timeline === undefined ? [] : [`recovery_target_timeline = '${timeline}'`]),
];

/**
 * The lines that an operator runs as root. They override settings of an earlier recovery: a base backup that was taken after that
 * recovery contains them, and they would end the replay at the old target.
 */
export function baseRestore(
  folder: string,
  archive: string | undefined,
  until: RestoreUntil | undefined,
): readonly string[] {
  const command = archive === undefined ? undefined : restoreCommand(archive);
  const settings = [
    ...(command === undefined ? [] : [`restore_command = ${settingText(command)}`]),
    ...(until ? untilLines(until) : []),
    "recovery_target_action = 'promote'",
  ];
  const conf = 'DATA_DIRECTORY/postgresql.auto.conf';
  return [
    '# On the host of the server, as root. Every database of the server is replaced.',
    ...(archive !== undefined && command === undefined
      ? [`# ${archive} is the archive of a tool: set its own restore_command.`]
      : []),
    '# Stop the server. Its files stay as the safety copy until the restore is proved:',
    'test -e DATA_DIRECTORY.damaged || mv DATA_DIRECTORY DATA_DIRECTORY.damaged',
    // This copies the files behind a link, not the link: the server would work on the backup itself.
    `rm -rf DATA_DIRECTORY && cp -a ${shellText([`${folder}/.`])} DATA_DIRECTORY`,
    ...linked(folder),
    ...cleared(folder),
    ...settings.map((line) => `echo ${shellText([line])} >> ${conf}`),
    'touch DATA_DIRECTORY/recovery.signal',
    'chown -R postgres: DATA_DIRECTORY && chmod -R u=rwX,go= DATA_DIRECTORY',
    '# Start the server, and wait until it accepts writes: it replays the log first.',
  ];
}

/**
 * Lines that copy what the backup links to. Tablespaces, and a log in another place, are links to files of the backup, and the
 * restored server gets copies of these files.
 */
function linked(folder: string): readonly string[] {
  const linksIn = (below: string) =>
    existsSync(join(folder, below))
      ? readdirSync(join(folder, below), { withFileTypes: true }).filter((entry) => entry.isSymbolicLink())
      : [];
  const ofLog = linksIn('.').filter(({ name }) => name === 'pg_wal');
  return [
    ...ofLog.map(
      () =>
        `rm DATA_DIRECTORY/pg_wal && cp -a ${shellText([`${join(folder, 'pg_wal')}/.`])} DATA_DIRECTORY/pg_wal`,
    ),
    ...linksIn('pg_tblspc').flatMap(({ name }) => {
      const own = `DATA_DIRECTORY.tablespace-${name}`;
      return [
        `# Tablespace ${name}: put another directory in place of ${own}, if it belongs on another volume.`,
        `rm -rf ${own} && cp -a ${shellText([`${join(folder, 'pg_tblspc', name)}/.`])} ${own}`,
        `ln -sfn ${own} DATA_DIRECTORY/pg_tblspc/${name} && chown -R postgres: ${own} && chmod -R u=rwX,go= ${own}`,
      ];
    }),
  ];
}

/** Lines that remove the settings and files of an earlier recovery, or of a standby, from the copied backup. */
function cleared(folder: string): readonly string[] {
  const conf = ['postgresql.auto.conf', 'postgresql.conf'].filter((name) => {
    const file = join(folder, name);
    return existsSync(file) && /^\s*recovery_target/m.test(readFileSync(file, 'latin1'));
  });
  return [
    ...conf.map((name) => `sed -i '/^ *recovery_target/d' DATA_DIRECTORY/${name}`),
    ...(existsSync(join(folder, 'standby.signal')) ? ['rm DATA_DIRECTORY/standby.signal'] : []),
  ];
}
