import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { ReadSecret } from '../core/access.ts';
import { systemClock } from '../core/clock.ts';
import { AgentError, usageError } from '../core/errors.ts';
import type { FamilyView, Labels, SeriesView } from '../core/model.ts';
import type { Log } from '../core/ports.ts';
import { createRegistry, type Registry } from '../core/registry/registry.ts';
import { escapeText } from '../reporters/pull/line-cache.ts';
import { createLineSinks } from '../sources/logs/metrics/line-sinks.ts';
import type { OpenSink } from '../sources/logs/sink.ts';
import { scrapeDefaults } from '../sources/scrape/block.ts';
import type { Scrape } from '../sources/scrape/source.ts';
import type { Statsd } from '../sources/statsd/source.ts';
import { readVocabularies } from '../sources/vocabularies.ts';
import { type AgentConfig, blockOf, blocksOf, type ServiceConfig } from './config/types.ts';
import { shippedFolder } from './installation.ts';
import { openIntakes, registrySettings } from './intakes.ts';
import { logsSelectionOf } from './log-pipeline.ts';
import { type RoleSources, startRoleSources } from './role-sources.ts';

/** A value of a series, and whether it is a total, which only grows. */
interface Sample {
  value: number;
  isTotal: boolean;
}

/** Samples by their series in the form of the text exposition: `name{label="value"}`. */
export type SampledSeries = ReadonlyMap<string, Sample>;

/**
 * What a configuration makes of given input, on a separate registry: it uses the code of a running agent from the line, the page
 * or the datagram to the exposition. Nothing is exported, and no state is read or written.
 */
export interface Samples {
  /** Opens the sink that counts the lines of a log file of these services. Throws `usage` for a service without logs. */
  openLog: OpenSink;
  /** Counts a page as if the service had answered with it. Throws `usage` for an unknown service or a refused page. */
  page(service: string, text: string): Promise<void>;
  /**
   * The series that a scrape of the agent would return now. The agent's own series are left out, except for counts of what was
   * dropped or refused.
   */
  datagrams(service: string, text: string): Promise<void>;
  /** What a scrape of the agent would show now. Of the agent's own series only those of drops and refusals are included. */
  series(): SampledSeries;
  /** Scrapes the service as it is configured, once per call. Throws `usage` for an unknown service. */
  scrape(service: string): Promise<Scrape>;
  stop(): Promise<void>;
}

const silent: Log = { write() {}, named: () => silent };

