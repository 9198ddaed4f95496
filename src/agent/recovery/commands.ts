import type { RecoveryOptions } from '../config/recovery-block.ts';
import type { AgentConfig } from '../config/types.ts';

/** The subject of a procedure, from the options of the command line. */
export interface Subject {
  store?: string;
  database?: 'persistence' | 'visibility';
  domain?: string;
  /** The cluster that becomes active. */
  to?: string;
  /** File or directory of the backup to restore. */
  backup?: string;
  /** RFC 3339. What was written from this time on is left out. */
  until?: string;
  /** PostgreSQL only: the last transaction that is applied, or the restore point at which the log ends. */
  untilXid?: string;
  untilName?: string;
  /** PostgreSQL only: the timeline to follow instead of the latest. */
  untilTimeline?: string;
}

/** The commands of the configuration with their placeholders filled in; undefined if there is none. */
export interface Commands {
  /** The client. It connects to the future active cluster if the subject names one, else to the cluster of this configuration. */
  client(...args: readonly string[]): readonly string[] | undefined;
  /** The command of `recovery.commands.NAME`; `places` override the values of the subject. */
  named(
    name: keyof RecoveryOptions['commands'],
    places?: Readonly<Record<string, string>>,
  ): readonly string[] | undefined;
}

type Places = Readonly<Record<string, string | undefined>>;

/**
 * Fills in the placeholders. Undefined if a placeholder has no value, such as `{file}` without a backup: then the step is done by
 * hand.
 */
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
    clusterGroupMetadata: group,
  }: Pick<AgentConfig, 'recovery' | 'domains' | 'stores' | 'clusterGroupMetadata'>,
): Commands {
  const client = recovery.client ?? clientIn(domains?.describe?.command ?? []);
  const store = stores.find(({ name }) => name === subject.store);
  const database = subject.database && store?.databases[subject.database];
  const asked = group?.clusters.find(({ name }) => name === (subject.to ?? group.currentClusterName));
  const places = {
    ...{ store: subject.store, database, address: store?.address, file: subject.backup },
    ...{ domain: subject.domain, cluster: subject.to, until: subject.until ?? '' },
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
  };
}

/**
 * The client with its global options: the words before `domain describe` or `admin domain describe`, without a `--domain`.
 * Undefined if global options follow these words, because they cannot be recognized then.
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
