import { systemClock } from '../../core/clock.ts';
import { usageError } from '../../core/errors.ts';
import { withoutUrlSecrets } from '../../core/redacted.ts';
import { parseDuration } from '../../core/text-formats.ts';
import type { LineSink, OpenSink } from '../../sources/logs/sink.ts';
import { createLogs } from '../../sources/logs/source.ts';
import type { AgentConfig } from '../config/types.ts';
import { logsSelectionOf } from '../log-pipeline.ts';
import { createReadSecret } from '../read-secret.ts';
import { createSamples, type SampledSeries, type Samples } from '../samples.ts';
import { onSignals } from '../signals.ts';
import { command, configurationOptions, configured } from './arguments.ts';
import { cut, type Io, onReaderGone, paint, plain } from './io.ts';
import { silent } from './live-pages.ts';

const usage = `Usage: svc-agent tap [-c FILE] [--role ROLE]... [--match TEXT] [--for TIME] [--json]

Shows live how the agent counts each new log line: the kind of the line and its series, or why it is dropped. Scrapes
each role at its interval and shows how much of the page is relayed, and what of it is dropped or refused; with
--match, the series that the page changed. Reads beside the running agent and changes nothing. It cannot see datagrams,
because the agent holds their port: give samples of them to svc-agent test.
      --match TEXT  only lines and series that contain TEXT
      --for TIME    ends after this time, such as 30s; default: Ctrl-C
Exit status: 0 success; 2 wrong usage or an invalid configuration.
`;

type Changes = Record<string, string>;

/** What is shown for one line or one page. */
interface Tapped {
  at: string;
  role: string;
  /** The log file or the URL. */
  source: string;
  /** How the line was counted: `entry`, `continuation or blank`, `dropped: REASON`, `page`, or why there is no page. */
  counted: string;
  /** The changes, by series: `+1` is an increase, `= 1` a new value. */
  series: Changes;
  line?: string;
}

const options = { ...configurationOptions, match: { type: 'string' }, for: { type: 'string' } } as const;

/** Runs `svc-agent tap`: prints the lines and pages that arrive while it runs, each with the series that it changed. */
export const tap = command({ name: 'tap', usage, options }, async (values, io) => {
  const forMs = values.for === undefined ? undefined : durationOf(values.for);
  const { config } = await configured(values, io);
  const samples = createSamples(config, { readSecret: createReadSecret(io.env) });
  const show = (tapped: Tapped) => {
    const text = JSON.stringify(tapped);
    if (values.match !== undefined && !text.includes(JSON.stringify(values.match).slice(1, -1))) return;
    io.stdout(values.json ? `${text}\n` : tappedText(tapped, io));
  };
  // Each page has samples of its own, so that a change is that of the page and of nothing else.
  const samplesOfPage = () => createSamples(config, { readSecret: createReadSecret(io.env) });
  const stops = [await tapLogs(config, samples, show), tapPages(config, samplesOfPage, values.match, show)];
  await ended(forMs);
  for (const stop of stops) await stop();
  await samples.stop();
  return 0;
});

function durationOf(text: string): number {
  try {
    return parseDuration(text);
  } catch (cause) {
    throw usageError('--for', 'not a time', text, 'use the form 30s, 5m or 1h', cause);
  }
}

/** Resolves at a signal, when the time is over, or when nobody reads the output any more. */
function ended(forMs: number | undefined): Promise<void> {
  return new Promise((resolve) => {
    // Timers of the agent do not keep a process alive; this one does.
    const timer = setTimeout(done, forMs ?? 0x7fffffff);
    const undoSignals = onSignals({ stop: done, reload: done });
    const undoReader = onReaderGone(done);
    function done() {
      clearTimeout(timer);
      undoSignals();
      undoReader();
      resolve();
    }
  });
}

type Show = (tapped: Tapped) => void;

/** Follows the logs of the selected roles from their ends, a line at a time. Resolves with its stop. */
async function tapLogs(config: AgentConfig, samples: Samples, show: Show): Promise<() => Promise<void>> {
  const { services, selected } = logsSelectionOf(config);
  const followed = Object.fromEntries(
    Object.entries(services).map(([name, logs]) => [name, { ...logs, startAt: 'end' as const }]),
  );
  const openSink: OpenSink = (file) =>
    explained(
      samples.openLog(file),
      (kept) => {
        const role = roleIn(kept.series) ?? file.claimants[0]!;
        show({ at: new Date(systemClock.nowMs()).toISOString(), role, source: file.path, ...kept });
      },
      samples,
    );
  const deps = { clock: systemClock, log: silent, lag: () => {}, openSink };
  return createLogs({ services: followed, selected }, deps).start();
}

type TappedLine = Pick<Tapped, 'counted' | 'series' | 'line'>;

