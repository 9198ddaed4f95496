import { describe, expect, test } from 'vitest';
import { createTrace } from '../../../../src/probes/connection.ts';
import { createStoreServer } from '../../../../src/probes/stores/store-connections.ts';
import type {
  PollRequest,
  StoreConnection,
  StoreKind,
  StoreTarget,
} from '../../../../src/probes/stores/store-report.ts';
import { type ManualClock, manualClock } from '../../../clock.ts';

const target: StoreTarget = {
  store: 'main',
  address: { host: 'h', port: 1 },
  databases: ['a', 'b'],
  timeoutMs: 9000,
};
const intervalMs = 30_000;
const never = new AbortController().signal;

interface Opened {
  database?: string;
  signal: AbortSignal;
  polls: PollRequest[];
  closed: boolean;
}

/** A kind of store that records the requests; `answering` may throw, or never settle. */
function scripted() {
  const opened: Opened[] = [];
  const script = {
    opened,
    connecting: async (): Promise<void> => {},
    answering: async (_: Opened): Promise<void> => {},
    closing: async (_: Opened): Promise<void> => {},
  };
  const kind: StoreKind = {
    async connect(_, database, trace, signal) {
      trace.enter('connect');
      await script.connecting();
      const one: Opened = { database, signal, polls: [], closed: false };
      opened.push(one);
      const connection: StoreConnection = {
        async poll(request) {
          one.polls.push(request);
          await script.answering(one);
          return {
            ...(request.server && {
              server: {
                serverVersion: `of ${request.database}`,
                checks: [{ check: 'slots', holds: true, found: '' }],
              },
            }),
            database: { schemaVersion: request.database, checks: [] },
            roundTripMs: 1,
          };
        },
        async close() {
          await script.closing(one);
          one.closed = true;
        },
      };
      return connection;
    },
    faultOf: () => ({ reason: 'reset', msg: '' }),
  };
  return { script, kind };
}

function setUp() {
  const clock: ManualClock = manualClock();
  const { script, kind } = scripted();
  const server = createStoreServer({ intervalMs }, kind, clock);
  const poll = async (database: string, signal = never, over: Partial<StoreTarget> = {}) => {
    const trace = createTrace(clock);
    const report = await server.poll({ ...target, ...over }, { database, schema: {} }, trace, signal);
    return { ...report, phases: Object.keys(trace.phasesMs) };
  };
  return { clock, script, poll, opened: script.opened };
}

describe('questions about the server', () => {
  test('are asked once for two databases in an interval, and count for both', async () => {
    const { clock, poll, opened } = setUp();
    for (let round = 0; round < 3; round++) {
      expect(await poll('a')).toMatchObject({ serverVersion: 'of a', schemaVersion: 'a' });
      clock.advance(intervalMs / 2);
      expect(await poll('b')).toMatchObject({
        serverVersion: 'of a',
        schemaVersion: 'b',
        checks: [{ check: 'slots' }],
      });
      clock.advance(intervalMs / 2);
    }
    expect(opened.flatMap(({ polls }) => polls.map(({ server }) => server))).toEqual([
      true,
      false,
      true,
      false,
      true,
      false,
    ]);
  });

  test('are asked for the other database once the first was not polled for an interval', async () => {
    const { clock, poll } = setUp();
    await poll('a');
    clock.advance(intervalMs);
    expect((await poll('b')).serverVersion).toBe('of b');
  });
});

describe('a connection', () => {
  test('is new for each poll, and closed after it', async () => {
    const { poll, opened } = setUp();
    for (const database of ['a', 'b', 'a'])
      expect((await poll(database)).phases).toEqual(['connect', 'queries']);
    expect(opened.map(({ database, closed }) => [database, closed])).toEqual([
      ['a', true],
      ['b', true],
      ['a', true],
    ]);
  });

  test('is destroyed where the poll fails', async () => {
    const { poll, opened, script } = setUp();
    script.answering = async () => {
      throw new Error('really down');
    };
    await expect(poll('a')).rejects.toThrow('really down');
    expect(opened[0]!.signal.aborted).toBe(true);
  });

  test('is destroyed where the store does not confirm its end; the poll has succeeded', async () => {
    const { poll, opened, script, clock } = setUp();
    script.closing = ({ signal }) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    const polling = poll('a');
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(500);
    expect((await polling).schemaVersion).toBe('a');
    expect(opened[0]!.signal.aborted).toBe(true);
  });

  test('ends when the poll is aborted', async () => {
    const { poll, opened, script } = setUp();
    const given = new AbortController();
    script.answering = ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const polling = poll('a', given.signal);
    await new Promise((resolve) => setImmediate(resolve));
    given.abort(new Error('late'));
    await expect(polling).rejects.toThrow('late');
    expect(opened[0]!.signal.aborted).toBe(true);
  });
});
