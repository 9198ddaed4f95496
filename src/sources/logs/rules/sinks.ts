import type { Clock, Drops } from '../../../core/ports.ts';
import { createSlots } from '../lines/fields.ts';
import { createFileSink } from '../lines/file-sink.ts';
import { silentTally } from '../lines/silent-tally.ts';
import type { FileTally } from '../lines/tally.ts';
import type { LogsOptions } from '../options.ts';
import type { OpenSink } from '../sink.ts';
import type { LogIntake } from './log-intake.ts';
import { createReaders, type Readers } from './readers.ts';
import { createServiceTally, type ServiceTally } from './service-tally.ts';
import { createSharedTally } from './shared-tally.ts';
import type { LifeEvents } from './starts.ts';

export interface SinksOptions {
  /** In the configuration's order, watched or not. */
  services: Readonly<Record<string, LogsOptions>>;
  /** Those that are watched. */
  selected: ReadonlySet<string>;
}

export interface SinksDeps {
  /** Asked once per watched service, and once for `unknown` when a file is shared. */
  intakes: (service: string) => LogIntake;
  drops: Drops;
  clock: Clock;
  /** Hears of starts, in the step in which their lines are counted. */
  life?: LifeEvents;
}

/** Counts the lines of all files. */
export interface Sinks {
  open: OpenSink;
  /** Gives back rule series that were idle too long; `nowMs` is monotonic. Any interval will do. */
  sweep(nowMs: number): void;
}

/** The service that lines of a shared file count as which name none. */
const unknownService = 'unknown';

/**
 * Opens what counts the lines of a file. Series of a watched service are there from the start, at 0 or as
 * restored. All files with the same claimants share a reader, so that what one file's lines taught it serves
 * the others.
 */
export function createSinks({ services, selected }: SinksOptions, deps: SinksDeps): Sinks {
  const slots = createSlots();
  const tallies = new Map<string, ServiceTally | undefined>();
  const readers = new Map<string, Readers>();
  let unknown: ServiceTally | undefined;

  const openTally = (service: string, options: Pick<LogsOptions, 'levelKey' | 'rules'>) =>
    createServiceTally(service, options, { ...deps, intake: deps.intakes(service), slots });
  for (const [service, options] of Object.entries(services)) {
    tallies.set(service, selected.has(service) ? openTally(service, options) : undefined);
  }

  const readersFor = (key: string, options: readonly LogsOptions[], roleField?: string): Readers => {
    const known = readers.get(key) ?? createReaders(slots, options, roleField);
    readers.set(key, known);
    return known;
  };
  const openShared = (options: LogsOptions): { parts: Readers; tally: FileTally } => {
    const { levelKey, roleField } = options;
    unknown ??= openTally(unknownService, { levelKey, rules: [] });
    const parts = readersFor(`shared ${roleField}`, Object.values(services), roleField);
    return { parts, tally: createSharedTally({ services: tallies, unknown, roleSlot: slots.of(roleField) }) };
  };
  const openOwn = (service: string, options: LogsOptions): { parts: Readers; tally: FileTally } => {
    const tally = tallies.get(service);
    const own: FileTally = tally === undefined ? silentTally : { ...tally, role: '' };
    return { parts: readersFor(`own ${service}`, [options], undefined), tally: own };
  };
  return {
    open(file) {
      const first = file.claimants[0] as string;
      const options = services[first] as LogsOptions;
      const { parts, tally } = file.claimants.length > 1 ? openShared(options) : openOwn(first, options);
      const { container, encoding } = options;
      return createFileSink({ path: file.path, container, carry: file.carry }, { ...parts, encoding }, tally);
    },
    sweep(nowMs) {
      for (const tally of tallies.values()) tally?.sweep(nowMs);
    },
  };
}