/** Hands each complete line to `sink` separately, and reports what it changed. */
function explained(sink: LineSink, tell: (line: TappedLine) => void, { series }: Samples): LineSink {
  const told = (bytes: Buffer, start: number, end: number, count: () => void) => {
    const before = series();
    count();
    const changed = changesBetween(before, series());
    if (Object.keys(changed).length === 0) return;
    tell({ counted: kindOf(changed), series: changed, line: bytes.toString('utf8', start, end).trimEnd() });
  };
  return {
    ...sink,
    write(bytes, start, end) {
      let at = start;
      for (
        let newline = bytes.indexOf(0x0a, at);
        newline >= 0 && newline < end;
        newline = bytes.indexOf(0x0a, at)
      ) {
        const next = newline + 1;
        told(bytes, at, next, () => void sink.write(bytes, at, next));
        at = next;
      }
      // A line over the limit is consumed before its end is there.
      return at < end ? sink.write(bytes, at, end) : at;
    },
    finish: (bytes, start, end) => told(bytes, start, end, () => sink.finish(bytes, start, end)),
  };
}

function changesBetween(before: SampledSeries, after: SampledSeries): Changes {
  const changed: Changes = {};
  for (const [text, { value, isTotal }] of after) {
    const previous = before.get(text)?.value ?? 0;
    if (!Object.is(value, previous)) changed[text] = isTotal ? `+${value - previous}` : `= ${value}`;
  }
  return changed;
}

function kindOf(changed: Readonly<Changes>): string {
  const names = Object.keys(changed);
  const dropped = names.find((text) => text.startsWith('svc_log_lines_dropped_total'));
  if (dropped) return `dropped: ${/reason="([^"]*)"/.exec(dropped)?.[1]}`;
  return names.some((text) => text.startsWith('svc_log_entries_total')) ? 'entry' : 'continuation or blank';
}

const roleIn = (changed: Readonly<Changes>): string | undefined =>
  Object.keys(changed).flatMap((text) => /svc_service="([^"]*)"/.exec(text)?.[1] ?? [])[0];

/** Scrapes each selected role at its interval. Returns its stop. */
function tapPages(config: AgentConfig, open: () => Samples, match: string | undefined, show: Show) {
  const stops = config.services
    .filter(({ selected, scrape }) => selected && scrape)
    .map(({ name, scrape }) => tapPage({ name, match, ...scrape! }, open(), show));
  return async () => {
    await Promise.all(stops.map((stop) => stop()));
  };
}

/** Whether a series counts what was dropped or refused. */
const isLoss = (text: string): boolean => /^svc_agent_(?:dropped|series_refused)_total/.test(text);

interface TappedPage {
  name: string;
  url: string;
  intervalMs: number;
  match: string | undefined;
}

function tapPage(
  { name, url, intervalMs, match }: TappedPage,
  samples: Samples,
  show: Show,
): () => Promise<void> {
  let cancel = () => {};
  let isEnded = false;
  let before = samples.series();
  const scraping = samples.scrape(name);
  const once = async () => {
    const scrape = await scraping;
    const result = await scrape.scrapeNow();
    if (isEnded) return;
    // Compares with the last scrape that was shown, because the source also scrapes by itself.
    const after = samples.series();
    const changed = changesBetween(before, after);
    before = after;
    const isWanted = match === undefined ? isLoss : (text: string) => text.includes(match);
    const own = Object.entries(changed).filter(([text]) => isWanted(text));
    const counted = result.ok
      ? `page: ${scrape.mapped().length} metrics, vocabulary ${scrape.status().vocabulary ?? 'none'}`
      : `no page, ${result.reason}: ${result.what}`;
    const at = new Date(systemClock.nowMs()).toISOString();
    if (match === undefined || own.length > 0)
      show({ at, role: name, source: withoutUrlSecrets(url), counted, series: Object.fromEntries(own) });
    cancel = systemClock.after(intervalMs, () => void once());
  };
  void once();
  return async () => {
    isEnded = true;
    cancel();
    await samples.stop();
  };
}

function tappedText({ at, role, source, counted, series, line }: Tapped, { screen }: Io): string {
  const columns = screen.size()?.columns ?? Infinity;
  const colour = counted.startsWith('dropped') || counted.startsWith('no page') ? 'red' : 'bold';
  const lines = [
    `${at.slice(11)} ${role}  ${paint(counted, colour, screen)}  ${paint(plain(source), 'dim', screen)}`,
    ...(line === undefined ? [] : [cut(`  ${plain(line)}`, columns, screen)]),
    ...Object.entries(series).map(([text, change]) => cut(`    ${plain(text)} ${change}`, columns, screen)),
  ];
  return `${lines.join('\n')}\n`;
}
