import type { RecoveryOptions } from '../config/recovery-block.ts';
import type { AgentConfig } from '../config/types.ts';

/** The subject of a procedure; options of the command line. */
export interface Subject {
  store?: string;
  database?: 'persistence' | 'visibility';
  domain?: string;
  /** The future active cluster. */
  to?: string;
  /** File or directory of the backup to restore. */
  backup?: string;
  /** RFC 3339: what was written from then on is left out. */
  until?: string;
  /** PostgreSQL only: the last transaction, or the restore point, up to which the log is applied. */
  untilXid?: string;
  untilName?: string;
  /** PostgreSQL only: the timeline to follow in place of the latest. */
  untilTimeline?: string;
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