/** A server on loopback that answers every request with `text`; stops when `use` has ended. */
async function served<T>(text: string, use: (url: string) => Promise<T>): Promise<T> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4');
    response.end(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const patienceMs = 10_000;
const pauseMs = 10;

/** Sends lines to the TCP listener of a source, and waits until they are counted and their vocabulary is decided. */
async function sendLines({ status }: Statsd, text: string): Promise<void> {
  const [, host, port] = /^(.*):(\d+)$/.exec(status().addresses.tcp!)!;
  const lines = text.split('\n').filter((line) => line !== '');
  const socket = connect(Number(port), host);
  socket.resume();
  socket.end(`${lines.join('\n')}\n`);
  await once(socket, 'close');
  for (let leftMs = patienceMs; leftMs > 0; leftMs -= pauseMs) {
    if (status().lines >= lines.length && status().isSettled) return;
    await setTimeout(pauseMs);
  }
  const what = `only ${status().lines} of ${lines.length} lines were read within ${patienceMs / 1000} s`;
  throw new AgentError('internal', { where: 'datagrams', what });
}

const special = /[\\"\n]/g;

/** A series in the form of the text exposition. */
function seriesText(name: string, labels: Labels): string {
  const pairs = labels.map(([label, value]) => `${label}="${escapeText(value, special)}"`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`;
}

/** The samples of a series: one for a single number, otherwise one for each bound, the sum and the count. */
function* samplesOf(
  { name, kind }: FamilyView,
  series: SeriesView,
  numbers: Float64Array,
): Iterable<[string, Sample]> {
  const { labels, bounds, at } = series;
  if (kind !== 'histogram' && kind !== 'summary') {
    yield [seriesText(name, labels), { value: numbers[at]!, isTotal: kind === 'counter' }];
    return;
  }
  const isHistogram = kind === 'histogram';
  const total = (place: number): Sample => ({ value: numbers[at + place]!, isTotal: true });
  const texts = isHistogram ? [...bounds, '+Inf'] : bounds;
  for (const [index, text] of texts.entries()) {
    const bound: Labels[number] = [isHistogram ? 'le' : 'quantile', text];
    const sample = { ...total(index), isTotal: isHistogram };
    yield [seriesText(isHistogram ? `${name}_bucket` : name, [...labels, bound]), sample];
  }
  if (series.hasSum) yield [seriesText(`${name}_sum`, labels), total(texts.length)];
  if (series.hasCount) yield [seriesText(`${name}_count`, labels), total(texts.length + 1)];
}

/** Whether a family is shown: of the agent's own families only those that count what was refused. */
const isShown = (name: string) =>
  !name.startsWith('svc_agent_') || /^svc_agent_(?:dropped|series_refused)_total$/.test(name);

function seriesIn(registry: Registry): SampledSeries {
  registry.durable.publish(registry.durable.freeze());
  const view = registry.view();
  const families = view.families.filter(({ name }) => isShown(name));
  const all = families.flatMap((family) =>
    family.series.flatMap((series) => [...samplesOf(family, series, view.numbers(series))]),
  );
  view.release();
  return new Map(all);
}

/** Creates the samples. `readSecret` is called only for the inputs' own secrets. */
export function createSamples(config: AgentConfig, { readSecret }: { readSecret: ReadSecret }): Samples {
  const clock = systemClock;
  const registry = createRegistry(registrySettings(config), { clock });
  const intakes = openIntakes(registry, config);
  const { services } = logsSelectionOf(config);
  const selection = { services, selected: new Set(Object.keys(services)) };
  const sinks = createLineSinks(selection, {
    intakes: intakes.logs,
    drops: registry.drops,
    clock,
  });
  const blocks = blocksOf(config);
  const running: RoleSources[] = [];

  const start = async (name: string, input: Pick<ServiceConfig, 'scrape' | 'statsd'>) => {
    const place = config.services.findIndex((service) => service.name === name);
    const service = { ...config.services[place]!, scrape: undefined, statsd: undefined, ...input };
    const sources = await startRoleSources(
      { service, block: blockOf(blocks, name), place },
      {
        registry,
        vocabularies: () => readVocabularies(shippedFolder('vocabularies')),
        ownListeners: () => [],
        mark: 'samples',
        readSecret,
        onKernelDrops: () => {},
        onPage: () => {},
        clock,
        log: silent,
      },
    );
    running.push(sources);
    return sources;
  };
  const timing = { intervalMs: 3_600_000, timeoutMs: 10_000 };

  return {
    openLog(file) {
      const without = file.claimants.find((name) => !Object.hasOwn(services, name));
      if (without === undefined) return sinks.open(file);
      const what = 'missing, so that no line is read';
      const allowed = 'configure it, or name another role';
      throw usageError(`services.${without}.logs`, what, undefined, allowed);
    },
    page: (name, text) =>
      served(text, async (url) => {
        const configured = config.services.find((service) => service.name === name)?.scrape;
        const { scrape } = await start(name, {
          scrape: { ...scrapeDefaults, ...configured, ...timing, tls: undefined, auth: undefined, url },
        });
        const result = await scrape!.scrapeNow();
        if (result.ok) return;
        const what = `refused, ${result.reason}: ${result.what}`;
        throw usageError(`page of ${name}`, what, undefined, 'use the text exposition format');
      }),
    async datagrams(name, text) {
      const configured = config.services.find((service) => service.name === name)?.statsd;
      const { statsd } = await start(name, {
        statsd: {
          ...{ receiveBufferBytes: 0, tagFormat: 'auto' },
          ...configured,
          ...{ listen: undefined, unix: undefined, tls: undefined },
          ...{ tcp: '127.0.0.1:0', senders: [] },
        },
      });
      await sendLines(statsd!, text);
    },
    series: () => seriesIn(registry),
    async scrape(name) {
      const { scrape } = config.services.find((service) => service.name === name) ?? {};
      return (await start(name, { scrape })).scrape!;
    },
    async stop() {
      await Promise.all(running.map((sources) => sources.stop()));
      intakes.close();
    },
  };
}
