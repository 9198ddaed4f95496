import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Address, parseAddress } from '../../core/address.ts';
import type { StoreOptions } from '../../probes/stores/store-options.ts';
import type { AgentConfig } from '../config/types.ts';
import type { RecoveryOptions } from './block.ts';

/** The subject of a procedure; options of the command line. */
export interface Subject {
  store?: string;
  database?: 'persistence' | 'visibility';
  domain?: string;
  /** The future active cluster. */
  to?: string;
  /** File or directory of the backup to restore. */
  backup?: string;
}

/** Commands of the configuration with their placeholders filled in; undefined where there is none. */
export interface Commands {
  /**
   * The client. It connects to the future active cluster if one is named, else to the cluster of this configuration.
   */
  client(...args: readonly string[]): readonly string[] | undefined;
  /** `recovery.commands.NAME`; `places` override those of the subject. */
  named(
    name: keyof RecoveryOptions['commands'],
    places?: Readonly<Record<string, string>>,
  ): readonly string[] | undefined;
  /** Restores one database from a backup, with the store's own programs. */
  restore(): readonly (readonly string[])[] | undefined;
  /** Shell lines for the operator, where a restore needs the server stopped. */
  restoreByHand(): readonly string[] | undefined;
}

type RestoreCommands = (
  file: string,
  database: string,
  address: Address | undefined,
) => readonly (readonly string[])[];

/**
 * How a dump is restored, by its name: the database is created where it is missing, then filled. The user of the agent may
 * not write: restores run as the administrator.
 */
const restoreCommands: Readonly<Partial<Record<StoreOptions['kind'], RestoreCommands>>> = {
  postgres(file, database, { host, port } = { host: 'localhost', port: 5432 }) {
    const server = ['--host', host, '--port', String(port), '--username', 'postgres'];
    const psql = (name: string) => [
      ...['psql', ...server, '--dbname', name],
      ...['--no-psqlrc', '--set', 'ON_ERROR_STOP=1', '--quiet'],
    ];
    const text = `'${database.replaceAll("'", "''")}'`;
    const create = `SELECT format('CREATE DATABASE %I', ${text}) WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = ${text}) \\gexec`;
    const restore = /\.sql(?:\.gz)?$/.test(file)
      ? unpacked(file, psql(database))
      : ['pg_restore', ...server, '--dbname', database, '--clean', '--if-exists', '--exit-on-error', file];
    return [['bash', '-c', 'printf "%s\\n" "$0" | "$@"', create, ...psql('postgres')], restore];
  },
  mysql(file, database, { host, port } = { host: 'localhost', port: 3306 }) {
    const mysql = ['mysql', `--host=${host}`, `--port=${port}`, '--user=root'];
    const create = `CREATE DATABASE IF NOT EXISTS \`${database.replaceAll('`', '``')}\``;
    return [[...mysql, `--execute=${create}`], unpacked(file, [...mysql, database])];
  },
};

/**
 * A base backup of PostgreSQL, with the archived log behind it if there is one. It is restored with the server stopped,
 * on its host, where this program may not be.
 */
const baseRestore = (folder: string, archive: string | undefined): readonly string[] => [
  '# On the host of the server, as root. Every database of the server is replaced.',
  '# Stop the server, then keep its files until the restore is proved:',
  'mv DATA_DIRECTORY DATA_DIRECTORY.damaged',
  `cp -a ${shellText([folder])} DATA_DIRECTORY`,
  ...(archive === undefined
    ? []
    : [`echo "restore_command = 'cp ${archive}/%f %p'" >> DATA_DIRECTORY/postgresql.auto.conf`]),
  'touch DATA_DIRECTORY/recovery.signal',
  'chown -R postgres: DATA_DIRECTORY && chmod 700 DATA_DIRECTORY',
  '# Start the server, and wait until it accepts writes: it replays the log first.',
];

const isDirectory = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** The client fed with the file, which is unpacked on the way. */
function unpacked(file: string, client: readonly string[]): readonly string[] {
  const read = file.endsWith('.gz') ? 'gzip --decompress --stdout' : 'cat';
  return ['bash', '-o', 'pipefail', '-c', `${read} "$0" | "$@"`, file, ...client];
}

type Places = Readonly<Record<string, string | undefined>>;

/** Undefined if a placeholder has no value, such as `{file}` without a backup: the step is then done by hand. */
function filled(words: readonly string[], places: Places): readonly string[] | undefined {
  let isWhole = true;
  const text = words.map((word) =>
    word.replace(/(?<!\$)\{([a-z]+)\}/gi, (whole, name: string) => {
      if (name in places && places[name] === undefined) isWhole = false;
      return places[name] ?? whole;
    }),
  );
  return isWhole ? text : undefined;
}

export function commandsOf(
  subject: Subject,
  {
    recovery,
    domains,
    stores,
    backups,
    clusterGroupMetadata: group,
  }: Pick<AgentConfig, 'recovery' | 'domains' | 'stores' | 'backups' | 'clusterGroupMetadata'>,
): Commands {
  const client = recovery.client ?? clientIn(domains?.describe?.command ?? []);
  const store = stores.find(({ name }) => name === subject.store);
  const database = subject.database && store?.databases[subject.database];
  const asked = group?.clusters.find(({ name }) => name === (subject.to ?? group.currentClusterName));
  const places = {
    ...{ store: subject.store, database, address: store?.address, file: subject.backup },
    ...{ domain: subject.domain, cluster: subject.to },
  };
  return {
    client(...args) {
      const words = client && filled(client, { address: asked?.rpcAddress, cluster: asked?.name });
      return words && [...words, ...args];
    },
    named(name, more) {
      const words = recovery.commands[name];
      return words && filled(words, { ...places, ...more });
    },
    restore() {
      if (!store || !database || !subject.backup) return undefined;
      // What takes more than these commands, such as a base backup, is restored by hand.
      if (isDirectory(subject.backup)) return undefined;
      return restoreCommands[store.kind]?.(subject.backup, database, parseAddress(store.address));
    },
    restoreByHand() {
      if (store?.kind !== 'postgres' || !subject.backup) return undefined;
      // A backup in tar format has a manifest, too, and is not a data directory.
      const { backup } = subject;
      if (!['backup_manifest', 'PG_VERSION'].every((name) => existsSync(join(backup, name))))
        return undefined;
      const sources = backups.filter((each) => each.store === store.name).map(({ source }) => source);
      const archive = sources.find((source) => source.kind === 'segments' && source.log === 'wal');
      return baseRestore(subject.backup, archive && 'directory' in archive ? archive.directory : undefined);
    },
  };
}

/**
 * The client and its global options: what comes before `domain describe` or `admin domain describe`, without a
 * `--domain`. Undefined if global options follow it, because they cannot be recognized then.
 */
function clientIn(describe: readonly string[]): readonly string[] | undefined {
  const at = describe.findIndex((word, index) => word === 'domain' && describe[index + 1] === 'describe');
  if (at < 1 || describe.slice(at).some((word) => /\{(?:address|cluster)\}/.test(word))) return undefined;
  const words = describe.slice(0, describe[at - 1] === 'admin' ? at - 1 : at);
  const domain = words.findIndex((word) => /^--?d(?:omain|o)?$/.test(word));
  const rest = domain < 0 ? words : [...words.slice(0, domain), ...words.slice(domain + 2)];
  return rest.filter((word) => !/\{domain\}/.test(word));
}

/** A command as text for a shell. */
export function shellText(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}
