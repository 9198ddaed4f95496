import { beforeEach, describe, expect, it } from 'vitest';
import { incidentKinds, parseIncident } from '../../../examples/service/incidents.ts';
import { createRandom } from '../../../examples/service/random.ts';
import { createTrouble, type Trouble } from '../../../examples/service/trouble.ts';
import { type ManualClock, manualClock } from '../../clock.ts';

const kinds = incidentKinds({ hasStore: true });
let clock: ManualClock;
let trouble: Trouble;
let done: unknown[];

beforeEach(() => {
  clock = manualClock();
  done = [];
  trouble = createTrouble(
    { everyMs: 0, kinds },
    {
      clock,
      random: createRandom(1),
      announce: () => {},
      restart: (role, fatal) => done.push(['restart', role, fatal]),
      failOver: (domain) => done.push(['failover', domain]),
    },
  );
});

const strike = (text: string) => trouble.strike(parseIncident(text, kinds));
const lasting = () => Object.entries(trouble.conditions).filter(([, target]) => target !== undefined);

describe('an incident', () => {
  it.each([
    ['persistence-errors', 'failingRole', 'history'],
    ['backlog', 'starvedTaskList', 'order-processing'],
    ['store-down', 'refusingStore', 'main'],
    ['schema-behind', 'outdatedDatabase', 'persistence'],
  ] as const)('of kind %s is a condition until it is ended', (kind, condition, target) => {
    strike(kind);
    clock.advance(3_600_000);
    expect(lasting()).toEqual([[condition, target]]);
    expect(trouble.end('failover')).toEqual([]);
    expect(trouble.end(kind)).toEqual([{ kind, target }]);
    expect(lasting()).toEqual([]);
    expect(done).toEqual([]);
  });

  it('replaces one of its kind', () => {
    strike('schema-behind persistence');
    strike('schema-behind visibility');
    expect(lasting()).toEqual([['outdatedDatabase', 'visibility']]);
    expect(trouble.end()).toHaveLength(1);
  });

  it('of a role restarts it every 15 s until it is ended', () => {
    strike('restart frontend');
    strike('fatal');
    clock.advance(15_000);
    trouble.end('restart');
    clock.advance(15_000);
    const [plain, fatal] = [
      ['restart', 'frontend', false],
      ['restart', 'worker', true],
    ];
    expect(done).toEqual([plain, fatal, plain, fatal, fatal]);
  });

  it('of a domain fails it over, and back when it is ended', () => {
    strike('failover payments');
    expect(trouble.end()).toEqual([{ kind: 'failover', target: 'payments' }]);
    expect(done).toEqual([
      ['failover', 'payments'],
      ['failover', 'payments'],
    ]);
  });

  it('that comes by itself ends by itself', () => {
    const announced: unknown[] = [];
    trouble = createTrouble(
      { everyMs: 60_000, kinds: ['store-down'] },
      {
        clock,
        random: createRandom(1),
        announce: ({ kind }, phase) => announced.push(`${kind} ${phase}`),
        restart: () => {},
        failOver: () => {},
      },
    );
    const stop = trouble.start();
    clock.advance(110_000);
    expect(lasting()).toEqual([]);
    expect(announced).toEqual(['store-down began', 'store-down ended']);
    clock.advance(600_000);
    expect(announced.length).toBeGreaterThan(8);
    const before = announced.length;
    stop();
    // The end of the service is not the end of an incident.
    expect(announced).toHaveLength(before);
    expect([lasting(), clock.waiting]).toEqual([[], 0]);
  });
});
