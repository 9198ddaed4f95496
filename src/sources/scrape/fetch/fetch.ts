import Client from 'undici/lib/dispatcher/client.js';
import type { ReadSecret } from '../../../core/access.ts';
import type { Address } from '../../../core/address.ts';
import type { Clock } from '../../../core/ports.ts';
import { ScrapeFailure } from '../failure.ts';
import type { ScrapeOptions } from '../options.ts';
import { createConnect } from './connect.ts';
import { type Arrival, createExchange, type PageSink } from './exchange.ts';
import { requestHeaders } from './request-headers.ts';

export interface FetchDeps {
  clock: Clock;
  readSecret: ReadSecret;
  /** The agent's own listeners as they are bound now; a target among them is refused. */
  ownListeners(): readonly Address[];
  /** Names this agent in `scrapeMarkHeader`. */
  mark: string;
}

/** One target's connection, kept alive from page to page. */
export interface Fetch {
  /**
   * Asks for one page; never two at a time. Resolves when the sink has its last byte. Rejects with
   * `ScrapeFailure`. An answer takes `timeoutMs` at most, connecting included.
   */
  page(sink: PageSink): Promise<Arrival>;
  close(): Promise<void>;
}

export function createFetch(options: ScrapeOptions, deps: FetchDeps): Fetch {
  const { timeoutMs, intervalMs, tls } = options;
  const { clock, ownListeners } = deps;
  const { origin, pathname, search } = new URL(options.url);
  const connect = createConnect({ timeoutMs, tls, ownListeners });
  let connections = 0;
  let client: Client | undefined;

  const createClient = (): Client =>
    new Client(origin, {
      pipelining: 1,
      // The exchange has a timer for the whole of it.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: intervalMs * 2,
      connect: (target, callback) => {
        connections++;
        connect(target, callback);
      },
    });

  const close = async (): Promise<void> => {
    const closing = client;
    client = undefined;
    await closing?.destroy(null);
  };

  const request = (
    sink: PageSink,
    headers: Record<string, string>,
    onAnswer: () => void,
  ): Promise<Arrival> => {
    const giveUp = (): void => void close();
    const { handler, arrival } = createExchange({ clock, timeoutMs, sink, onAnswer, giveUp });
    client ??= createClient();
    client.dispatch({ path: pathname + search, method: 'GET', headers }, handler);
    return arrival;
  };

  return {
    async page(sink) {
      const headers = await requestHeaders(options, deps);
      const before = connections;
      let isAnswered = false;
      const onAnswer = (): void => {
        isAnswered = true;
      };
      try {
        return await request(sink, headers, onAnswer);
      } catch (error) {
        // A kept connection may be closed by the target just as it is used again: that is no fault of the target.
        const isStale = error instanceof ScrapeFailure && error.reason === 'reset' && connections === before;
        if (!isStale || isAnswered) throw error;
        return await request(sink, headers, onAnswer);
      }
    },
    close,
  };
}
