import type { Clock, Drops } from '../../../core/ports.ts';
import { atOnce, type Steps } from '../../../core/slices.ts';
import { createConsoleReader } from '../lines/console-reader.ts';
import { createFields, createSlots, type Fields, type Slots, textOf } from '../lines/fields.ts';
import { createJsonReader } from '../lines/json-reader.ts';
import type { EntryReaders, FileMetrics, FileState } from '../lines/line-classifier.ts';
import { createLineSplitter } from '../lines/line-splitter.ts';
import type { LogsOptions } from '../options.ts';
import type { OpenSink } from '../sink.ts';
import { createLabelCache, findIn, keepIn } from './label-cache.ts';
import type { LastErrors } from './last-errors.ts';
import type { LogIntake } from './log-series.ts';
import {
  type LogMetricsOptions,
  metricFields,
  openServiceLogMetrics,
  type ProcessEvents,
  restoreServiceLogs,
  type ServiceLogMetrics,
} from './service-metrics.ts';

interface LineSinksOptions {
  /** All services with logs, in the configuration's order, selected or not. */
  services: Readonly<Record<string, LogsOptions>>;
  /** The services that this agent watches. */
  selected: ReadonlySet<string>;
}

interface LineSinksDeps {
  /** Creates an intake. Called once per selected service, and once for `unknown` if there are several services. */
  intakes: (service: string) => LogIntake;
  drops: Drops;
  clock: Clock;
  processEvents?: ProcessEvents;
  lastErrors?: LastErrors;
}

/** How many values of a shared file's role field are remembered; others are read each time. */
const maxRoleTexts = 4096;

/** Opens the sinks that count the lines of log files. */
export interface LineSinks {
  open: OpenSink;
  /** Releases idle series of log rules; `nowMs` is monotonic. May be called at any interval. */
  sweep(nowMs: number): void;
}

/** The service for lines in a shared file that name no service. */
const unknownService = 'unknown';

/**
 * Creates the sinks. The series of a selected service exist from the start, at 0 or as restored. Files with the same claimants
 * share readers, so that a key order learned from one file serves the others.
 */
export const createLineSinks = (options: LineSinksOptions, deps: LineSinksDeps): LineSinks =>
  atOnce(openLineSinks(options, deps));

/** Does what `createLineSinks` does, in one step for each series that is restored. */
export function* openLineSinks(
  { services, selected }: LineSinksOptions,
  deps: LineSinksDeps,
): Steps<LineSinks> {
  const slots = createSlots();
  const metrics = new Map<string, ServiceLogMetrics | undefined>();
  const readers = new Map<string, EntryReaders>();
  let unknown: ServiceLogMetrics | undefined;

  const openMetrics = (service: string, options: LogMetricsOptions, intake = deps.intakes(service)) =>
    openServiceLogMetrics(service, options, { ...deps, intake, slots });
  for (const [service, options] of Object.entries(services)) {
    metrics.set(service, selected.has(service) ? yield* openMetrics(service, options) : undefined);
  }
  // A file of several services may be read later, or not at all, so the series that were counted from it stay.
  const unknownIntake = metrics.size > 1 ? deps.intakes(unknownService) : undefined;
  if (unknownIntake) yield* restoreServiceLogs(unknownIntake);

  const readersFor = (key: string, options: readonly LogsOptions[], roleField?: string): EntryReaders => {
    const known = readers.get(key) ?? createEntryReaders(slots, options, roleField);
    readers.set(key, known);
    return known;
  };
  const openShared = ({ levelKey, roleField }: LogsOptions): [EntryReaders, FileMetrics] => {
    unknown ??= atOnce(openMetrics(unknownService, { levelKey, rules: [] }, unknownIntake));
    return [
      readersFor(`shared ${roleField}`, Object.values(services), roleField),
      createSharedFileMetrics(metrics, unknown, slots.of(roleField)),
    ];
  };
  const openOwn = (service: string, options: LogsOptions): [EntryReaders, FileMetrics] => {
    const own = metrics.get(service);
    return [
      readersFor(`own ${service}`, [options]),
      own === undefined ? discardMetrics() : ownFileMetrics(own),
    ];
  };
  return {
    open({ path, claimants, state }) {
      const first = claimants[0] as string;
      const options = services[first] as LogsOptions;
      const [parts, fileMetrics] = claimants.length > 1 ? openShared(options) : openOwn(first, options);
      const { container, encoding } = options;
      return createLineSplitter({ path, container, encoding, state }, parts, fileMetrics);
    },
    sweep(nowMs) {
      for (const service of metrics.values()) service?.sweep(nowMs);
    },
  };
}

