import { describe, expect, test } from 'vitest';
import { createTrace } from '../../../../src/probes/connection.ts';
import { createStoreServer, keptAtMost, keptForMs } from '../../../../src/probes/stores/store-connections.ts';
import type {
  PollRequest,
  StoreConnection,
  StoreFault,
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
  isOpen: boolean;
  closed: boolean;
}

/** A kind of store that keeps what it was asked; `answer` may throw, or never come. */
function scripted({ oneDatabase = false, reason = 'reset' as StoreFault['reason'] } = {}) {
  const opened: Opened[] = [];
  const script = {
    opened,
    connecting: async (): Promise<void> => {},
    answering: async (_: Opened): Promise<void> => {},
  };
  const kind: StoreKind = {
    async connect(_, database, trace, signal) {
      trace.enter('connect');
      await script.connecting();
      const one: Opened = { database, signal, polls: [], isOpen: true, closed: false };
      opened.push(one);
      const connection: StoreConnection = {
        serves: (asked) => !oneDatabase || asked === database,
        get isOpen() {
          return one.isOpen;
        },
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
          one.closed = true;
          one.isOpen = false;
        },
      };
      return connection;
    },
    faultOf: () => ({ reason, msg: '' }),
  };
  return { script, kind };
}

function setUp(options: Parameters<typeof scripted>[0] = {}, interval = intervalMs) {
  const clock: ManualClock = manualClock();
  const { script, kind } = scripted(options);
  const server = createStoreServer({ intervalMs: interval }, kind, clock);
  const poll = async (database: string, signal = never, over: Partial<StoreTarget> = {}) => {
    const trace = createTrace(clock);
    const report = await server.poll({ ...target, ...over }, { database, schema: {} }, trace, signal);
    return { ...report, phases: Object.keys(trace.phasesMs) };
  };
  return { clock, script, server, poll, opened: script.opened };
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
    expect(opened[0]!.polls.map(({ server }) => server)).toEqual([true, false, true, false, true, false]);
  });

  test('are asked for the other database once the first was not polled for an interval', async () => {
    const { clock, poll } = setUp();
    await poll('a');
    clock.advance(intervalMs);
    expect((await poll('b')).serverVersion).toBe('of b');
  });
});

describe('a connection', () => {
  test('is kept for a bounded time, and phases are those of a new one only', async () => {
    const { clock, poll, opened } = setUp();
    expect((await poll('a')).phases).toEqual(['connect', 'queries']);
    for (let polls = 1; polls < keptForMs / intervalMs; polls++) {
      clock.advance(intervalMs);
      expect((await poll('a')).phases).toEqual(['queries']);
    }
    expect(opened).toHaveLength(1);
    // The next poll would come too late for it.
    expect(opened[0]!.closed).toBe(true);
    clock.advance(intervalMs);
    await poll('a');
    expect(opened).toHaveLength(2);
  });

  test('is not kept where polls are rare', async () => {
    const { poll, opened } = setUp({}, keptForMs);
    await poll('a');
    expect(opened[0]!.closed).toBe(true);
  });

  test('that serves one database only is kept beside that of the other', async () => {
    const { poll, opened } = setUp({ oneDatabase: true });
    for (const database of ['a', 'b', 'a', 'b']) await poll(database);
    expect(opened.map(({ database, polls, closed }) => [database, polls.length, closed])).toEqual([
      ['a', 2, false],
      ['b', 2, false],
    ]);
  });

  test('is one of a bounded number', async () => {
    const { poll, opened } = setUp({ oneDatabase: true });
    for (const database of ['a', 'b', 'c', 'c', 'd', 'a', 'b']) await poll(database);
    expect(opened.filter(({ isOpen }) => isOpen)).toHaveLength(keptAtMost);
    expect(opened.map(({ database, closed }) => [database, closed])).toEqual([
      ['a', false],
      ['b', false],
      ['c', true],
      ['c', true],
      ['d', true],
    ]);
  });

  test('that has ended meanwhile is replaced', async () => {
    const { poll, opened } = setUp();
    await poll('a');
    opened[0]!.isOpen = false;
    await poll('a');
    expect(opened).toHaveLength(2);
  });

  test('that turns out to be dead is replaced within the poll; what a new one says counts', async () => {
    const { poll, opened, script } = setUp();
    await poll('a');
    script.answering = async (one) => {
      if (one === opened[0]) throw new Error('reset');
    };
    expect((await poll('a')).schemaVersion).toBe('a');
    expect(opened).toHaveLength(2);
    expect(opened[0]!.signal.aborted).toBe(true);
    script.answering = async () => {
      throw new Error('really down');
    };
    await expect(poll('a')).rejects.toThrow('really down');
  });

  test('that does not answer in a third of the time is replaced within the poll', async () => {
    const { poll, opened, script, clock } = setUp();
    await poll('a');
    script.answering = ({ signal }) =>
      opened[0]!.signal === signal
        ? new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        : Promise.resolve();
    const polling = poll('a');
    await Promise.resolve();
    clock.advance(target.timeoutMs / 3);
    expect((await polling).schemaVersion).toBe('a');
    expect(opened).toHaveLength(2);
  });

  test('is not used with another password', async () => {
    const { poll, opened } = setUp();
    await poll('a');
    await poll('a', never, { password: 'new' });
    expect(opened).toHaveLength(2);
    expect(opened[0]!.signal.aborted).toBe(true);
  });

  test('is given up where the store has no room for another', async () => {
    const { poll, opened, script } = setUp({ oneDatabase: true, reason: 'too_many_connections' });
    await poll('a');
    script.connecting = async () => {
      if (!opened[0]!.closed) throw new Error('too many');
    };
    expect((await poll('b')).schemaVersion).toBe('b');
  });

  test('ends when the poll is aborted, and not when one before is', async () => {
    const { poll, opened, script } = setUp();
    const [first, second] = [new AbortController(), new AbortController()];
    await poll('a', first.signal);
    first.abort();
    expect(opened[0]!.signal.aborted).toBe(false);
    script.answering = ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const polling = poll('a', second.signal);
    second.abort(new Error('late'));
    await expect(polling).rejects.toThrow('late');
    expect(opened[0]!.signal.aborted).toBe(true);
    expect(opened).toHaveLength(1);
  });

  test('is closed with the probe, beside that of the other database', async () => {
    const { poll, opened, server } = setUp({ oneDatabase: true });
    for (const database of ['a', 'b']) await poll(database);
    await server.close();
    expect(opened.map(({ closed }) => closed)).toEqual([true, true]);
  });

  test('is closed with the probe, also one that comes back later', async () => {
    const { poll, opened, script, server } = setUp();
    let answer = () => {};
    script.answering = () => new Promise((resolve) => (answer = resolve));
    const polling = poll('a');
    await new Promise((resolve) => setImmediate(resolve));
    await server.close();
    answer();
    await polling;
    expect(opened[0]!.closed).toBe(true);
  });
});
