/** Creates log lines in the spec's shape, the same lines for the same arguments. */

export type Shape = 'flat' | 'nested' | 'escaped' | 'spaced';
export const shapes: readonly Shape[] = ['flat', 'nested', 'escaped', 'spaced'];

/** Numbers from 0 up to 2^32, the same numbers for the same seed (xorshift32). */
function randomNumbers(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

const levels = ['info', 'info', 'info', 'info', 'info', 'info', 'debug', 'debug', 'warn', 'error'];
const loggers = ['history-engine', 'shard-controller', 'transfer-queue-processor', 'timer-queue', 'scanner'];
const domains = ['orders', 'payments', 'shipping', 'customer-onboarding'];
const messages = [
  'Workflow execution updated',
  'Activity task dispatched to poller',
  'Decision task timed out',
  'Persistent store operation failure',
  'Shard acquired',
  'Transfer task processed in time',
];

const hex = (number: number, digits: number) => number.toString(16).padStart(8, '0').slice(0, digits);
const pick = <T>(list: readonly T[], number: number): T => list[number % list.length]!;

function entryOf(index: number, random: () => number): Record<string, unknown> {
  const run = `${hex(random(), 8)}-${hex(random(), 4)}-4${hex(random(), 3)}-a${hex(random(), 3)}-${hex(random(), 8)}${hex(random(), 4)}`;
  return {
    level: pick(levels, random()),
    ts: new Date(Date.UTC(2026, 0, 1) + index * 3).toISOString(),
    logger: pick(loggers, random()),
    msg: pick(messages, random()),
    'wf-domain-name': pick(domains, random()),
    'wf-id': `order-${random() % 1_000_000}`,
    'wf-run-id': run,
    'shard-id': random() % 4096,
  };
}

const decorate: Record<Shape, (entry: Record<string, unknown>, random: () => number) => string> = {
  flat: (entry) => JSON.stringify(entry),
  nested: (entry, random) =>
    JSON.stringify({
      ...entry,
      'error-details': {
        code: random() % 16,
        causes: [{ kind: 'timeout', retries: [1, 2, random() % 9] }, null],
      },
    }),
  escaped: (entry, random) =>
    JSON.stringify({
      ...entry,
      error: `code:deadline-exceeded "store ${random() % 9}"\n\tat C:\\svc\\store.go:${random() % 999}`,
    }),
  spaced: (entry) =>
    `{${Object.entries(entry)
      .map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`)
      .join(', ')}}`,
};

/** `count` lines of a shape, newlines included. */
export function logLines(shape: Shape, count: number, seed = 1): Buffer {
  const random = randomNumbers(seed);
  const lines: string[] = [];
  for (let index = 0; index < count; index++)
    lines.push(decorate[shape](entryOf(index, random), random), '\n');
  return Buffer.from(lines.join(''));
}