/** The readers of the fields that the services' metrics need, and of `roleField` if several services share a file. */
function createEntryReaders(
  slots: Slots,
  options: readonly LogsOptions[],
  roleField: string | undefined,
): EntryReaders {
  const names = new Set(options.flatMap(metricFields));
  if (roleField !== undefined) names.add(roleField);
  const wanted = new Map([...names].map((name) => [name, slots.of(name)]));
  const fields = createFields([...wanted.values()]);
  const json = createJsonReader(fields, wanted);
  const columns = {
    ts: slots.of('ts'),
    levels: options.map(({ levelKey }) => slots.of(levelKey)),
    logger: slots.of('logger'),
    msg: slots.of('msg'),
  };
  return { fields, json, console: createConsoleReader(fields, columns, json) };
}

const emptyState = (): FileState => ({ lastService: '', clientErrors: [] });

/** The metrics of a file whose only claimant is not selected: its lines are read and not counted. */
const discardMetrics = (): FileMetrics => ({
  state: emptyState(),
  entry() {},
  continuation() {},
  blank() {},
  dropped() {},
  skipped() {},
  flush() {},
});

function ownFileMetrics(own: ServiceLogMetrics): FileMetrics {
  const state = emptyState();
  return { ...own, state, entry: (fields, lineBytes) => own.entry(fields, lineBytes, state) };
}

/** The service that a role field names: `history` or, with a product in front, `<product>-history`. */
export function serviceOf(text: string, services: Iterable<string>): string | undefined {
  let longest: string | undefined;
  for (const service of services) {
    if (text === service) return service;
    const isSuffix = text.endsWith(`-${service}`) || text.endsWith(`_${service}`);
    if (isSuffix && service.length > (longest?.length ?? 0)) longest = service;
  }
  return longest;
}

/**
 * Counts a file that several services share. An entry counts for the service that its role field names, a continuation for the
 * service of its entry. Lines of a service that is not selected (undefined in `services`) are not counted. Lines that are not
 * entries, or that name no service, count as `unknown`.
 */
function createSharedFileMetrics(
  services: ReadonlyMap<string, ServiceLogMetrics | undefined>,
  unknown: ServiceLogMetrics,
  roleSlot: number,
): FileMetrics {
  const serviceCache = createLabelCache<string>([roleSlot], maxRoleTexts);
  const readService = (fields: Fields): string => {
    const known = findIn(serviceCache, fields);
    if (known !== undefined) return known;
    const text = textOf(fields, roleSlot);
    const service = (text && serviceOf(text, services.keys())) || unknown.service;
    keepIn(serviceCache, fields, service);
    return service;
  };
  const metricsOf = (service: string) => (services.has(service) ? services.get(service) : unknown);

  const state = emptyState();
  return {
    state,
    entry(fields, lineBytes) {
      state.lastService = readService(fields);
      metricsOf(state.lastService)?.entry(fields, lineBytes, state);
    },
    continuation: (lineBytes) => metricsOf(state.lastService)?.continuation(lineBytes),
    blank: (lineBytes) => unknown.blank(lineBytes),
    dropped: (reason, lineBytes) => unknown.dropped(reason, lineBytes),
    skipped: (reason, bytes) => unknown.skipped(reason, bytes),
    flush() {
      unknown.flush();
      for (const service of services.values()) service?.flush();
    },
  };
}
