import type { Readable } from 'node:stream';
import { errorText } from '../../core/errors.ts';
import type { Clock, Durable, Log, Source } from '../../core/ports.ts';
import type { Disk } from './discovery/disk.ts';
import type { PassedOver } from './discovery/patterns.ts';
import { createDoorbell, createSchedule } from './discovery/schedule.ts';
import { createTailer, type FollowedFile, type ReportLag } from './files/tailer.ts';
import type { LogsOptions } from './options.ts';
import type { LineSink, OpenSink, OpenSinks } from './sink.ts';

/**
 * The lines of a stream (`paths: ['-']`). A stream has no positions: everything that arrives after a restart is new. When the
 * stream ends, the unfinished line counts. An error ends the stream, too, and is logged.
 */
interface StandardInput {
  /** Counts into the sink that `open` returns for the state of the previous sink. Reading begins with the first call. */
  follow(open: (state: Uint8Array | undefined) => LineSink): void;
  /** Counts nothing until `go` is called. */
  hold(): void;
  go(): void;
  /** Ends as if the stream had ended. */
  stop(): void;
}

function createStandardInput(input: () => Readable, log: Log): StandardInput {
  let stream: Readable | undefined;
  let sink: LineSink | undefined;
  let rest: Buffer = Buffer.alloc(0);

  /** The events since `hold`. */
  let held: (() => void)[] | undefined;
  const unlessHeld =
    <A extends unknown[]>(call: (...args: A) => void) =>
    (...args: A) => {
      if (held) held.push(() => call(...args));
      else call(...args);
    };

  const take = unlessHeld((chunk: Buffer | string) => {
    const added = Buffer.from(chunk);
    const bytes = rest.length > 0 ? Buffer.concat([rest, added]) : added;
    rest = bytes.subarray(sink!.write(bytes, 0, bytes.length));
  });
  const finish = () => {
    sink?.finish(rest, 0, rest.length);
    sink = undefined;
    rest = Buffer.alloc(0);
  };
  const end = unlessHeld(finish);
  const fail = unlessHeld((error: Error) => {
    if (sink) log.write('error', 'standard input cannot be read', { error: errorText(error) });
    finish();
  });

  return {
    follow(open) {
      if (stream && !sink) return;
      sink = open(sink?.state());
      stream ??= input().on('data', take).on('end', end).on('error', fail);
    },
    hold() {
      held ??= [];
      stream?.pause();
    },
    go() {
      const missed = held ?? [];
      held = undefined;
      for (const call of missed) call();
      stream?.resume();
    },
    stop() {
      stream?.off('data', take).off('end', end);
      finish();
      stream?.destroy();
    },
  };
}

/** The log options of a configuration. */
export interface LogsSelection {
  /** Every service that has logs, in the configuration's order. */
  readonly services: Readonly<Record<string, LogsOptions>>;
  /** The roles that are watched. The positions of other roles' files are stored. */
  readonly selected: ReadonlySet<string>;
}

interface LogsSourceOptions extends LogsSelection {
  /** Longest slice of work; default 10 ms. With 2 ms no datagrams are lost meanwhile. */
  readonly sliceMs?: number;
  /** Maximum number of open files; default 512. */
  readonly maxOpenFiles?: number;
}

interface LogsSourceDeps {
  openSink: OpenSink;
  clock: Clock;
  log: Log;
  lag: ReportLag;
  disk?: Disk;
  /** The stream that `paths: ['-']` reads; default: the standard input of the process. */
  input?: () => Readable;
}

/**
 * Counts log files and standard input. `start` resolves when every existing file has its position; reading continues after that.
 * The section `log-positions` of the snapshot holds the positions; call `restore` before `start`. Stopping waits for the current
 * slice; `freeze` returns the positions afterwards, too.
 */
export interface LogsSource extends Source, Durable {
  /** Scans once and reads everything. When it resolves, what was written before the call is counted. */
  scan(): Promise<void>;
  /**
   * Compiles another selection; throws `config_invalid` and changes nothing. The result replaces the present selection and its
   * sinks between two lines: nothing is read until `open` has returned the new sinks, which get the state of the old sinks.
   */
  prepare(selection: LogsSelection): (open: OpenSinks) => Promise<void>;
  files(): FollowedFile[];
  /** Files that a pattern matches and that were not read in the last scan. */
  readonly passedOver: readonly PassedOver[];
}

const standardInput = '-';

/** Services that read standard input; empty if no selected service is among them. */
function readersOfInput({ services, selected }: LogsSelection): string[] {
  const claimants = Object.keys(services).filter((service) =>
    services[service]!.paths.includes(standardInput),
  );
  return claimants.some((service) => selected.has(service)) ? claimants : [];
}

export function createLogs(options: LogsSourceOptions, deps: LogsSourceDeps): LogsSource {
  const { clock, log } = deps;
  const tailer = createTailer(options, deps);
  const input = createStandardInput(deps.input ?? (() => process.stdin), log);
  const schedule = createSchedule({
    clock,
    log,
    tailer,
    scanned: () => doorbell.watch(tailer.directories),
    isWatched: () => doorbell.isComplete(),
  });
  const doorbell = createDoorbell(log, schedule.ring);

  const followInput = (selection: LogsSelection, openSink: OpenSink) => {
    const claimants = readersOfInput(selection);
    if (claimants.length === 0) input.stop();
    else input.follow((state) => openSink({ path: standardInput, claimants, state }));
  };

  return {
    name: tailer.name,
    freeze: tailer.freeze,
    restore: tailer.restore,
    scan: tailer.scan,
    files: tailer.files,
    get passedOver() {
      return tailer.passedOver;
    },
    prepare(selection) {
      const swapFiles = tailer.prepare(selection);
      return async (open) => {
        input.hold();
        await swapFiles(async () => {
          const openSink = await open();
          followInput(selection, openSink);
          return openSink;
        }).finally(input.go);
        schedule.ring();
      };
    },
    async start() {
      await tailer.discover();
      followInput(options, deps.openSink);
      schedule.begin();
      return async () => {
        schedule.end();
        doorbell.close();
        input.stop();
        await tailer.close();
      };
    },
  };
}
